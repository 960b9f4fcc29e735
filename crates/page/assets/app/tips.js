// A device or a link in a few lines: for the pointer and for screen readers.

import { cableName, most } from './state.js';
import { percent, plural, rate } from './words.js';

export function tipWords(app, found, shown = null) {
  const state = shown ?? app.store.state;
  return found.node ? nodeWords(app, state, found.node) : cableWords(state, found.cable);
}

function nodeWords(app, state, id) {
  const node = state.nodes[id];
  if (!node) return [];
  const hosts = app.store.index.hosts.get(id)?.length;
  const vms = Object.values(state.vms).filter((vm) => vm.host === node.name).length;
  return [
    node.name,
    [node.kind, node.state ?? 'up', node.lids?.length && `LID ${node.lids.join(', ')}`, hosts && plural(hosts, 'host')].filter(Boolean).join(', '),
    [node.hot && 'hot spot', ...(node.roles ?? []), vms && plural(vms, 'VM')].filter(Boolean).join(', '),
  ].filter(Boolean);
}

function cableWords(state, id) {
  const cable = state.cables[id];
  if (!cable) return [];
  const flows = Object.values(state.flows).filter((flow) => flow.path?.some(([own]) => String(own) === id)).length;
  return [
    cableName(state, cable),
    [cable.state ?? 'active', cable.rate, cable.planned].filter(Boolean).join(', '),
    cable.ab || cable.ba ? `${rate(most(cable, 'mbps'), state.shaped)}, waits ${percent(most(cable, 'wait'))}` : 'idle',
    flows ? plural(flows, 'flow') : '',
    ...(cable.faults ?? []).map((fault) => state.faults[fault]?.text ?? fault),
  ].filter(Boolean);
}
