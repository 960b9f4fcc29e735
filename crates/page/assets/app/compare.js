// What differs between two moments.

import { cableName, most } from './state.js';
import { percent, plural, rate } from './words.js';

const WAIT_MIN = 0.1;
const DATA_MIN = 0.2;

function changes(before, after, words) {
  const found = [];
  for (const id of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const said = words(before[id], after[id], id);
    if (said) found.push(said);
  }
  return found;
}

/** Sentences, the heaviest first: devices, links, faults, machines, flows, waiting. */
export function differences(one, two) {
  // Links of a device that changed go with it.
  const changed = new Map();
  changes(one.nodes, two.nodes, (was, is, id) => { if (was?.state !== is?.state) changed.set(id, 0); });
  const links = changes(one.cables, two.cables, (was, is) => {
    const ends = [was, is].flatMap((cable) => (cable ? [String(cable.a), String(cable.b)] : []));
    const owner = ends.find((id) => changed.has(id));
    if (owner !== undefined && was?.state !== is?.state) {
      changed.set(owner, changed.get(owner) + 1);
      return null;
    }
    if (!was || !is) return `${cableName(is ? two : one, was ?? is)}: ${is ? 'added' : 'removed'}`;
    return was.state !== is.state ? `${cableName(two, is)}: ${was.state} → ${is.state}` : null;
  });
  const nodes = changes(one.nodes, two.nodes, (was, is, id) => {
    const too = changed.get(id) ? `, with ${plural(changed.get(id), 'link')}` : '';
    if (!was || !is) return `${(was ?? is).name}: ${is ? 'added' : 'removed'}${too}`;
    return was.state !== is.state ? `${is.name}: ${was.state} → ${is.state}${too}` : null;
  });
  const faults = changes(one.faults, two.faults, (was, is) => (was && is ? null : `${(was ?? is).text ?? (was ?? is).kind} at ${(was ?? is).where ?? '?'}: ${is ? 'begun' : 'ended'}`));
  const vms = changes(one.vms, two.vms, (was, is, id) => {
    if (!was || !is) return `${id}: ${is ? 'created' : 'gone'}`;
    return was.host !== is.host ? `${id}: ${was.host} → ${is.host}` : null;
  });
  return [...nodes, ...links, ...faults, ...vms, ...traffic(one, two)];
}

function traffic(one, two) {
  const most1 = Math.max(...Object.values(two.cables).map((cable) => most(cable, 'mbps')), 0);
  const flows = changes(one.flows, two.flows, (was, is, id) => {
    if (!was || !is) return `flow ${id}: ${is ? 'started' : 'gone'}`;
    if (was.state !== is.state) return `flow ${id}: ${was.state} → ${is.state}`;
    const [a, b] = [was.mbps ?? 0, is.mbps ?? 0];
    return Math.abs(a - b) > DATA_MIN * Math.max(a, b, most1 / 100) ? `flow ${id}: ${rate(a, two.shaped)} → ${rate(b, two.shaped)}` : null;
  });
  const waits = changes(one.cables, two.cables, (was, is) => {
    if (!was || !is) return null;
    const [a, b] = [most(was, 'wait'), most(is, 'wait')];
    return Math.abs(a - b) >= WAIT_MIN ? `${cableName(two, is)}: waits ${percent(a)} → ${percent(b)}` : null;
  });
  return [...flows, ...waits];
}
