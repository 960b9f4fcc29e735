// What is known of the laboratory: the state, patches, and indices that are made again only when the cabling changes.

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

/** RFC 7386, in place. */
export function merge(target, patch) {
  for (const [key, value] of Object.entries(patch)) {
    // A name like this would reach beyond the object.
    if (key === '__proto__') continue;
    if (value === null) delete target[key];
    else if (isObject(value)) target[key] = merge(isObject(target[key]) ? target[key] : {}, value);
    else target[key] = value;
  }
  return target;
}

const SHAPE = ['name', 'x', 'y', 'leaf', 'rank', 'kind', 'guid', 'lids'];

/** Whether a patch changes which devices and cables there are, or where they stand. */
export function changesShape(state, patch) {
  if (patch.layout) return true;
  for (const [id, node] of Object.entries(patch.nodes ?? {})) {
    if (node === null || !state.nodes?.[id] || SHAPE.some((key) => key in node)) return true;
  }
  for (const [id, cable] of Object.entries(patch.cables ?? {})) {
    if (cable === null || !state.cables?.[id] || 'a' in cable || 'b' in cable) return true;
  }
  return false;
}

const TABLES = ['nodes', 'cables', 'flows', 'vms', 'faults', 'managers', 'partitions', 'alarms', 'hot', 'events', 'summary', 'layout'];

/** A state with every table present, whatever the server left out. */
export function whole(state) {
  for (const table of TABLES) if (!isObject(state[table])) state[table] = {};
  return state;
}

export const hexGuid = (guid) => String(guid ?? '').toLowerCase();

/** Indices of a state: devices by name, label and GUID, and the cables of a device. */
export function indexOf(state) {
  const index = { byName: new Map(), byLabel: new Map(), byGuid: new Map(), cables: new Map(), hosts: new Map(), label: new Map(), nodeList: Object.entries(state.nodes), cableList: Object.entries(state.cables) };
  for (const [id, node] of index.nodeList) {
    const known = index.byName.get(node.name);
    if (known) known.push(id);
    else index.byName.set(node.name, [id]);
    index.byGuid.set(hexGuid(node.guid), id);
    if (node.leaf !== null && node.leaf !== undefined && state.nodes[node.leaf]) {
      const under = index.hosts.get(String(node.leaf));
      if (under) under.push(id);
      else index.hosts.set(String(node.leaf), [id]);
    }
    index.cables.set(id, []);
  }
  for (const [id, cable] of index.cableList) {
    index.cables.get(String(cable.a))?.push(id);
    if (cable.a !== cable.b) index.cables.get(String(cable.b))?.push(id);
  }
  for (const [id, node] of index.nodeList) {
    const label = labelOf(node, index);
    index.label.set(id, label);
    index.byLabel.set(label, id);
  }
  return index;
}

/** The first word of a kernel's "host mlx5_0"; equal names are told apart by the end of their GUID. */
function labelOf(node, index) {
  const name = String(node.name ?? '');
  if (index.byName.get(node.name).length > 1) return `${name.slice(0, 10)}…${hexGuid(node.guid).slice(-5)}`;
  const found = /^(\S+) (mlx|hfi|ib|qib)\w*$/.exec(name);
  return found ? found[1] : name;
}

/** The id of a device by its name, the first word of its name, its GUID, or a machine on it: `vm:web1`. */
export function nodeNamed(store, name) {
  const wanted = String(name);
  const vm = wanted.startsWith('vm:') ? store.state.vms[wanted.slice(3)] : null;
  if (vm) return nodeNamed(store, vm.host);
  const { byName, byLabel, byGuid } = store.index;
  return byName.get(wanted)?.[0] ?? byLabel.get(wanted) ?? byGuid.get(hexGuid(wanted)) ?? null;
}

export const nodeName = (state, id) => state.nodes[id]?.name ?? `device ${id}`;

export function endName(state, cable, end) {
  const [node, port] = end === 0 ? [cable.a, cable.ap] : [cable.b, cable.bp];
  return `${nodeName(state, node)}:${port}`;
}

/** `S1:1 – S2:1`. */
export const cableName = (state, cable) => `${endName(state, cable, 0)} – ${endName(state, cable, 1)}`;
/** `S1:1 → S2:1`, in the direction of the packets. */
export const wayName = (state, cable, way) => `${endName(state, cable, way)} → ${endName(state, cable, 1 - way)}`;

/** The way of a flow: cable, direction (0 is from its end `a`), and lane where that is known. */
export const hopsOf = (flow) => (flow.path ?? []).map(([cable, way, lane]) => ({ cable: String(cable), way: Number(way), lane: lane ?? flow.vl ?? null }));

export const most = (cable, field) => Math.max(cable.ab?.[field] ?? 0, cable.ba?.[field] ?? 0);

/** The live state, and the one that is shown: the same, or a moment of the tape. */
export class Store {
  constructor() {
    this.live = null;
    this.state = null;
    this.index = null;
    this.past = false;
    this.listeners = [];
    this.dirty = new Set();
    this.shape = 0;
    this.timer = null;
  }

  onChange(listener) { this.listeners.push(listener); }

  key(state) {
    this.live = whole(state);
    if (!this.past) this.show(this.live);
  }

  patch(patch, at) {
    if (!this.live) return;
    const reshaped = changesShape(this.live, patch);
    merge(this.live, patch);
    whole(this.live);
    if (Number.isFinite(at)) this.live.at_ms = at;
    if (this.past) return;
    if (reshaped) this.reindex();
    this.touch(...Object.keys(patch), 'at_ms');
  }

  /** Applies a patch to the moment that is shown. */
  patchShown(patch, at) {
    const reshaped = changesShape(this.state, patch);
    whole(merge(this.state, patch));
    if (Number.isFinite(at)) this.state.at_ms = at;
    if (reshaped) this.reindex();
    this.touch(...Object.keys(patch), 'at_ms');
  }

  show(state) {
    this.state = whole(state);
    this.reindex();
    this.touch('all');
  }

  toLive() {
    this.past = false;
    if (this.live) this.show(this.live);
  }

  toPast(state) {
    this.past = true;
    this.show(state);
  }

  reindex() {
    this.index = indexOf(this.state);
    this.shape += 1;
  }

  /** Changes are told at most once a frame, and those of a hidden tab when it is seen again. */
  touch(...tables) {
    tables.forEach((table) => this.dirty.add(table));
    if (this.timer !== null) return;
    this.timer = requestAnimationFrame(() => {
      this.timer = null;
      const changed = this.dirty;
      this.dirty = new Set();
      if (changed.has('all')) [...TABLES, 'may_act', 'shaped', 'at_ms'].forEach((table) => changed.add(table));
      this.listeners.forEach((listener) => listener(changed));
    });
  }
}
