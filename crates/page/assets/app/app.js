// What the parts share: the state, the view, what is chosen, and what happens when something changes.

import { attribute, find, h, keyed, say, text, toast } from './dom.js';
import { Store, hexGuid, indexOf, nodeNamed } from './state.js';
import { COLOURS, FILTERS, keepView, parseView, sharedUrl } from './view.js';
import { Camera } from './camera.js';
import { FabricMap } from './map.js';
import { listen } from './gestures.js';
import { isFolding, foldedInto } from './scene.js';
import { matchesOf } from './search.js';
import { Inspector } from './inspector.js';
import { Panels } from './panels.js';
import { Tables } from './tables.js';
import { Tape } from './tape.js';
import { differences } from './compare.js';
import { Places } from './places.js';
import { showLegend, showWhen } from './legend.js';
import { tipWords } from './tips.js';
import { csv, png, svg } from './export.js';
import { count, moment, plural, rate } from './words.js';

const COLOUR_WORDS = { state: 'State', use: 'Data', wait: 'Wait' };
const FILTER_WORDS = { all: 'All', trouble: 'Trouble', traffic: 'Traffic' };
const DASH_MS = 66;

export class App {
  constructor() {
    this.store = new Store();
    this.view = parseView(location.hash.slice(1));
    this.status = 'connecting';
    this.camera = new Camera();
    if (this.view.camera) this.camera.set(this.view.camera);
    this.places = new Places(() => this.map.need('scene'));
    this.shared = {
      view: this.view, camera: this.camera, dragged: () => this.places.all(), matches: (state, index) => this.matches(state, index),
      nodeNamed: (name) => nodeNamed(this.store, name), phase: () => this.phase ?? 0,
    };
    this.map = new FabricMap(find('pane'), this.shared);
    this.other = null;
    this.tables = new Tables(this);
    this.panels = new Panels(this);
    this.inspector = new Inspector(this);
    this.tape = new Tape(this);
    this.wire();
    this.store.onChange((changed) => this.changed(changed));
    if (this.view.wasCut) toast('The address was longer than a view needs; the rest was left out.');
  }

  wire() {
    this.camera.onMove(() => {
      for (const map of this.maps()) map.need('ground');
      const { x, y, zoom } = this.camera;
      this.view.camera = this.camera.isFitted ? null : { x, y, zoom };
      this.keep();
    });
    listen(this.map, this.mapActions());
    this.radios('colour', COLOURS, COLOUR_WORDS, 'dress');
    this.radios('filter', FILTERS, FILTER_WORDS, 'dress');
    const middle = () => [this.map.size.width / 2, this.map.size.height / 2, this.map.place(), this.map.size];
    find('zoom-in').addEventListener('click', () => this.map.scene && this.camera.zoomAt(1.5, ...middle()));
    find('zoom-out').addEventListener('click', () => this.map.scene && this.camera.zoomAt(1 / 1.5, ...middle()));
    find('fit').addEventListener('click', () => this.camera.fit());
    find('fold').addEventListener('click', () => this.foldAll());
    find('replace').addEventListener('click', () => this.places.clear());
    const input = find('find');
    input.value = this.view.find;
    input.addEventListener('input', () => this.search(input.value));
    input.addEventListener('keydown', (event) => { if (event.key === 'Enter') this.toFirstMatch(); });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.legend());
  }

  mapActions() {
    return {
      choose: (map, found) => this.clicked(found),
      drag: (map, found, x, y) => this.dragged(found, x, y),
      dropped: () => this.places.save(),
      tip: (map, found, at) => this.tip(map, found, at),
      focus: (map, id) => say(tipWords(this, { node: id }).join(', ')),
    };
  }

  /** A group of buttons of which one is chosen. */
  radios(key, values, words, need) {
    const box = find(key);
    const buttons = values.map((value) => h('button', {
      type: 'button', role: 'radio', text: words[value],
      on: {
        click: () => this.pick(key, value, need),
        keydown: (event) => {
          const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
          if (!by) return;
          const next = (values.indexOf(value) + by + values.length) % values.length;
          this.pick(key, values[next], need);
          buttons[next].focus();
          event.preventDefault();
        },
      },
    }));
    box.append(...buttons);
    this.showRadios = { ...this.showRadios, [key]: () => buttons.forEach((button, nth) => {
      attribute(button, 'aria-checked', values[nth] === this.view[key]);
      attribute(button, 'tabindex', values[nth] === this.view[key] ? 0 : -1);
    }) };
    this.showRadios[key]();
  }

  pick(key, value, need) {
    this.view[key] = value;
    this.showRadios[key]();
    this.keep();
    for (const map of this.maps()) map.need(need, 'ground');
    if (key === 'filter') this.refreshTables();
    this.legend();
  }

  maps() { return this.other ? [this.map, this.other] : [this.map]; }

  keep() { keepView(this.view); }
  sharedUrl() { return sharedUrl(this.view); }
  isFolding() { return this.store.state !== null && isFolding(this.store.state); }

  /** Another view by the URL: a link that was pasted. */
  readView() {
    const view = parseView(location.hash.slice(1));
    Object.assign(this.view, view);
    find('find').value = view.find;
    if (view.camera) this.camera.set(view.camera);
    else this.camera.fit();
    Object.values(this.showRadios).forEach((show) => show());
    if (!this.store.state) return;
    this.tables.open();
    this.store.touch('all');
    this.inspector.open();
    for (const map of this.maps()) map.need('scene');
    if (view.at !== null) this.tape.goTo(view.at);
  }

  matches(state, index) { return matchesOf(state, index, this.view); }

  search(words) {
    this.view.find = words.slice(0, 200);
    this.keep();
    for (const map of this.maps()) map.need('dress');
    this.refreshTables();
  }

  refreshTables() {
    if (!this.store.state) return;
    this.tables.current.page = 0;
    this.tables.update(new Set(['all']));
    this.showFound();
  }

  showFound() {
    const matches = this.matches(this.store.state, this.store.index);
    text(find('found'), matches === null ? '' : plural(matches.size, 'device'));
  }

  toFirstMatch() {
    const matches = this.store.state && this.view.find ? this.matches(this.store.state, this.store.index) : null;
    const first = matches && [...matches][0];
    if (first) this.choose({ node: first }, true);
  }

  clicked(found) {
    if (!found) this.choose({});
    else if (found.cable) this.choose({ cable: found.cable });
    else {
      const hosts = this.store.index.hosts.get(found.node)?.length;
      if (hosts && this.isFolding() && !this.view.unfolded && (this.view.node === found.node || !this.view.open.has(found.node))) this.toggleFold(found.node);
      this.choose({ node: found.node });
    }
  }

  toggleFold(id) {
    const { open } = this.view;
    const isOpen = open.has(id);
    if (isOpen) open.delete(id);
    else open.add(id);
    say(`${this.store.state.nodes[id]?.name}: hosts ${isOpen ? 'folded' : 'unfolded'}`);
    this.refold();
    this.inspector.open();
  }

  foldAll() {
    this.view.unfolded = !this.view.unfolded && !this.view.open.size;
    this.view.open.clear();
    this.refold();
  }

  refold() {
    for (const map of this.maps()) map.need('scene');
    this.showFold();
    this.keep();
  }

  showFold() {
    const button = find('fold');
    button.hidden = !this.isFolding();
    text(button, this.view.unfolded || this.view.open.size ? 'Fold all' : 'Unfold all');
    find('replace').hidden = !this.places.some();
  }

  /** Chooses a device, a link or a flow; `look` moves the map to it. */
  choose({ node = null, cable = null, flow = null }, look = false) {
    Object.assign(this.view, { node, cable, flow });
    this.keep();
    if (!this.store.state) return;
    if (node && look) this.reveal(node);
    if (cable && look) this.revealCable(cable);
    this.inspector.open();
    this.tables.current.update();
    for (const map of this.maps()) map.need('over');
    if (flow) this.animate();
    const what = node ? tipWords(this, { node }) : cable ? tipWords(this, { cable }) : flow ? [`Flow ${flow}, path lit`] : [];
    if (what.length) say(what.join(', '));
  }

  chooseNamed(name) {
    const id = name ? nodeNamed(this.store, name) : null;
    if (id !== null) this.choose({ node: id }, true);
  }

  /** Unfolds what hides a device, and goes there. */
  reveal(id) {
    const leaf = this.store.state.nodes[id] ? foldedInto(this.store.state, this.view, id, this.isFolding()) : null;
    if (leaf !== null) {
      this.view.open.add(leaf);
      this.refold();
    }
    requestAnimationFrame(() => requestAnimationFrame(() => this.map.goTo(id)));
  }

  revealCable(id) {
    const cable = this.store.state.cables[id];
    if (cable) this.reveal(this.store.index.hosts.has(String(cable.a)) ? String(cable.b) : String(cable.a));
  }

  dragged(found, x, y) {
    const node = this.store.state.nodes[found.node];
    // Hosts of an unfolded leaf stand in its block.
    if (!node || found.nth >= this.map.scene.shown) return;
    this.places.move(node.guid, x, y / this.map.scene.stretch);
    find('replace').hidden = false;
    for (const map of this.maps()) map.need('scene');
  }

  tip(map, found, at) {
    const tip = map.pane.querySelector('.tip');
    tip.hidden = !found;
    if (!found) return;
    keyed(tip, tipWords(this, found, map.state).map((words, nth) => ({ words, nth })), (line) => line.nth, () => h('p'), (element, line) => text(element, line.words));
    const [width, height] = [tip.offsetWidth, tip.offsetHeight];
    tip.style.left = `${Math.max(4, Math.min(map.size.width - width - 4, at.x + 14))}px`;
    tip.style.top = `${at.y + 18 + height > map.size.height ? at.y - height - 10 : at.y + 18}px`;
  }

  openTab(tab) {
    this.view.tab = tab;
    this.keep();
    this.tables.open();
  }

  /** A flow that was started here is chosen when it appears. */
  expectFlow(what, known) {
    this.expected = { ...what, known, since: performance.now() };
    this.openTab('flows');
    this.takeExpected();
  }

  takeExpected() {
    const wanted = this.expected;
    if (!wanted) return;
    if (performance.now() - wanted.since > 10_000) {
      this.expected = null;
      return;
    }
    const found = Object.entries(this.store.state.flows).find(([id, flow]) => !wanted.known.has(id) && flow.path?.length && (wanted.name === null || flow.name === wanted.name || id === wanted.name));
    if (!found) return;
    this.expected = null;
    this.choose({ flow: found[0] });
  }

  /** Moves the dashes of a flow's way, fifteen times a second, as long as one is chosen and the tab is seen. */
  animate() {
    if (this.dashes || matchMedia('(prefers-reduced-motion: reduce)').matches) return;
    this.dashes = setInterval(() => {
      if (!this.view.flow) {
        clearInterval(this.dashes);
        this.dashes = null;
      } else if (!document.hidden) {
        this.phase = (performance.now() / 40) % 14;
        for (const map of this.maps()) map.need('over');
      }
    }, DASH_MS);
  }

  heardKey(state) {
    if (!state || typeof state !== 'object') return;
    const wasAway = this.status !== 'live';
    this.setStatus('live');
    this.places.open(Object.values(state.nodes ?? {}).map((node) => hexGuid(node.guid)));
    this.store.key(state);
    if (wasAway) this.tape.askRange();
  }

  heardPatch(patch, at) {
    this.store.patch(patch, at);
  }

  heardGone(words, hint = 'the page goes on by itself when it is back') {
    if (this.status === 'gone') return;
    this.setStatus('gone', `The laboratory is gone: ${words}. What is shown is its last state; ${hint}`);
  }

  denied(error) {
    this.setStatus('denied', `${error.message}. ${error.hint ?? 'Open the address that weft ui printed: it has the token.'}`);
  }

  setStatus(status, words = '') {
    this.status = status;
    const banner = find('banner');
    banner.hidden = !words;
    text(banner, words);
    document.body.classList.toggle('gone', status === 'gone' || status === 'denied');
    this.showStatus();
    if (this.store.state) this.store.touch('may_act');
  }

  showStatus() {
    const words = { live: this.store.past ? 'past' : 'live', gone: 'gone', denied: 'no access', connecting: 'connecting' };
    text(find('status'), this.tape?.range && !this.tape.range.live ? 'tape' : words[this.status]);
    find('status').className = `chip ${this.status}${this.store.past ? ' past' : ''}`;
  }

  showPast(state) {
    this.store.toPast(state);
    this.showStatus();
  }

  showLive() {
    this.store.toLive();
    this.showStatus();
  }

  openOther(state) {
    find('other').hidden = false;
    find('panes').classList.add('two');
    if (!this.other) {
      this.other = new FabricMap(find('other'), this.shared);
      listen(this.other, this.mapActions());
    }
    this.otherState = state;
    this.other.source(state, indexOf(state));
    this.keep();
    this.showDifferences();
  }

  closeOther() {
    this.view.against = null;
    find('other').hidden = true;
    find('panes').classList.remove('two');
    this.other = null;
    this.otherState = null;
    find('other').replaceWith(freshPane());
    this.keep();
    this.showDifferences();
  }

  showDifferences() {
    const { state } = this.store;
    const isOpen = Boolean(this.otherState) && state !== null;
    showWhen(find('pane'), isOpen ? `B: ${moment(state.at_ms, state.clock)}` : null);
    if (isOpen) showWhen(find('other'), `A: ${moment(this.otherState.at_ms, this.otherState.clock)}`);
    const card = find('differences');
    card.hidden = !isOpen;
    if (!isOpen) return;
    const all = differences(this.otherState, state);
    const list = card.querySelector('ul');
    text(card.querySelector('.number'), all.length ? count(all.length) : '');
    card.querySelector('.none').hidden = all.length > 0;
    keyed(list, all.slice(0, 100).map((words, nth) => ({ words, nth })), (one) => one.nth, () => h('li', { class: 'item' }), (element, one) => text(element, one.words));
  }

  /** Something of the shown state has changed. */
  changed(changed) {
    const { store } = this;
    if (!store.state) return;
    find('empty').hidden = Object.keys(store.state.nodes).length > 0;
    if (this.shape !== store.shape) {
      this.shape = store.shape;
      this.map.source(store.state, store.index);
      this.showFold();
    } else if (['nodes', 'cables', 'faults', 'shaped'].some((table) => changed.has(table))) {
      this.map.need('dress');
    } else if (changed.has('flows') || changed.has('hot')) {
      this.map.need(this.view.filter === 'traffic' ? 'dress' : 'over');
    }
    this.showSummary();
    this.panels.update(changed);
    this.inspector.update();
    this.tables.update(changed);
    if (this.view.find || this.view.filter !== 'all') this.showFound();
    if (this.view.flow) this.animate();
    this.takeExpected();
    this.tape.render();
    this.showDifferences();
    requestAnimationFrame(() => this.legend());
  }

  legend() {
    if (this.store.state && this.map.scene) showLegend(this, this.map);
  }

  summaryRows() {
    const { summary, shaped, cables } = this.store.state;
    const down = summary.links_down ?? Object.values(cables).filter((cable) => cable.state === 'down').length;
    return [
      ['switches', 'switch', 'switches', summary.switches], ['hosts', 'host', 'hosts', summary.hosts], ['cables', 'cable', 'cables', summary.cables],
      ['down', 'link down', 'links down', down], ['flows', 'flow', 'flows', summary.flows],
    ].map(([key, one, many, value]) => ({ key, value: count(value ?? 0), words: value === 1 ? one : many, isBad: key === 'down' && value > 0 }))
      .concat([{ key: 'rate', value: rate(summary.mbps ?? 0, shaped), words: '', isBad: false }]);
  }

  summaryWords() {
    return this.summaryRows().map((row) => `${row.value} ${row.words}`.trim()).join(', ');
  }

  showSummary() {
    const { state } = this.store;
    text(find('lab'), state.lab ?? '');
    const title = `${state.lab ?? 'weft'} – weft`;
    if (document.title !== title) document.title = title;
    keyed(find('summary'), this.summaryRows(), (row) => row.key, () => h('li', {}, h('b'), h('span')), (element, row) => {
      text(element.firstChild, row.value);
      text(element.lastChild, row.words);
      element.classList.toggle('bad', row.isBad);
    });
  }

  async export(kind) {
    if (!this.store.state) return;
    if (kind === 'csv') csv(this, this.tables.current);
    else if (kind === 'svg') svg(this, this.map);
    else await png(this, this.map);
  }
}

function freshPane() {
  return h('div', { class: 'pane', id: 'other', hidden: true },
    h('canvas', { class: 'ground', 'aria-hidden': 'true' }),
    h('canvas', { class: 'over', tabindex: 0, role: 'application', 'aria-label': 'Map of the fabric at the other moment', 'aria-describedby': 'map-keys' }),
    h('p', { class: 'when', hidden: true }), h('div', { class: 'tip', hidden: true }));
}
