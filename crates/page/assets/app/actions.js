// Buttons that change the laboratory. The server decides by the role; without it they are not shown at all.

import { act } from './api.js';
import { h, toast } from './dom.js';
import { save } from './export.js';

/** Whether buttons make sense: the role allows them, and what is shown is now. */
export const mayAct = (app) => Boolean(app.store.state?.may_act) && !app.store.past && app.status === 'live';

/** Sends an action and says what came of it. */
export async function run(what) {
  try {
    const done = await act(what);
    if (done.blob) {
      save(done.blob, done.name);
      toast(`Saved ${done.name}`);
    } else {
      toast(done);
    }
    return true;
  } catch (error) {
    toast(error.message, 'error', error.hint ?? null);
    return false;
  }
}

/** A button that does one thing at a time: what is pressed meanwhile is left out. */
function oneAtATime(words, kind, work) {
  const element = h('button', { type: 'button', class: `act ${kind}`, text: words });
  element.addEventListener('click', async () => {
    if (element.getAttribute('aria-busy') === 'true') return;
    element.setAttribute('aria-busy', 'true');
    await work();
    element.removeAttribute('aria-busy');
  });
  return element;
}

/** A button that sends one action at a time. */
export function button(words, what, kind = '') {
  return oneAtATime(words, kind, () => run(typeof what === 'function' ? what() : what));
}

function field(words, unit, value, { least = 0, most = 1e6, step = 1 } = {}) {
  const input = h('input', { type: 'number', value, min: least, max: most, step, inputmode: 'decimal' });
  return { input, label: h('label', { class: 'field' }, h('span', { text: words }), input, h('span', { class: 'unit', text: unit })) };
}

/** A small form: fields and a button. */
function form(words, fields, what) {
  const element = h('form', { class: 'inline' }, fields.map((one) => one.label), h('button', { type: 'submit', class: 'act', text: words }));
  element.addEventListener('submit', (event) => {
    event.preventDefault();
    run(what(fields.map((one) => (one.input.value === '' ? null : Number(one.input.value)))));
  });
  return element;
}

export function nodeActions(name) {
  return h('div', { class: 'actions', role: 'group', 'aria-label': `Faults at ${name}` },
    h('div', { class: 'buttons' },
      button('Kill', { do: 'kill', node: name }, 'danger'),
      button('Restart', { do: 'restart', node: name }),
      button('Freeze 5 s', { do: 'freeze', node: name, seconds: 5 })));
}

export function cableActions(id) {
  const [percent, lossFor] = [field('Loss', '%', 5, { most: 100, step: 'any' }), field('for', 's', 30)];
  const [ms, delayFor] = [field('Delay', 'ms', 2, { step: 'any' }), field('for', 's', 30)];
  const seconds = field('Capture', 's', 10, { least: 1, most: 600 });
  return h('div', { class: 'actions', role: 'group', 'aria-label': 'Faults at this link' },
    h('div', { class: 'buttons' },
      button('Take down 30 s', { do: 'link-down', cable: id, seconds: 30 }, 'danger'),
      button('Take down', { do: 'link-down', cable: id, seconds: null }, 'danger'),
      button('Bring up', { do: 'link-up', cable: id })),
    form('Lose', [percent, lossFor], ([share, time]) => ({ do: 'loss', cable: id, percent: share, seconds: time })),
    form('Delay', [ms, delayFor], ([time, length]) => ({ do: 'delay', cable: id, ms: time, seconds: length })),
    form('Capture', [seconds], ([time]) => ({ do: 'capture', cable: id, seconds: time })),
    whatIf(id));
}

/** Asks what a cut of the link would do, and keeps the answer beside the button. */
function whatIf(id) {
  const answer = h('p', { class: 'more what-if', role: 'status' });
  const element = oneAtATime('What a cut would do', '', async () => {
    try {
      answer.textContent = await act({ do: 'if-cut', cable: id });
    } catch (error) {
      answer.textContent = [error.message, error.hint].filter(Boolean).join('; ');
    }
  });
  return h('div', { class: 'what-if-box' }, h('div', { class: 'buttons' }, element), answer);
}

export const stopFlow = (id) => button('Stop', { do: 'flow-stop', id }, 'small');
export const clearFault = (id) => button('Clear', { do: 'clear', fault: id }, 'small');
export const acknowledge = (id) => button('Acknowledge', { do: 'acknowledge', alarm: id }, 'small');

/** The form that starts a flow. Ends are typed or picked from the hosts. */
export function flowForm(app) {
  const end = (words, name, id) => h('label', { class: 'field' }, h('span', { text: words }), h('input', { name, list: id, required: true, autocomplete: 'off', spellcheck: 'false', maxlength: 200 }));
  const list = h('datalist', { id: 'ends' });
  const element = h('form', { class: 'inline starter', 'aria-label': 'Start a flow', hidden: true },
    end('From', 'from', 'ends'), end('To', 'to', 'ends'),
    h('label', { class: 'field' }, h('span', { text: 'Name' }), h('input', { name: 'name', placeholder: 'any', maxlength: 64, autocomplete: 'off', spellcheck: 'false' })),
    h('label', { class: 'field' }, h('span', { text: 'Rate' }), h('input', { name: 'rate', type: 'number', min: 0, step: 'any', placeholder: 'usual' }), h('span', { class: 'unit', text: 'MB/s' })),
    h('label', { class: 'check' }, h('input', { name: 'ping', type: 'checkbox' }), h('span', { text: 'Ping-pong' })),
    h('button', { type: 'submit', class: 'act primary', text: 'Start flow' }), list);
  element.addEventListener('submit', async (event) => {
    event.preventDefault();
    const value = (name) => element.elements[name].value.trim();
    const what = {
      do: 'flow-start', from: value('from'), to: value('to'), name: value('name') || null,
      rate_mbps: value('rate') === '' ? null : Number(value('rate')) * (app.store.state.shaped ? 125 : 1), ping_pong: element.elements.ping.checked,
    };
    // The flow may be in the state before the answer is here.
    const known = new Set(Object.keys(app.store.state.flows));
    if (await run(what)) app.expectFlow(what, known);
  });
  element.fillEnds = () => {
    const { state, index } = app.store;
    element.querySelector('.unit').textContent = state.shaped ? 'Gb/s' : 'MB/s';
    const hosts = Object.entries(state.nodes).filter(([, node]) => node.kind === 'host').slice(0, 1000).map(([id, node]) => (index.byName.get(node.name).length > 1 ? node.guid : node.name));
    const vms = Object.keys(state.vms).slice(0, 1000).map((name) => `vm:${name}`);
    list.replaceChildren(...[...hosts, ...vms].map((name) => h('option', { value: name })));
  };
  return element;
}
