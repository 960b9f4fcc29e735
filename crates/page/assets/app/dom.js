// Elements, always by textContent: names come from the fabric and are never markup.

export const find = (id) => document.getElementById(id);

/** Makes an element. `props`: class, text, on (listeners), data, and attributes. */
export function h(tag, props = {}, ...kids) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'text') element.textContent = String(value);
    else if (name === 'on') Object.entries(value).forEach(([event, run]) => element.addEventListener(event, run));
    else if (name === 'data') Object.assign(element.dataset, value);
    else if (name === 'class') element.className = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...kids.flat().filter((kid) => kid !== null && kid !== undefined && kid !== false));
  return element;
}

/** An icon of one path in a square of 16. */
export function icon(path) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const line = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  Object.entries({ viewBox: '0 0 16 16', width: 14, height: 14, 'aria-hidden': 'true', class: 'icon' }).forEach(([name, value]) => svg.setAttribute(name, value));
  line.setAttribute('d', path);
  svg.append(line);
  return svg;
}

/** Writes a text only where it differs, so that screen readers and layout are left in peace. */
export function text(element, words) {
  const wanted = String(words ?? '');
  if (element.textContent !== wanted) element.textContent = wanted;
}

export function attribute(element, name, value) {
  if (value === null || value === undefined) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
}

/**
 * Keeps the children of `parent` in step with `items`: elements are reused by key, so focus and selection stay.
 * `make(item)` returns an element; `update(element, item)` fills it.
 */
export function keyed(parent, items, key, make, update) {
  const known = parent.keyed ?? (parent.keyed = new Map());
  const wanted = new Set();
  let place = parent.firstChild;
  for (const item of items) {
    const id = key(item);
    wanted.add(id);
    let element = known.get(id);
    if (!element) {
      element = make(item);
      known.set(id, element);
    }
    update(element, item);
    if (element === place) place = place.nextSibling;
    else parent.insertBefore(element, place);
  }
  for (const [id, element] of known) {
    if (wanted.has(id)) continue;
    element.remove();
    known.delete(id);
  }
}

/** Says something to screen readers alone. */
export function say(words) {
  const voice = find('voice');
  voice.textContent = '';
  requestAnimationFrame(() => { voice.textContent = words; });
}

const TOASTS_MAX = 4;

/** Shows a short message for some seconds. Errors stay until they are closed. */
export function toast(words, kind = 'done', hint = null) {
  const box = find('toasts');
  const close = h('button', { type: 'button', 'aria-label': 'Close', text: '×', class: 'quiet' });
  const element = h('div', { class: `toast ${kind}` }, h('div', {}, h('p', { text: words }), hint && h('p', { class: 'hint', text: hint })), close);
  close.addEventListener('click', () => element.remove());
  box.append(element);
  while (box.childElementCount > TOASTS_MAX) box.firstElementChild.remove();
  if (kind !== 'error') setTimeout(() => element.remove(), 6000);
}
