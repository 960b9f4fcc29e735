// Hot spots and their victims: what the performance manager says, and what flows that share waiting links show.

import { hopsOf, nodeNamed, wayName } from './state.js';

// A link whose packets wait for this share of the time holds flows back.
const WAITS = 0.05;
const SUSPECT = 0.1;
const SUSPECTS_MAX = 5;

const isAlive = (flow) => flow.state === 'running' || flow.state === 'starting' || flow.state === undefined;
const key = (id, way) => `${id}/${Number(way)}`;

/** Who is on each direction of each cable. */
export function sharers(state) {
  return byPlace(aliveFlows(state));
}

const aliveFlows = (state) => Object.entries(state.flows).filter(([, flow]) => isAlive(flow)).map(([id, flow]) => ({ id, flow, hops: hopsOf(flow) }));

function byPlace(alive) {
  const on = new Map();
  for (const { id, hops } of alive) {
    for (const { cable, way, lane } of hops) {
      const place = key(cable, way);
      if (on.has(place)) on.get(place).push({ id, lane });
      else on.set(place, [{ id, lane }]);
    }
  }
  return on;
}

const NONE = [];
const entries = (shared, id, way) => shared.get(key(id, way)) ?? NONE;
export const onWay = (shared, id, way) => entries(shared, id, way).map((entry) => entry.id);

/** The wait on one direction of a cable: of a lane where lanes are known. */
export function waitFor(cable, way, lane) {
  const data = way ? cable?.ba : cable?.ab;
  if (!data) return 0;
  const own = lane === null || lane === undefined ? undefined : data.lanes?.[lane]?.wait;
  return own ?? data.wait ?? 0;
}

const worst = (state, hops) => hops.reduce((most, { cable, way, lane }) => Math.max(most, waitFor(state.cables[cable], way, lane)), 0);
export const worstWait = (state, flow) => worst(state, hopsOf(flow));

/** Hosts that several flows wait for, where no manager names them. */
function suspects(state, alive) {
  const waiting = new Map();
  for (const { flow, hops } of alive) {
    if (worst(state, hops) >= SUSPECT) waiting.set(flow.to, (waiting.get(flow.to) ?? 0) + 1);
  }
  const found = [...waiting].filter(([host, flows]) => flows >= 2 && !state.hot[host]);
  return found.sort(([, a], [, b]) => b - a).slice(0, SUSPECTS_MAX).map(([host]) => host);
}

/** The flows that are held back by those to a hot host: where they wait, and behind whom. */
function victimsOf(state, alive, theirs, shared) {
  const found = [];
  for (const { id, flow, hops } of alive) {
    if (theirs.has(id)) continue;
    const waits = [];
    for (const { cable, way, lane } of hops) {
      const wait = waitFor(state.cables[cable], way, lane);
      if (wait < WAITS) continue;
      // What is on another lane does not hold it back.
      const isBefore = (other) => theirs.has(other.id) && (other.lane === null || lane === null || other.lane === lane);
      const behind = entries(shared, cable, way).filter(isBefore).map((other) => other.id);
      if (behind.length) waits.push({ cable, way, wait, behind });
    }
    if (waits.length) found.push({ id, flow, waits: waits.sort((a, b) => b.wait - a.wait) });
  }
  return found;
}

/** All hot spots: `{host, declared, since, slow, contributors, victims}`. */
export function hotSpots(store) {
  const { state } = store;
  const alive = aliveFlows(state);
  const all = [...Object.entries(state.hot), ...suspects(state, alive).map((host) => [host, null])];
  if (!all.length) return [];
  const shared = byPlace(alive);
  return all.map(([host, hot]) => {
    const node = nodeNamed(store, host);
    const isTo = ({ flow }) => flow.to === host || (node !== null && nodeNamed(store, flow.to) === node);
    const contributors = alive.filter(isTo).map(({ id }) => id);
    return {
      host, declared: hot !== null, since: hot?.since_ms ?? null, slow: hot?.slow_lane ?? [], contributors,
      victims: victimsOf(state, alive, new Set(contributors), shared),
    };
  });
}

/** Where a flow waits, in words. */
export const waitWords = (store, wait) => wayName(store.state, store.state.cables[wait.cable], wait.way);
