// The cards beside the map: hot spots, alarms, faults, machines, managers, cabling, partitions.

import { attribute, find, h, keyed, text } from './dom.js';
import { cableName } from './state.js';
import { acknowledge, clearFault, mayAct } from './actions.js';
import { hotSpots, waitWords } from './hot.js';
import { count, cut, names, percent, plural, rate, since } from './words.js';

/** A card: a heading with a number, and a list. */
class Card {
  constructor(id, title, empty) {
    this.section = find(id);
    this.number = h('span', { class: 'number' });
    this.list = h('ul', { class: 'items' });
    this.none = h('p', { class: 'none', text: empty });
    this.section.replaceChildren(h('h2', { id: `${id}-title` }, h('span', { text: title }), this.number), this.list, this.none);
  }

  show(items, key, make, update, number = items.length) {
    text(this.number, number ? count(number) : '');
    this.none.hidden = items.length > 0;
    this.list.hidden = items.length === 0;
    this.section.classList.toggle('quiet', items.length === 0);
    keyed(this.list, items, key, make, update);
  }
}

/** An item with a title, a line of words, and perhaps a button at its end. */
function item(kind = '') {
  return h('li', { class: `item ${kind}` }, h('div', { class: 'body' }, h('p', { class: 'title' }), h('p', { class: 'more' })), h('div', { class: 'end' }));
}

function fill(element, title, more) {
  text(element.querySelector('.title'), title);
  const words = element.querySelector('.more');
  text(words, more);
  words.hidden = !more;
}

/** Shows a button only as long as it may be used. */
function end(element, wanted, make) {
  const place = element.querySelector('.end');
  if (wanted && !place.firstChild) place.append(make());
  else if (!wanted && place.firstChild) place.replaceChildren();
}

const link = (words, run) => h('button', { type: 'button', class: 'link', text: words, on: { click: run } });

const ITEMS_MAX = 50;
/** With thousands of flows this looks at all of them. */
const HOT_EVERY_MS = 500;
const SEVERITIES = ['critical', 'warning', 'info'];

export class Panels {
  constructor(app) {
    this.app = app;
    this.hotTimer = null;
    this.hot = new Card('hot', 'Hot spots', 'No hot spots: no host is waited for.');
    this.alarms = new Card('alarms', 'Alarms', 'No alarms.');
    this.faults = new Card('faults', 'Faults', 'No fault acts on the fabric.');
    this.vms = new Card('vms', 'Virtual machines', 'No virtual machines.');
    this.managers = new Card('managers', 'Managers', 'No manager runs.');
    this.cabling = new Card('cabling', 'Cabling', 'Not known yet.');
    this.partitions = new Card('partitions', 'Partitions', 'No partitions are known.');
  }

  update(changed) {
    const has = (...tables) => tables.some((table) => changed.has(table));
    if (changed.has('all') || (has('hot', 'flows', 'cables') && performance.now() - (this.hotAt ?? -HOT_EVERY_MS) > HOT_EVERY_MS)) this.showHot();
    else if (has('hot', 'flows', 'cables')) this.hotTimer ??= setTimeout(() => this.showHot(), HOT_EVERY_MS);
    if (has('alarms', 'may_act', 'at_ms')) this.showAlarms();
    if (has('faults', 'may_act', 'at_ms')) this.showFaults();
    if (has('vms')) this.showVms();
    if (has('managers')) this.showManagers();
    if (has('cables', 'nodes')) this.showCabling();
    if (has('partitions')) this.showPartitions();
  }

  showHot() {
    this.hotAt = performance.now();
    clearTimeout(this.hotTimer);
    this.hotTimer = null;
    const { store } = this.app;
    this.hot.show(hotSpots(store), (spot) => spot.host, () => h('li', { class: 'item hotspot' }), (element, spot) => {
      const words = hotWords(store, spot);
      if (element.words === JSON.stringify(words)) return;
      element.words = JSON.stringify(words);
      element.replaceChildren(
        h('p', { class: 'title' }, link(spot.host, () => this.app.chooseNamed(spot.host)), h('span', { text: words.title })),
        ...words.lines.map((line) => h('p', { class: line.kind }, line.flow ? link(line.flow, () => this.app.choose({ flow: line.id })) : null, h('span', { text: line.text }))),
      );
    });
  }

  showAlarms() {
    const { state } = this.app.store;
    const rank = ([, alarm]) => SEVERITIES.indexOf(alarm.severity) + (alarm.acknowledged ? 10 : 0);
    const alarms = Object.entries(state.alarms).sort((a, b) => rank(a) - rank(b) || (b[1].since_ms ?? 0) - (a[1].since_ms ?? 0));
    this.alarms.show(alarms.slice(0, ITEMS_MAX), ([id]) => id, () => item(), (element, [id, alarm]) => {
      const severity = SEVERITIES.includes(alarm.severity) ? alarm.severity : 'info';
      attribute(element, 'class', `item alarm ${severity}${alarm.acknowledged ? ' acknowledged' : ''}`);
      const more = [severity, alarm.where, `for ${since((state.at_ms ?? 0) - (alarm.since_ms ?? 0))}`, alarm.cause && `cause: ${alarm.cause}`, alarm.acknowledged && 'acknowledged'];
      fill(element, alarm.text, more.filter(Boolean).join(' · '));
      end(element, mayAct(this.app) && !alarm.acknowledged, () => acknowledge(id));
    }, alarms.length);
  }

  showFaults() {
    const { state } = this.app.store;
    const faults = Object.entries(state.faults);
    this.faults.show(faults.slice(0, ITEMS_MAX), ([id]) => id, () => item(), (element, [id, fault]) => {
      const left = Number.isFinite(fault.until_ms) ? `ends in ${since(fault.until_ms - state.at_ms)}` : 'until it is cleared';
      fill(element, fault.text ?? fault.kind, [fault.where, left].filter(Boolean).join(' · '));
      end(element, mayAct(this.app), () => clearFault(id));
    }, faults.length);
  }

  showVms() {
    const { state } = this.app.store;
    const vms = Object.entries(state.vms).sort(([, a], [, b]) => (b.state === 'moving') - (a.state === 'moving'));
    this.vms.show(vms.slice(0, ITEMS_MAX), ([id]) => id, () => item(), (element, [id, vm]) => {
      element.classList.toggle('moving', vm.state === 'moving');
      const place = vm.state === 'moving' && vm.moving_to ? `moving from ${vm.host} to ${vm.moving_to}` : `${vm.state} on ${vm.host}`;
      fill(element, vm.name ?? id, [place, vm.lid && `LID ${vm.lid}`].filter(Boolean).join(' · '));
    }, vms.length);
  }

  showManagers() {
    const { state } = this.app.store;
    this.managers.show(Object.entries(state.managers), ([id]) => id, makeManager, (element, [id, manager]) => {
      fill(element, `${kindWords(manager.kind ?? id)}: ${manager.state ?? 'running'}`, [manager.node && `on ${manager.node}`, manager.phase, manager.text].filter(Boolean).join(' · '));
      const { meter, words, box } = element.window;
      box.hidden = !(manager.window > 0);
      attribute(meter, 'max', manager.window > 0 ? manager.window : 1);
      attribute(meter, 'value', manager.in_flight ?? 0);
      text(words, `SMPs ${manager.in_flight ?? 0} of ${manager.window}`);
      element.classList.toggle('down', manager.state === 'down');
    });
  }

  showCabling() {
    const { state } = this.app.store;
    const { cableList } = this.app.store.index;
    const odd = cableList.filter(([, cable]) => cable.planned);
    text(this.cabling.none, `All ${plural(cableList.length, 'cable')} are as planned.`);
    this.cabling.show(odd.slice(0, ITEMS_MAX), ([id]) => id, () => item('warning'), (element, [id, cable]) => {
      const words = { missing: 'is missing', swapped: 'is plugged elsewhere than planned', slow: `is slower than planned (${cable.rate ?? 'unknown'})` };
      const title = element.querySelector('.title');
      if (!title.firstChild) title.append(link('', () => this.app.choose({ cable: id }, true)));
      text(title.firstChild, cableName(state, cable));
      text(element.querySelector('.more'), words[cable.planned] ?? cable.planned);
    }, odd.length);
  }

  showPartitions() {
    const partitions = Object.entries(this.app.store.state.partitions);
    this.partitions.show(partitions.slice(0, ITEMS_MAX), ([key]) => key, () => item(), (element, [key, partition]) => {
      const of = (kind, list) => (list?.length ? `${kind}: ${names(list)}` : null);
      const members = [of('full', partition.full), of('limited', partition.limited)].filter(Boolean);
      fill(element, cut(partition.name || key, 80), [key, plural(Number(partition.members ?? 0), 'member'), partition.text, ...members].filter(Boolean).join(' · '));
    }, partitions.length);
  }
}

const kindWords = (kind) => ({ sm: 'Subnet manager', pm: 'Performance manager', vmm: 'VM manager', hub: 'Hub' })[kind] ?? kind;

function makeManager() {
  const element = item();
  const meter = h('meter', { min: 0, 'aria-label': 'Outstanding SMPs' });
  const words = h('span');
  const box = h('div', { class: 'window' }, meter, words);
  element.querySelector('.body').append(box);
  element.window = { meter, words, box };
  return element;
}

const LINES_MAX = 5;

/** A hot spot in sentences. */
function hotWords(store, spot) {
  const { state } = store;
  const title = spot.declared
    ? ` is a hot spot${spot.since === null ? '' : ` for ${since(state.at_ms - spot.since)}`}`
    : ' looks like a hot spot: its flows wait';
  const lines = [];
  if (spot.contributors.length) {
    const flows = spot.contributors.map((id) => `${state.flows[id].name ?? id}`);
    lines.push({ kind: 'line', text: `Contributors: ${names(flows)}` });
  }
  if (spot.slow.length) lines.push({ kind: 'line slow', text: `On the slow lane: ${names(spot.slow)}` });
  if (!spot.victims.length) lines.push({ kind: 'line good', text: 'Victims: none waits behind its flows' });
  for (const victim of spot.victims.slice(0, LINES_MAX)) {
    const worst = victim.waits[0];
    lines.push({
      kind: 'line victim', id: victim.id, flow: `Victim: ${victim.flow.name ?? victim.id}`,
      text: ` (${victim.flow.from} → ${victim.flow.to}) has ${rate(victim.flow.mbps, state.shaped)}: waits ${percent(worst.wait)} at ${waitWords(store, worst)} behind ${names(worst.behind.map((id) => state.flows[id].name ?? id), 3)}`,
    });
  }
  if (spot.victims.length > LINES_MAX) lines.push({ kind: 'line', text: `and ${plural(spot.victims.length - LINES_MAX, 'more victim')}` });
  return { title, lines };
}
