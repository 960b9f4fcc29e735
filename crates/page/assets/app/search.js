// What is searched and filtered: first the answer, then the drawing.

import { hexGuid } from './state.js';

const isTroubled = (state, node, cables) =>
  node.state !== 'up' || node.hot || cables.some((id) => state.cables[id].state !== 'active' || state.cables[id].faults?.length || state.cables[id].planned);

/** Devices on the way of a flow, or with data on one of their cables. */
function busy(state) {
  const found = new Set();
  const add = (cable) => { if (cable) [cable.a, cable.b].forEach((id) => found.add(String(id))); };
  for (const cable of Object.values(state.cables)) if (cable.ab?.mbps || cable.ba?.mbps) add(cable);
  for (const flow of Object.values(state.flows)) (flow.path ?? []).forEach(([id]) => add(state.cables[id]));
  return found;
}

/** Whether a device is meant by a search: part of its name or GUID, or its LID. */
export function meets(node, label, words) {
  if (!words) return true;
  const wanted = words.toLowerCase();
  if (String(node.name ?? '').toLowerCase().includes(wanted) || String(label ?? '').toLowerCase().includes(wanted)) return true;
  if (/^(lid:?)?\s*\d+$/.test(wanted)) {
    const lid = Number(wanted.replace(/\D/g, ''));
    if (node.lids?.some((own) => Number(own) === lid)) return true;
  }
  const guid = wanted.replace(/^(guid:)?(0x)?/, '').replace(/[^0-9a-f]/g, '');
  return guid.length >= 4 && guid.length === wanted.replace(/^(guid:)?(0x)?/, '').length && hexGuid(node.guid).includes(guid);
}

/** The devices that are meant, or null where all are. */
export function matchesOf(state, index, view) {
  const words = view.find.trim();
  if (!words && view.filter === 'all') return null;
  const found = new Set();
  const inTraffic = view.filter === 'traffic' ? busy(state) : null;
  for (const [id, node] of Object.entries(state.nodes)) {
    if (view.filter === 'trouble' && !isTroubled(state, node, index.cables.get(id) ?? [])) continue;
    if (inTraffic && !inTraffic.has(id)) continue;
    if (meets(node, index.label.get(id), words)) found.add(id);
  }
  return found;
}

const includes = (words, ...texts) => texts.some((own) => String(own ?? '').toLowerCase().includes(words.toLowerCase()));

/** Whether a flow is meant by the search. */
export const meetsFlow = (flow, words) => !words || includes(words, flow.name, flow.from, flow.to, flow.set);
export const meetsEvent = (event, words) => !words || includes(words, event.text, event.kind, event.node);
