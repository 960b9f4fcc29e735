// What is drawn: marks and bundles of cables, hosts folded into their leaf switch. Typed arrays, so that a worker can have a copy.

import { colourOf, tops, waitOf, FAINT, DOWN, PLAIN } from './colours.js';

export const FOLD_ABOVE = 200;
export const KIND = { switch: 0, host: 1, router: 2 };
export const FLAG = { dim: 1, hot: 2, sm: 4, trouble: 8, match: 16, down: 32, frozen: 64, starting: 128, vm: 256, open: 512 };
export const EDGE = { fault: 1, hidden: 2, planned: 4 };

export const isFolding = (state) => Object.keys(state.nodes).length > FOLD_ABOVE;

/** Whether a host is folded into its leaf switch. */
export function foldedInto(state, view, id, folding) {
  const leaf = state.nodes[id].leaf;
  if (!folding || view.unfolded || leaf === null || leaf === undefined || !state.nodes[leaf]) return null;
  return view.open.has(String(leaf)) ? null : String(leaf);
}

/** The places of marks: the server's, those that somebody dragged, and blocks of hosts under a leaf that was unfolded. */
function placesOf(state, index, shown, places, folding) {
  const at = new Map();
  const isTiers = state.layout.kind === 'tiers';
  for (const id of shown) at.set(id, { x: Number(state.nodes[id].x) || 0, y: Number(state.nodes[id].y) || 0 });
  const ys = [...at.values()].map((place) => place.y);
  return { at, isTiers, blocks: folding, drag: places, ys };
}

/** Stretches tiers to the shape of the window: their rows are far longer than they are apart. */
function stretchOf(points, room, isTiers) {
  if (!isTiers || points.length < 2) return 1;
  const [x, y] = [spread(points, 'x'), spread(points, 'y')];
  if (x === 0 || y === 0) return 1;
  return Math.max(0.2, ((x / room.width) * room.height) / y);
}

function spread(points, axis) {
  let [low, high] = [Infinity, -Infinity];
  for (const point of points) {
    low = Math.min(low, point[axis]);
    high = Math.max(high, point[axis]);
  }
  return high - low;
}

/** The distance from each mark to the next in its row, or to its nearest neighbour. */
function spacings(marks, isTiers) {
  const rows = new Map();
  marks.forEach((mark, nth) => {
    const row = isTiers ? Math.round(mark.y * 16) : 0;
    if (rows.has(row)) rows.get(row).push(nth);
    else rows.set(row, [nth]);
  });
  const space = new Float32Array(marks.length).fill(Infinity);
  for (const row of rows.values()) {
    row.sort((a, b) => marks[a].x - marks[b].x);
    for (let nth = 0; nth < row.length; nth += 1) {
      for (let other = nth + 1; other < row.length; other += 1) {
        const [one, two] = [marks[row[nth]], marks[row[other]]];
        if (two.x - one.x >= space[row[nth]] && two.x - one.x >= space[row[other]]) break;
        const distance = Math.hypot(two.x - one.x, two.y - one.y);
        if (distance === 0) continue;
        space[row[nth]] = Math.min(space[row[nth]], distance);
        space[row[other]] = Math.min(space[row[other]], distance);
        if (isTiers) break;
      }
    }
  }
  return { space, rows };
}

const median = (list) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? 1;

/** Sizes: marks of one kind are alike, so the typical distance counts. */
function sizesOf(marks, space) {
  const typical = [0, 1, 2].map((kind) => median([...space].filter((value, nth) => marks[nth].kind === kind && Number.isFinite(value))));
  const lone = typical[0] || 1;
  return Float32Array.from(marks, (mark) => (mark.block ? mark.block : typical[mark.kind] || lone));
}

/** Hosts under an unfolded leaf: a block of rows no wider than the leaf's own share of its row. */
function addBlocks(marks, state, view, index, label, nthOf, space) {
  const leaves = view.unfolded ? [...index.hosts.keys()] : [...view.open];
  for (const leaf of leaves) {
    const nth = nthOf.get(leaf);
    const hosts = index.hosts.get(leaf);
    if (nth === undefined || !hosts) continue;
    const width = Number.isFinite(space[nth]) ? space[nth] : hosts.length;
    const columns = Math.ceil(Math.sqrt(hosts.length * 0.8));
    const apart = (width * 0.9) / columns;
    hosts.forEach((id, place) => {
      nthOf.set(id, marks.length);
      marks.push({
        id, kind: KIND.host, label: label.get(id), block: apart, count: 0,
        x: marks[nth].x + ((place % columns) - (columns - 1) / 2) * apart,
        y: marks[nth].y + width * 0.75 + Math.floor(place / columns) * apart,
      });
    });
  }
}

function bundlesOf(state, owner) {
  const bundles = new Map();
  const last = owner.size + 1;
  for (const [id, cable] of Object.entries(state.cables)) {
    const [a, b] = [owner.get(String(cable.a)), owner.get(String(cable.b))];
    if (a === undefined || b === undefined || a === b) continue;
    const key = Math.min(a, b) * last + Math.max(a, b);
    const known = bundles.get(key);
    if (known) known.cables.push(id);
    else bundles.set(key, { a: Math.min(a, b), b: Math.max(a, b), cables: [id] });
  }
  return [...bundles.values()];
}

/** Builds the scene of a state: what a view shows of it, and where. `dragged` has places by GUID. */
export function buildScene(state, index, view, dragged, room) {
  const folding = isFolding(state);
  const shown = Object.keys(state.nodes).filter((id) => !folding || state.nodes[id].leaf === null || state.nodes[id].leaf === undefined || !state.nodes[state.nodes[id].leaf]);
  const { at, isTiers } = placesOf(state, index, shown, dragged, folding);
  const stretch = stretchOf([...at.values()], room(at.size), isTiers);
  const nthOf = new Map();
  const marks = shown.map((id, nth) => {
    nthOf.set(id, nth);
    const node = state.nodes[id];
    const place = dragged[node.guid] ?? at.get(id);
    return { id, kind: KIND[node.kind] ?? 1, label: index.label.get(id), x: place.x, y: place.y * stretch, count: index.hosts.get(id)?.length ?? 0 };
  });
  let { space, rows } = spacings(marks, isTiers);
  if (folding) {
    const before = marks.length;
    addBlocks(marks, state, view, index, index.label, nthOf, space);
    const more = new Float32Array(marks.length).fill(Infinity);
    more.set(space);
    for (let nth = before; nth < marks.length; nth += 1) more[nth] = marks[nth].block;
    space = more;
  }
  const owner = new Map(nthOf);
  for (const [leaf, hosts] of index.hosts) {
    for (const id of hosts) if (!owner.has(id) && nthOf.has(leaf)) owner.set(id, nthOf.get(leaf));
  }
  const bundles = bundlesOf(state, owner);
  return pack(marks, bundles, space, { stretch, isTiers, owner, nthOf, rows, folding, shown: shown.length });
}

function pack(marks, bundles, space, more) {
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (const mark of marks) {
    box.left = Math.min(box.left, mark.x);
    box.right = Math.max(box.right, mark.x);
    box.top = Math.min(box.top, mark.y);
    box.bottom = Math.max(box.bottom, mark.y);
  }
  const rowOf = new Int32Array(marks.length).fill(-1);
  if (more.isTiers) [...more.rows.values()].forEach((row, nth) => row.forEach((mark) => { rowOf[mark] = nth; }));
  const plain = {
    mx: Float32Array.from(marks, (mark) => mark.x),
    my: Float32Array.from(marks, (mark) => mark.y),
    mk: Uint8Array.from(marks, (mark) => mark.kind),
    count: Uint16Array.from(marks, (mark) => mark.count),
    size: sizesOf(marks, space),
    row: rowOf,
    label: marks.map((mark) => mark.label),
    ea: Uint32Array.from(bundles, (bundle) => bundle.a),
    eb: Uint32Array.from(bundles, (bundle) => bundle.b),
    en: Uint16Array.from(bundles, (bundle) => bundle.cables.length),
    isTiers: more.isTiers, folding: more.folding, box, shown: more.shown, mid: (box.top + box.bottom) / 2,
  };
  return { plain, ids: marks.map((mark) => mark.id), cables: bundles.map((bundle) => bundle.cables), ...more, marks: marks.length, edges: bundles.length };
}

function flagsOf(node, isMatch, searching) {
  let flags = 0;
  if (node.state === 'down') flags |= FLAG.down;
  if (node.state === 'frozen') flags |= FLAG.frozen;
  if (node.state === 'starting') flags |= FLAG.starting;
  if (node.hot) flags |= FLAG.hot;
  if (node.roles?.includes('sm')) flags |= FLAG.sm;
  if (searching) flags |= isMatch ? FLAG.match : FLAG.dim;
  return flags;
}

/** Colours and widths of a scene's marks and edges. `matches` is null where nothing is searched. */
export function dressOf(scene, state, index, view, matches) {
  const flags = new Uint16Array(scene.marks);
    scene.ids.forEach((id, nth) => {
    flags[nth] = flagsOf(state.nodes[id] ?? {}, matches?.has(id), matches !== null);
    if (scene.folding && (view.unfolded || view.open.has(id)) && scene.plain.count[nth]) flags[nth] |= FLAG.open;
  });
  for (const vm of Object.values(state.vms)) {
    const nth = scene.owner.get(index.byName.get(vm.host)?.[0]);
    if (nth !== undefined) flags[nth] |= FLAG.vm;
  }
  for (const [id, nth] of scene.owner) {
    if (scene.nthOf.has(id)) continue;
    const own = state.nodes[id]?.state;
    if (own !== undefined && own !== 'up') flags[nth] |= FLAG.trouble;
    if (state.nodes[id]?.hot) flags[nth] |= FLAG.hot;
    if (matches?.has(id)) flags[nth] = (flags[nth] | FLAG.match) & ~FLAG.dim;
  }
  const top = tops(index);
  const [colour, width, edge] = [new Uint8Array(scene.edges), new Uint8Array(scene.edges), new Uint8Array(scene.edges)];
  const more = { state, view, matches, top, colour, width, edge };
  for (let nth = 0; nth < scene.edges; nth += 1) dressEdge(scene.cables[nth], nth, more);
  return { flags, colour, width, edge, top };
}

/** A bundle shows the most of its cables; what is down comes before all. */
function dressEdge(cables, nth, { state, view, matches, top, colour, width, edge }) {
  let [own, wait, marks, isSeen] = [PLAIN, 0, 0, matches === null];
  for (const id of cables) {
    const cable = state.cables[id];
    if (!cable) continue;
    const one = colourOf(cable, state, view.colour, top);
    own = own === DOWN || one === DOWN ? DOWN : Math.max(own, one);
    wait = Math.max(wait, waitOf(cable, state, top.wait));
    if (cable.faults?.length) marks |= EDGE.fault;
    if (cable.planned) marks |= EDGE.planned;
    if (!isSeen && matches.has(String(cable.a)) && matches.has(String(cable.b))) isSeen = true;
  }
  colour[nth] = isSeen || own === DOWN ? own : FAINT;
  width[nth] = Math.min(7, Math.round(wait * 7));
  edge[nth] = marks;
}
