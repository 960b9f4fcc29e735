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
  const on = new Map();
  for (const [id, flow] of Object.entries(state.flows)) {
    if (!isAlive(flow)) continue;
    for (const { cable, way } of hopsOf(flow)) {
      const place = key(cable, way);
      if (on.has(place)) on.get(place).push(id);
      else on.set(place, [id]);
    }
  }
  return on;
}

export const onWay = (shared, id, way) => shared.get(key(id, way)) ?? [];

/** The wait on one direction of a cable: of a lane where lanes are known. */
export function waitFor(cable, way, lane) {
  const data = way ? cable?.ba : cable?.ab;
  if (!data) return 0;
  const own = lane === null || lane === undefined ? undefined : data.lanes?.[lane]?.wait;
  return own ?? data.wait ?? 0;
}

/** The same port by any of its names. */
function sameEnd(store, one, two) {
  if (one === two) return true;
  const [a, b] = [nodeNamed(store, one), nodeNamed(store, two)];
  return a !== null && a === b;
}

/** Hosts that several flows wait for, where no manager names them. */
function suspects(store) {
  const byHost = new Map();
  for (const [id, flow] of Object.entries(store.state.flows)) {
    if (!isAlive(flow)) continue;
    const known = byHost.get(flow.to);
    if (known) known.push(id);
    else byHost.set(flow.to, [id]);
  }
  const found = [];
  for (const [host, flows] of byHost) {
    if (flows.length < 2 || store.state.hot[host]) continue;
    const waits = flows.filter((id) => worstWait(store.state, store.state.flows[id]) >= SUSPECT);
    if (waits.length >= 2) found.push([waits.length, host]);
  }
  return found.sort(([a], [b]) => b - a).slice(0, SUSPECTS_MAX).map(([, host]) => host);
}

export function worstWait(state, flow) {
  return Math.max(0, ...hopsOf(flow).map(({ cable, way, lane }) => waitFor(state.cables[cable], way, lane)));
}

/** The flows that are held back by those to a hot host: where they wait, and behind whom. */
function victimsOf(store, host, contributors, shared) {
  const { state } = store;
  const theirs = new Set(contributors);
  const found = [];
  for (const [id, flow] of Object.entries(state.flows)) {
    if (!isAlive(flow) || sameEnd(store, flow.to, host)) continue;
    const waits = [];
    for (const { cable, way, lane } of hopsOf(flow)) {
      const wait = waitFor(state.cables[cable], way, lane);
      if (wait < WAITS) continue;
      const behind = onWay(shared, cable, way).filter((other) => theirs.has(other) && sameLane(state.flows[other], cable, way, lane));
      if (behind.length) waits.push({ cable, way, wait, behind });
    }
    if (waits.length) found.push({ id, flow, waits: waits.sort((a, b) => b.wait - a.wait) });
  }
  return found;
}

/** Whether a flow takes this lane of a cable, as far as that is known. */
function sameLane(flow, cable, way, lane) {
  const own = hopsOf(flow).find((hop) => hop.cable === cable && hop.way === way)?.lane ?? null;
  return own === null || lane === null || own === lane;
}

/** All hot spots: `{host, declared, since, slow, contributors, victims}`. */
export function hotSpots(store) {
  const { state } = store;
  const declared = Object.entries(state.hot);
  const all = [...declared.map(([host, hot]) => ({ host, hot })), ...suspects(store).map((host) => ({ host, hot: null }))];
  if (!all.length) return [];
  const shared = sharers(state);
  return all.map(({ host, hot }) => {
    const contributors = Object.entries(state.flows).filter(([, flow]) => isAlive(flow) && sameEnd(store, flow.to, host)).map(([id]) => id);
    return {
      host, declared: hot !== null, since: hot?.since_ms ?? null, slow: hot?.slow_lane ?? [], contributors,
      victims: victimsOf(store, host, contributors, shared),
    };
  });
}

/** Where a flow waits, in words. */
export const waitWords = (store, wait) => wayName(store.state, store.state.cables[wait.cable], wait.way);
