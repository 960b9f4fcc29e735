// What colours and widths mean, and what they do not.

import { isDark, theme } from './colours.js';
import { find, h, text } from './dom.js';
import { percent, rate } from './words.js';

const swatch = (colour, kind = '') => {
  const element = h('i', { class: `key ${kind}` });
  element.style.setProperty('--key', colour);
  return element;
};

function scale(colours, words) {
  const ramp = h('span', { class: 'ramp', 'aria-hidden': 'true' }, colours.map((colour) => swatch(colour)));
  return h('span', { class: 'scale' }, h('span', { text: words[0] }), ramp, h('span', { text: words[1] }));
}

const entry = (colour, words, kind) => h('span', { class: 'entry' }, swatch(colour, kind), h('span', { text: words }));

/** Draws the legend again when what it says has changed. */
export function showLegend(app, map) {
  const { state } = app.store;
  const box = find('legend');
  const colours = theme(isDark());
  const { colour } = app.view;
  const top = map.top ?? { mbps: 0, wait: 0 };
  const key = JSON.stringify([colour, state.shaped, state.watched, Object.keys(state.vms).length > 0, isDark(), map.isApart, [...map.lanes], top.mbps.toPrecision(2), top.wait.toFixed(2)]);
  if (box.key === key) return;
  box.key = key;
  const rows = [];
  if (colour === 'use') rows.push(h('strong', { text: 'Data' }), scale(colours.data, state.shaped ? ['0', 'link’s rate'] : ['0', top.mbps ? rate(top.mbps, false) : 'most']));
  if (colour === 'wait') rows.push(h('strong', { text: 'Waiting for credits' }), scale(colours.wait, ['0', state.shaped || !top.wait ? '100 %' : percent(top.wait)]));
  if (colour === 'state') rows.push(h('strong', { text: 'State' }), entry(colours.active, 'active'));
  rows.push(entry(colours.starting, 'starting', 'dotted'), entry(colours.down, 'down', 'dashed'), entry(colours.soft, 'width: wait', 'wide'));
  if (Object.keys(state.vms).length) rows.push(entry(colours.vm, 'has VMs', 'square'));
  rows.push(entry(colours.match, 'master SM', 'dot'));
  if (map.isApart && colour !== 'state') rows.push(...[...map.lanes].sort((a, b) => a - b).map((lane) => entry(colours.lanes[lane % 8], `lane ${lane}`)));
  const notes = [];
  if (!state.shaped && colour !== 'state') notes.push('This lab is not shaped: packets take no time, so colours and widths compare links with each other; rates are the machine’s.');
  if (!state.watched) notes.push('Counters are not being gathered.');
  box.replaceChildren(h('div', { class: 'entries' }, rows), ...notes.map((words) => h('p', { text: words })));
}


export function showWhen(pane, words) {
  const element = pane.querySelector('.when');
  element.hidden = !words;
  text(element, words ?? '');
}
