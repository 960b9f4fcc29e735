// What is looked at, and its place in the URL's fragment. The token never is in it.

const FRAGMENT_MAX = 4096;
const FIND_MAX = 200;
const ID_MAX = 128;
const OPEN_MAX = 64;

export const COLOURS = ['state', 'use', 'wait'];
export const FILTERS = ['all', 'trouble', 'traffic'];
export const TABS = ['flows', 'devices', 'links', 'events'];

export function plainView() {
  return {
    find: '', colour: 'use', filter: 'all', tab: 'flows',
    flow: null, node: null, cable: null, at: null, against: null,
    camera: null, open: new Set(), unfolded: false, wasCut: false,
  };
}

const numbers = (words, many) => {
  const list = String(words).split(',').map(Number);
  return list.length === many && list.every(Number.isFinite) ? list : null;
};

/** Reads a fragment. Whatever does not fit is left out; a long one is cut. */
export function parseView(fragment) {
  const view = plainView();
  const given = new URLSearchParams(fragment.slice(0, FRAGMENT_MAX));
  const word = (key, allowed) => (allowed.includes(given.get(key)) ? given.get(key) : view[key]);
  view.wasCut = fragment.length > FRAGMENT_MAX || (given.get('find') ?? '').length > FIND_MAX;
  view.find = (given.get('find') ?? '').slice(0, FIND_MAX);
  view.colour = word('colour', COLOURS);
  view.filter = word('filter', FILTERS);
  view.tab = word('tab', TABS);
  for (const key of ['flow', 'node', 'cable']) {
    const id = given.get(key);
    if (id) view[key] = id.slice(0, ID_MAX);
  }
  for (const key of ['at', 'against']) {
    const ms = Number(given.get(key) ?? NaN);
    if (given.get(key) && Number.isFinite(ms)) view[key] = ms;
  }
  const place = given.get('view') ? numbers(given.get('view'), 3) : null;
  if (place && place[2] > 0) view.camera = { x: place[0], y: place[1], zoom: place[2] };
  view.unfolded = given.get('open') === 'all';
  if (!view.unfolded && given.get('open')) {
    view.open = new Set(given.get('open').split(',').slice(0, OPEN_MAX).map((id) => id.slice(0, ID_MAX)));
  }
  return view;
}

/** The fragment of a view; what is as usual is left out. */
export function writeView(view) {
  const usual = plainView();
  const out = new URLSearchParams();
  for (const key of ['find', 'colour', 'filter', 'tab', 'flow', 'node', 'cable', 'at', 'against']) {
    const value = view[key];
    if (value !== null && value !== '' && value !== usual[key]) out.set(key, String(value));
  }
  if (view.unfolded) out.set('open', 'all');
  else if (view.open.size) out.set('open', [...view.open].slice(0, OPEN_MAX).join(','));
  if (view.camera) {
    const { x, y, zoom } = view.camera;
    out.set('view', [x.toFixed(4), y.toFixed(4), zoom.toFixed(3)].join(','));
  }
  return out.toString();
}

let timer = null;

/** Writes the view to the URL, at most four times a second: browsers limit how often. */
export function keepView(view) {
  if (timer !== null) return;
  timer = setTimeout(() => {
    timer = null;
    const fragment = writeView(view);
    history.replaceState(null, '', fragment ? `#${fragment}` : location.pathname);
  }, 250);
}

/** The URL of this view for others. */
export function sharedUrl(view) {
  const fragment = writeView(view);
  return `${location.origin}${location.pathname}${fragment ? `#${fragment}` : ''}`;
}
