// Pointer, wheel and keys on a map.

const DRAG_MIN = 4;

export function listen(map, actions) {
  const { over } = map;
  const pointers = new Map();
  let hold = null;
  let pinch = null;
  const point = (event) => {
    const box = over.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  over.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    over.setPointerCapture(event.pointerId);
    const at = point(event);
    pointers.set(event.pointerId, at);
    pinch = pointers.size === 2 ? spread(pointers) : null;
    hold = { at, last: at, found: map.pick(at.x, at.y, event.pointerType === 'touch' ? 14 : 6), moved: false };
  });

  over.addEventListener('pointermove', (event) => {
    const at = point(event);
    if (!pointers.has(event.pointerId)) {
      hoverAt(map, at, actions);
      return;
    }
    pointers.set(event.pointerId, at);
    if (pointers.size === 2) {
      pinch = pinched(map, pointers, pinch);
      return;
    }
    if (!hold || (!hold.moved && Math.hypot(at.x - hold.at.x, at.y - hold.at.y) < DRAG_MIN)) return;
    hold.moved = true;
    const place = map.place();
    if (hold.found?.node) actions.drag(map, hold.found, (at.x - map.size.width / 2) / place.scale + place.x, (at.y - map.size.height / 2) / place.scale + place.y);
    else map.shared.camera.pan(at.x - hold.last.x, at.y - hold.last.y, place);
    hold.last = at;
  });

  const release = (event) => {
    pointers.delete(event.pointerId);
    if (event.type === 'pointerup' && hold && !hold.moved && !pinch) actions.choose(map, hold.found);
    if (hold?.moved && hold.found?.node) actions.dropped();
    if (!pointers.size) [hold, pinch] = [null, null];
  };
  over.addEventListener('pointerup', release);
  over.addEventListener('pointercancel', release);
  over.addEventListener('pointerleave', () => hoverAt(map, null, actions));
  over.addEventListener('wheel', (event) => {
    event.preventDefault();
    const at = point(event);
    const lines = event.deltaMode === 1 ? 16 : 1;
    map.shared.camera.zoomAt(Math.exp(-event.deltaY * lines * 0.0016), at.x, at.y, map.place(), map.size);
  }, { passive: false });
  over.addEventListener('dblclick', (event) => {
    const at = point(event);
    if (!map.pick(at.x, at.y)) map.shared.camera.zoomAt(2, at.x, at.y, map.place(), map.size);
  });
  over.addEventListener('keydown', (event) => { if (key(map, event, actions)) event.preventDefault(); });
  over.addEventListener('focus', () => map.need('over'));
  over.addEventListener('blur', () => map.need('over'));
}

function spread(pointers) {
  const [one, two] = [...pointers.values()];
  return { distance: Math.hypot(one.x - two.x, one.y - two.y), x: (one.x + two.x) / 2, y: (one.y + two.y) / 2 };
}

function pinched(map, pointers, before) {
  const now = spread(pointers);
  if (before && before.distance > 0) {
    const { camera } = map.shared;
    camera.pan(now.x - before.x, now.y - before.y, map.place());
    camera.zoomAt(now.distance / before.distance, now.x, now.y, map.place(), map.size);
  }
  return now;
}

function hoverAt(map, at, actions) {
  if (!map.scene) return;
  const found = at ? map.pick(at.x, at.y) : null;
  const same = found?.node === map.hover?.node && found?.cable === map.hover?.cable;
  map.hover = found;
  map.over.classList.toggle('pointing', Boolean(found));
  actions.tip(map, found, at);
  if (!same) map.need('over');
}

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Returns whether the key was for the map. */
function key(map, event, actions) {
  if (event.ctrlKey || event.metaKey || event.altKey || !map.scene) return false;
  const { camera } = map.shared;
  const middle = [map.size.width / 2, map.size.height / 2];
  if (event.key in STEPS) {
    const [dx, dy] = STEPS[event.key];
    if (event.shiftKey) camera.pan(-dx * 60, -dy * 60, map.place());
    else stepTo(map, dx, dy, actions);
    return true;
  }
  if (event.key === '+' || event.key === '=') camera.zoomAt(1.4, ...middle, map.place(), map.size);
  else if (event.key === '-') camera.zoomAt(1 / 1.4, ...middle, map.place(), map.size);
  else if (event.key === '0') camera.fit();
  else if ((event.key === 'Enter' || event.key === ' ') && map.focus) actions.choose(map, { node: map.focus });
  else if (event.key === 'Escape') actions.choose(map, null);
  else return false;
  return true;
}

/** The next mark in a direction: near, and not far off the line. */
function stepTo(map, dx, dy, actions) {
  const { plain, ids, nthOf } = map.scene;
  const from = map.focus ? nthOf.get(map.focus) : undefined;
  let [best, chosen] = [Infinity, ids[0]];
  if (from !== undefined) {
    chosen = map.focus;
    for (let nth = 0; nth < plain.mx.length; nth += 1) {
      const [x, y] = [plain.mx[nth] - plain.mx[from], plain.my[nth] - plain.my[from]];
      const [along, off] = [x * dx + y * dy, Math.abs(x * dy) + Math.abs(y * dx)];
      if (along <= 1e-6) continue;
      const cost = along + off * 3;
      if (cost < best) [best, chosen] = [cost, ids[nth]];
    }
  }
  map.focus = chosen;
  const at = map.at(chosen);
  if (at && (at.x < 20 || at.y < 20 || at.x > map.size.width - 20 || at.y > map.size.height - 20)) {
    map.shared.camera.pan(map.size.width / 2 - at.x, map.size.height / 2 - at.y, map.place());
  }
  actions.focus(map, chosen);
  map.need('over');
}
