// The tables below the map: flows, devices, links, events.

import { h, find, attribute, text } from './dom.js';
import { cableName, most, nodeName } from './state.js';
import { meetsEvent, meetsFlow } from './search.js';
import { worstWait } from './hot.js';
import { Table } from './table.js';
import { flowForm, mayAct, stopFlow } from './actions.js';
import { bytes, count, micros, moment, percent, rate } from './words.js';
import { TABS } from './view.js';

const TITLES = { flows: 'Flows', devices: 'Devices', links: 'Links', events: 'Events' };

const flowState = (flow) => flow.state ?? 'running';

function flowTable(app) {
  const shaped = () => app.store.state.shaped;
  const stop = {
    key: 'stop', title: 'Stop', value: null,
    fill: (cell, [id, flow]) => {
      const wanted = mayAct(app) && ['running', 'starting'].includes(flowState(flow));
      if (wanted && !cell.firstChild) cell.append(stopFlow(id));
      else if (!wanted) cell.replaceChildren();
    },
  };
  return new Table({
    caption: 'Flows', empty: 'No flows. Start one here, or by weft flow start.', isFiltered: () => app.view.find !== '', sort: { key: 'rate', down: true },
    rows: () => Object.entries(app.store.state.flows).filter(([, flow]) => meetsFlow(flow, app.view.find)),
    key: ([id]) => id, choose: ([id]) => app.choose({ flow: app.view.flow === id ? null : id }), isChosen: ([id]) => app.view.flow === id,
    columns: [
      { key: 'name', title: 'Flow', value: ([id, flow]) => flow.name ?? id },
      { key: 'from', title: 'From', value: ([, flow]) => flow.from },
      { key: 'to', title: 'To', value: ([, flow]) => flow.to },
      { key: 'state', title: 'State', value: ([, flow]) => flowState(flow), state: ([, flow]) => flowState(flow) },
      { key: 'rate', title: 'Rate', numeric: true, value: ([, flow]) => flow.mbps ?? null, show: ([, flow]) => rate(flow.mbps, shaped()) },
      { key: 'wait', title: 'Worst wait', numeric: true, value: ([, flow]) => worstWait(app.store.state, flow), show: ([, flow]) => percent(worstWait(app.store.state, flow)) },
      { key: 'latency', title: 'Latency', numeric: true, value: ([, flow]) => flow.mean_us ?? null, show: ([, flow]) => micros(flow.mean_us) },
      { key: 'lane', title: 'SL, VL', value: ([, flow]) => `${flow.sl ?? '–'}, ${flow.vl ?? '–'}` },
      { key: 'delivered', title: 'Delivered', numeric: true, value: ([, flow]) => flow.delivered ?? null, show: ([, flow]) => bytes(flow.delivered) },
      { key: 'repeated', title: 'Repeated', numeric: true, value: ([, flow]) => flow.repeated ?? null, show: ([, flow]) => count(flow.repeated) },
      { key: 'why', title: 'Why', class: 'words', value: ([, flow]) => flow.why ?? '' },
      stop,
    ],
  });
}

function deviceTable(app) {
  const { store } = app;
  const flags = ([, node]) => [...(node.roles ?? []), ...(node.hot ? ['hot spot'] : [])].join(', ');
  const under = ([id]) => store.index.hosts.get(id)?.length ?? null;
  return new Table({
    caption: 'Devices, as on the map', empty: 'No device fits.', sort: { key: 'name', down: false },
    rows: () => {
      const matches = app.matches(store.state, store.index);
      const { nodeList } = store.index;
      return matches === null ? nodeList : nodeList.filter(([id]) => matches.has(id));
    },
    key: ([id]) => id, choose: ([id]) => app.choose({ node: id }, true), isChosen: ([id]) => app.view.node === id,
    columns: [
      { key: 'name', title: 'Device', value: ([, node]) => node.name },
      { key: 'kind', title: 'Kind', value: ([, node]) => node.kind },
      { key: 'state', title: 'State', value: ([, node]) => node.state ?? 'up', state: ([, node]) => node.state ?? 'up' },
      { key: 'lids', title: 'LIDs', value: ([, node]) => node.lids?.[0] ?? null, show: ([, node]) => (node.lids ?? []).join(', ') },
      { key: 'guid', title: 'GUID', class: 'mono', value: ([, node]) => node.guid },
      { key: 'links', title: 'Links', numeric: true, value: ([id]) => store.index.cables.get(id)?.length ?? 0 },
      { key: 'hosts', title: 'Hosts', numeric: true, value: under, show: (row) => count(under(row)) },
      { key: 'leaf', title: 'At', value: ([, node]) => (node.leaf === null || node.leaf === undefined ? '' : nodeName(store.state, node.leaf)) },
      { key: 'roles', title: 'Roles', value: flags },
      { key: 'process', title: 'Process', value: ([, node]) => node.process ?? '', show: ([, node]) => [node.process, node.pid && `pid ${node.pid}`].filter(Boolean).join(', ') },
    ],
  });
}

const lanes = (cable) => [...new Set([...Object.keys(cable.ab?.lanes ?? {}), ...Object.keys(cable.ba?.lanes ?? {})])].sort((a, b) => a - b).join(', ');

function linkTable(app) {
  const { store } = app;
  const shaped = () => store.state.shaped;
  const both = (show) => ([, cable]) => (cable.ab || cable.ba ? `${show(cable.ab)} / ${show(cable.ba)}` : '–');
  return new Table({
    caption: 'Links, as on the map; data and wait from A to B / from B to A', empty: 'No link fits.', sort: { key: 'wait', down: true },
    rows: () => {
      const matches = app.matches(store.state, store.index);
      const { cableList } = store.index;
      return matches === null ? cableList : cableList.filter(([, cable]) => matches.has(String(cable.a)) || matches.has(String(cable.b)));
    },
    key: ([id]) => id, choose: ([id]) => app.choose({ cable: id }, true), isChosen: ([id]) => app.view.cable === id,
    columns: [
      { key: 'name', title: 'Link', value: ([, cable]) => cableName(store.state, cable) },
      { key: 'state', title: 'State', value: ([, cable]) => cable.state ?? 'active', state: ([, cable]) => cable.state ?? 'active' },
      { key: 'speed', title: 'Speed', value: ([, cable]) => cable.gbps ?? null, show: ([, cable]) => cable.rate ?? '–' },
      { key: 'data', title: 'Data A→B / B→A', numeric: true, value: ([, cable]) => most(cable, 'mbps'), show: both((way) => rate(way?.mbps ?? 0, shaped())) },
      { key: 'wait', title: 'Wait A→B / B→A', numeric: true, value: ([, cable]) => most(cable, 'wait'), show: both((way) => percent(way?.wait ?? 0)) },
      { key: 'lanes', title: 'Lanes', value: ([, cable]) => lanes(cable) },
      { key: 'faults', title: 'Faults', class: 'words', value: ([, cable]) => (cable.faults ?? []).map((id) => store.state.faults[id]?.text ?? id).join(', ') },
      { key: 'planned', title: 'Plan', value: ([, cable]) => cable.planned ?? 'as planned', state: ([, cable]) => (cable.planned ? 'warning' : 'plain') },
    ],
  });
}

function eventTable(app) {
  const { store } = app;
  return new Table({
    caption: 'Events, the newest first', empty: 'No events yet.', isFiltered: () => app.view.find !== '', sort: { key: 'nth', down: true },
    rows: () => Object.entries(store.state.events).filter(([, event]) => meetsEvent(event, app.view.find)),
    key: ([id]) => id, choose: ([, event]) => app.chooseNamed(event.node),
    columns: [
      { key: 'nth', title: 'Time', value: ([id]) => Number(id), show: ([, event]) => moment(event.at_ms ?? 0, store.state.clock) },
      { key: 'kind', title: 'Event', value: ([, event]) => event.kind, state: ([, event]) => eventKind(event.kind) },
      { key: 'node', title: 'Device', value: ([, event]) => event.node ?? '' },
      { key: 'text', title: 'What happened', class: 'words wide', value: ([, event]) => event.text },
    ],
  });
}

const eventKind = (kind) => (/down|kill|dead|fail|lost|silent|end/.test(String(kind)) ? 'down' : 'plain');

/** The tabs and what is in them. */
export class Tables {
  constructor(app) {
    this.app = app;
    this.tables = { flows: flowTable(app), devices: deviceTable(app), links: linkTable(app), events: eventTable(app) };
    this.form = flowForm(app);
    this.panel = find('tabpanel');
    this.tabs = TABS.map((tab) => h('button', {
      type: 'button', role: 'tab', id: `tab-${tab}`, 'aria-controls': 'tabpanel',
      on: { click: () => app.openTab(tab), keydown: (event) => this.key(event, tab) },
    }, h('span', { text: TITLES[tab] }), h('span', { class: 'number' })));
    find('tabs').append(...this.tabs);
    this.open();
  }

  get current() { return this.tables[this.app.view.tab]; }

  key(event, tab) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const next = TABS[(TABS.indexOf(tab) + by + TABS.length) % TABS.length];
    this.app.openTab(next);
    find(`tab-${next}`).focus();
    event.preventDefault();
  }

  open() {
    const { tab } = this.app.view;
    this.tabs.forEach((button, nth) => {
      attribute(button, 'aria-selected', TABS[nth] === tab);
      attribute(button, 'tabindex', TABS[nth] === tab ? 0 : -1);
    });
    attribute(this.panel, 'aria-labelledby', `tab-${tab}`);
    const shown = tab === 'flows' ? [this.form, this.current.element] : [this.current.element];
    // What is there stays there: a field that somebody types into would lose the focus.
    const isThere = shown.length === this.panel.children.length && shown.every((element, nth) => this.panel.children[nth] === element);
    if (!isThere) this.panel.replaceChildren(...shown);
    if (this.app.store.state) this.update(new Set(['all']));
  }

  update(changed) {
    const { state } = this.app.store;
    const { nodeList, cableList } = this.app.store.index;
    const counts = { flows: Object.keys(state.flows).length, devices: nodeList.length, links: cableList.length, events: Object.keys(state.events).length };
    TABS.forEach((tab, nth) => text(this.tabs[nth].lastChild, count(counts[tab])));
    this.form.hidden = !mayAct(this.app);
    if (changed.has('nodes') || changed.has('vms') || changed.has('all')) this.fillEnds();
    const needs = { flows: ['flows', 'cables'], devices: ['nodes', 'hot', 'cables'], links: ['cables', 'faults'], events: ['events'] };
    if (changed.has('all') || needs[this.app.view.tab].some((table) => changed.has(table))) this.current.update(!changed.has('all'));
  }

  fillEnds() {
    const many = Object.keys(this.app.store.state.vms).length;
    if (this.filled === `${this.app.store.shape}/${many}`) return;
    this.filled = `${this.app.store.shape}/${many}`;
    // After the first picture.
    clearTimeout(this.filling);
    this.filling = setTimeout(() => this.form.fillEnds(), 100);
  }
}

