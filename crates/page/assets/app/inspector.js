// What is chosen, in detail: a device, a link, or a flow hop by hop.

import { get } from './api.js';
import { attribute, find, h, keyed, text } from './dom.js';
import { cableActions, mayAct, nodeActions, stopFlow } from './actions.js';
import { onWay, sharers, waitFor } from './hot.js';
import { cableName, endName, hopsOf, most, nodeName, wayName } from './state.js';
import { bytes, count, latency, names, percent, plural, rate } from './words.js';

const ROWS_MAX = 64;
const HOPS_EVERY_MS = 2000;

const link = (words, run) => h('button', { type: 'button', class: 'link', text: words, on: { click: run } });

export class Inspector {
  constructor(app) {
    this.app = app;
    this.section = find('inspector');
    this.kind = null;
    this.hops = null;
    this.facts = h('dl', { class: 'facts' });
    this.list = h('ol', { class: 'hops' });
    setInterval(() => this.askHops(), HOPS_EVERY_MS);
  }

  /** Shows another choice. */
  open() {
    const { view } = this.app;
    this.hops = null;
    this.asked = null;
    this.facts = h('dl', { class: 'facts' });
    this.list = h(view.flow ? 'ol' : 'ul', { class: view.flow ? 'hops' : 'items ports' });
    this.title = h('h2');
    this.listTitle = h('h3');
    this.tools = h('div', { class: 'tools-box' });
    const close = h('button', { type: 'button', class: 'quiet', 'aria-label': 'Let go', text: '×', on: { click: () => this.app.choose({}) } });
    this.section.replaceChildren(h('div', { class: 'head' }, this.title, close), this.facts, this.tools, this.listTitle, this.list);
    this.toolsFor = null;
    this.update();
    this.askHops();
  }

  update() {
    const { view, store } = this.app;
    const chosen = view.flow ? ['flow', view.flow, store.state.flows] : view.cable ? ['link', view.cable, store.state.cables] : view.node ? ['device', view.node, store.state.nodes] : null;
    this.section.classList.toggle('idle', !chosen);
    if (!chosen) {
      this.section.replaceChildren(h('p', { class: 'none', text: 'Choose a device, a link or a flow: on the map, or in the tables below it.' }));
      this.title = null;
      return;
    }
    if (!this.title) {
      this.open();
      return;
    }
    const [kind, id, table] = chosen;
    const what = Object.hasOwn(table, id) ? table[id] : null;
    if (!what) {
      text(this.title, `${kind} ${id}`);
      this.show([['State', `there is no such ${kind} at this moment`]]);
      this.tool(null);
      text(this.listTitle, '');
      keyed(this.list, [], String, null, null);
      return;
    }
    if (kind === 'flow') this.showFlow(id, what);
    else if (kind === 'link') this.showCable(id, what);
    else this.showNode(id, what);
  }

  /** Facts: rows that have a value. */
  show(rows) {
    const known = rows.filter(([, value]) => value !== null && value !== undefined && value !== '');
    keyed(this.facts, known, ([name]) => name, ([name]) => h('div', {}, h('dt', { text: name }), h('dd')), (element, [, value]) => text(element.lastChild, value));
  }

  /** Buttons are made once a choice, so that what is typed stays. */
  tool(key, make) {
    const wanted = key !== null && mayAct(this.app) ? key : null;
    if (this.toolsFor === wanted) return;
    this.toolsFor = wanted;
    this.tools.replaceChildren(...(wanted === null ? [] : [make()]));
  }

  showNode(id, node) {
    const { state, index } = this.app.store;
    text(this.title, node.name ?? id);
    const hosts = index.hosts.get(id)?.length;
    const vms = Object.values(state.vms).filter((vm) => vm.host === node.name).map((vm) => vm.name);
    this.show([
      ['Kind', node.kind], ['State', node.hot ? `${node.state}, hot spot` : node.state], ['GUID', node.guid],
      ['LIDs', (node.lids ?? []).join(', ')], ['Rank', node.rank], ['Roles', (node.roles ?? []).join(', ')],
      ['Process', [node.process, node.pid && `pid ${node.pid}`].filter(Boolean).join(', ')],
      ['At switch', node.leaf === null || node.leaf === undefined ? null : nodeName(state, node.leaf)],
      ['Hosts below', hosts ? count(hosts) : null], ['Machines', vms.length ? names(vms, 8) : null],
    ]);
    this.tool(`node ${id}`, () => h('div', {}, hosts && this.app.isFolding() ? this.foldButton(id) : null, nodeActions(node.name)));
    const cables = index.cables.get(id) ?? [];
    text(this.listTitle, plural(cables.length, 'link'));
    const own = (cable) => (String(state.cables[cable].a) === id ? 0 : 1);
    const port = (cable) => Number(own(cable) ? state.cables[cable].bp : state.cables[cable].ap);
    keyed(this.list, [...cables].sort((a, b) => port(a) - port(b)).slice(0, ROWS_MAX), String, (cable) => this.portRow(cable), (element, cable) => {
      const what = state.cables[cable];
      text(element.children[0].firstChild, `${port(cable)} → ${endName(state, what, 1 - own(cable))}`);
      const busy = what.ab || what.ba ? `${rate(most(what, 'mbps'), state.shaped)}, waits ${percent(most(what, 'wait'))}` : 'idle';
      text(element.children[1], what.state === 'active' || !what.state ? busy : what.state);
      element.classList.toggle('down', what.state === 'down');
    });
  }

  foldButton(id) {
    const isOpen = this.app.view.open.has(id);
    return h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'act', text: isOpen ? 'Fold hosts' : 'Unfold hosts', on: { click: () => this.app.toggleFold(id) } }));
  }

  portRow(cable) {
    return h('li', { class: 'row' }, h('span', {}, link('', () => this.app.choose({ cable }, true))), h('span', { class: 'value' }));
  }

  showCable(id, cable) {
    const { state } = this.app.store;
    text(this.title, cableName(state, cable));
    const planned = cable.planned && `${cable.planned} beside the plan`;
    this.show([
      ['State', cable.state ?? 'active'], ['Speed', [cable.rate, cable.gbps && `${cable.gbps} Gb/s`].filter(Boolean).join(', ')],
      ['Faults', (cable.faults ?? []).map((fault) => state.faults[fault]?.text ?? fault).join(', ')], ['Plan', planned],
    ]);
    this.tool(`cable ${id}`, () => cableActions(id));
    const shared = sharers(state);
    const rows = [0, 1].flatMap((way) => wayRows(state, id, cable, way, shared));
    text(this.listTitle, 'Each direction, each lane');
    keyed(this.list, rows, (row) => row.key, () => makeBar(), (element, row) => fillBar(element, row));
  }

  showFlow(id, flow) {
    const { state } = this.app.store;
    text(this.title, flow.name ?? id);
    this.show([
      ['From', flow.from], ['To', flow.to], ['State', [flow.state, flow.why].filter(Boolean).join(': ')], ['Set', flow.set],
      ['Rate', rate(flow.mbps, state.shaped)], ['Delivered', flow.delivered === undefined ? null : bytes(flow.delivered)], ['Repeated', flow.repeated ? count(flow.repeated) : null],
      ['SL, VL', `${flow.sl ?? '–'}, ${flow.vl ?? '–'}`],
      ['Latency', latency(flow)],
    ]);
    this.tool(['running', 'starting'].includes(flow.state) ? `flow ${id}` : null, () => h('div', { class: 'buttons' }, stopFlow(id)));
    const rows = this.hopRows(id, flow);
    text(this.listTitle, rows.length ? `Hop by hop, ${plural(rows.length, 'link')}` : 'Its path is not known');
    keyed(this.list, rows, (row) => row.key, () => makeHop(this.app), (element, row) => fillHop(element, row, state));
  }

  /** The server's hops where there are some, else what the shown moment tells. */
  hopRows(id, flow) {
    const { state } = this.app.store;
    const told = !this.app.store.past && this.hops?.id === id ? this.hops.hops : null;
    const shared = sharers(state);
    return hopsOf(flow).slice(0, ROWS_MAX).map(({ cable, way, lane: known }, nth) => {
      const what = state.cables[cable];
      const hop = told?.find((one) => String(one.cable) === cable);
      const data = what && (way ? what.ba : what.ab);
      const lane = hop?.vl ?? known;
      const shares = hop?.shares?.map((one) => ({ id: one.flow, mbps: one.mbps })) ?? onWay(shared, cable, way).map((one) => ({ id: one, mbps: state.flows[one].mbps }));
      return {
        key: `${nth} ${cable}`, cable, name: what ? wayName(state, what, way) : `link ${cable}`,
        lane, mbps: hop?.mbps ?? data?.mbps ?? null, wait: hop?.wait ?? waitFor(what, way, lane),
        shares: shares.filter((one) => one.id !== id), own: flow.mbps,
      };
    });
  }

  async askHops() {
    const { view, store, status } = this.app;
    const id = view.flow;
    if (!id || store.past || status !== 'live' || document.hidden || !store.state?.flows[id] || this.asked) return;
    this.asked = new AbortController();
    try {
      const answer = await get(`/api/flow?id=${encodeURIComponent(id)}`, this.asked.signal);
      if (this.app.view.flow === id && Array.isArray(answer.hops)) {
        this.hops = { id, hops: answer.hops };
        this.update();
      }
    } catch { /* the state's own path has to do */ }
    this.asked = null;
  }
}

function wayRows(state, id, cable, way, shared) {
  const data = way ? cable.ba : cable.ab;
  const flows = onWay(shared, id, way).map((flow) => state.flows[flow].name ?? flow);
  const rows = [{
    key: `${way}`, name: wayName(state, cable, way), mbps: data?.mbps ?? 0, wait: data?.wait ?? 0, shaped: state.shaped, gbps: cable.gbps,
    note: flows.length ? `flows: ${names(flows, 5)}` : '', isLane: false,
  }];
  for (const [lane, one] of Object.entries(data?.lanes ?? {})) {
    rows.push({ key: `${way} ${lane}`, lane: Number(lane), name: `lane ${lane}`, mbps: one.mbps ?? 0, wait: one.wait ?? 0, shaped: state.shaped, gbps: cable.gbps, note: '', isLane: true });
  }
  return rows;
}

function makeBar() {
  return h('li', { class: 'way' }, h('p', { class: 'title' }), h('p', { class: 'more' }), h('meter', { min: 0, max: 1, 'aria-label': 'Share of time that packets wait' }), h('p', { class: 'note' }));
}

function fillBar(element, row) {
  element.classList.toggle('lane', row.isLane);
  if (row.isLane) element.dataset.lane = String(row.lane % 8);
  text(element.children[0], row.name);
  const used = row.shaped && row.gbps ? ` (${percent((row.mbps * 8) / 1000 / row.gbps)} of the link)` : '';
  text(element.children[1], `${rate(row.mbps, row.shaped)}${used}, waits ${percent(row.wait)}`);
  attribute(element.children[2], 'value', Math.min(1, row.wait).toFixed(3));
  text(element.children[3], row.note);
  element.children[3].hidden = !row.note;
}

function makeHop(app) {
  const name = link('', () => app.choose({ cable: name.cable }, true));
  return h('li', { class: 'hop' }, h('p', { class: 'title' }, h('span', { class: 'swatch' }), name), h('p', { class: 'more' }),
    h('meter', { min: 0, max: 1, 'aria-label': 'Share of time that packets wait' }), h('p', { class: 'note' }));
}

const SHARES_MAX = 4;

function fillHop(element, row, state) {
  const [, name] = element.children[0].children;
  name.cable = row.cable;
  text(name, row.name);
  element.children[0].firstChild.dataset.lane = row.lane === null || row.lane === undefined ? '' : String(row.lane % 8);
  text(element.children[1], `${row.lane === null || row.lane === undefined ? '' : `lane ${row.lane}, `}${rate(row.mbps, state.shaped)}, waits ${percent(row.wait)}`);
  attribute(element.children[2], 'value', Math.min(1, row.wait).toFixed(3));
  const total = row.shares.reduce((sum, one) => sum + (one.mbps ?? 0), row.own ?? 0);
  const share = (one) => `${state.flows[one.id]?.name ?? one.id}${total > 0 && Number.isFinite(one.mbps) ? ` ${percent(one.mbps / total)}` : ''}`;
  const sorted = [...row.shares].sort((a, b) => (b.mbps ?? 0) - (a.mbps ?? 0));
  text(element.children[3], sorted.length ? `shared with ${names(sorted.map(share), SHARES_MAX)}` : 'its own');
}
