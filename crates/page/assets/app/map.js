// The map: a ground of links and marks that is drawn when something changes, and above it what moves. Large scenes are drawn by a worker;
// until its picture is there, the last one is shown moved and scaled.

import { usable } from './camera.js';
import { isDark, theme } from './colours.js';
import { paint, project, reach } from './paint.js';
import { buildScene, dressOf } from './scene.js';
import { detailed, edgeOf, cableLine, move, route, strands, tag } from './strands.js';

// Above this number of links a scene is drawn by the worker.
const DIRECT_MAX = 700;
const FRAMES = 1200;

/** Durations of the last frames: the work in them, and from one to the next. */
export class Frames {
  constructor() {
    this.work = [];
    this.gaps = [];
    this.last = null;
  }

  add(begun) {
    const now = performance.now();
    this.work.push(now - begun);
    if (this.last !== null && begun - this.last < 250) this.gaps.push(begun - this.last);
    this.last = begun;
    for (const list of [this.work, this.gaps]) if (list.length > FRAMES) list.splice(0, FRAMES / 2);
  }

  clear() { [this.work, this.gaps, this.last] = [[], [], null]; }
}

export class FabricMap {
  /** `shared` has the view, the camera, what is chosen, and what happens on a choice. */
  constructor(pane, shared) {
    this.pane = pane;
    this.shared = shared;
    [this.ground, this.over] = [pane.querySelector('.ground'), pane.querySelector('.over')];
    this.groundPen = this.ground.getContext('2d', { alpha: false });
    this.overPen = this.over.getContext('2d');
    this.size = { width: 0, height: 0 };
    this.frames = new Frames();
    this.drawn = { marks: 0, edges: 0 };
    this.hover = null;
    this.needs = { scene: false, dress: false, ground: false, over: false };
    this.frame = null;
    this.paints = 0;
    /** The lanes that are drawn as strands. */
    this.lanes = new Set();
    new ResizeObserver(() => this.resize()).observe(pane);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.need('ground', 'over'));
    this.resize();
  }

  source(state, index) {
    [this.state, this.index] = [state, index];
    this.need('scene');
  }

  resize() {
    const box = this.pane.getBoundingClientRect();
    const size = { width: Math.max(1, Math.round(box.width)), height: Math.max(1, Math.round(box.height)) };
    if (size.width === this.size.width && size.height === this.size.height) return;
    this.ratio = Math.min(2, devicePixelRatio || 1);
    for (const canvas of [this.ground, this.over]) {
      canvas.width = size.width * this.ratio;
      canvas.height = size.height * this.ratio;
    }
    const was = this.size.width / this.size.height;
    this.size = size;
    this.groundPen.fillStyle = theme(isDark()).paper;
    this.groundPen.fillRect(0, 0, this.ground.width, this.ground.height);
    // Tiers are stretched to the window's shape.
    this.need(Math.abs(was - size.width / size.height) > 0.1 ? 'scene' : 'ground');
  }

  /** Asks for a frame in which something is made again. */
  need(...what) {
    what.forEach((one) => { this.needs[one] = true; });
    if (this.frame === null) this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = null;
    if (!this.state || this.size.width < 2) return;
    const begun = performance.now();
    const needs = this.needs;
    this.needs = { scene: false, dress: false, ground: false, over: false };
    if (needs.scene || !this.scene) this.rebuild();
    if (needs.scene || needs.dress || !this.dress) this.redress();
    const place = this.place();
    if (needs.scene || needs.dress || needs.ground) this.drawGround(place);
    this.drawOver(place);
    this.frames.add(begun);
    if (!this.isSeen) {
      this.isSeen = true;
      performance.mark('first-paint-of-fabric');
    }
  }

  place() { return this.shared.camera.on(this.scene.plain, this.size); }

  look() { return { dark: isDark(), colour: this.shared.view.colour }; }

  rebuild() {
    this.scene = buildScene(this.state, this.index, this.shared.view, this.shared.dragged(), (marks) => usable(this.size, marks));
    this.worker?.postMessage({ scene: this.scene.plain });
  }

  redress() {
    this.dress = dressOf(this.scene, this.state, this.index, this.shared.view, this.shared.matches(this.state, this.index));
    this.worker?.postMessage({ dress: this.dress });
    this.top = this.dress.top;
  }

  drawGround(place) {
    const seen = detailed(this.scene, place, this.size);
    this.isApart = seen !== null;
    if (this.scene.edges <= DIRECT_MAX || seen) {
      const pen = this.groundPen;
      pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      this.drawn = this.paintOn(pen, place, seen);
      this.picture = null;
    } else {
      this.askWorker(place);
      this.showPicture(place);
    }
  }

  /** Draws the scene with a pen; `seen` are the edges that have room for strands. */
  paintOn(pen, place, seen) {
    const look = this.look();
    const detail = seen && (() => strands(pen, this.scene, this.state, seen, place, this.size, look, this.top, this.lanes));
    this.lanes.clear();
    return paint(pen, this.scene.plain, this.dress, place, this.size, look, detail);
  }

  askWorker(camera) {
    if (!this.worker) {
      this.worker = new Worker('/app/painter.js', { type: 'module' });
      this.worker.postMessage({ scene: this.scene.plain, dress: this.dress });
      this.worker.onmessage = ({ data }) => this.takePicture(data);
    }
    if (this.isAsked) {
      this.askAgain = true;
      return;
    }
    this.isAsked = true;
    this.askAgain = false;
    this.paints += 1;
    this.worker.postMessage({ paint: { camera, size: this.size, ratio: this.ratio, look: this.look(), id: this.paints } });
  }

  takePicture(data) {
    this.picture?.bitmap.close();
    this.picture = data;
    this.drawn = data.drawn;
    this.isAsked = false;
    const place = this.place();
    this.showPicture(place);
    if (this.askAgain) this.askWorker(place);
  }

  /** The worker's last picture, moved and scaled to where one looks now. */
  showPicture(place) {
    const pen = this.groundPen;
    if (!this.picture) return;
    const { bitmap, camera, size } = this.picture;
    const factor = place.scale / camera.scale;
    const left = (camera.x - place.x) * place.scale + this.size.width / 2 - (size.width / 2) * factor;
    const top = (camera.y - place.y) * place.scale + this.size.height / 2 - (size.height / 2) * factor;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    if (factor !== 1 || left !== 0 || top !== 0) {
      pen.fillStyle = theme(isDark()).paper;
      pen.fillRect(0, 0, this.size.width, this.size.height);
    }
    pen.imageSmoothingEnabled = factor !== 1;
    pen.drawImage(bitmap, left, top, size.width * factor, size.height * factor);
  }

  drawOver(place) {
    const pen = this.overPen;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.size.width, this.size.height);
    const look = this.look();
    const colours = theme(look.dark);
    const { view } = this.shared;
    const flow = view.flow ? this.state.flows[view.flow] : null;
    if (flow) this.drawFlow(pen, flow, place, look, colours);
    this.drawMoves(pen, place, colours);
    if (view.cable) this.drawCable(pen, view.cable, place, colours, 3);
    if (this.hover?.cable && this.hover.cable !== view.cable) this.drawCable(pen, this.hover.cable, place, colours, 2);
    if (view.node) this.drawNode(pen, view.node, place, colours, 3, true);
    if (this.hover?.node && this.hover.node !== view.node) this.drawNode(pen, this.hover.node, place, colours, 1.5, false);
    if (document.activeElement === this.over && this.focus) this.drawNode(pen, this.focus, place, colours, 2, true);
  }

  drawFlow(pen, flow, place, look, colours) {
    const phase = this.shared.phase();
    route(pen, this.scene, this.state, flow.path ?? [], place, this.size, look, this.isApart, phase);
    for (const end of [flow.from, flow.to]) {
      const id = this.shared.nodeNamed(end);
      const at = id === null ? null : this.at(id, place);
      if (at) tag(pen, end, at.x, at.y + at.half + 6, colours, this.size);
    }
  }

  /** Machines on their way from host to host. */
  drawMoves(pen, place, colours) {
    for (const [name, vm] of Object.entries(this.state.vms)) {
      if (vm.state !== 'moving' || !vm.moving_to) continue;
      const [from, to] = [vm.host, vm.moving_to].map((host) => this.shared.nodeNamed(host)).map((id) => (id === null ? null : this.at(id, place)));
      if (from && to) move(pen, vm.name ?? name, from, to, colours, this.size);
    }
  }

  drawCable(pen, id, place, colours, width) {
    const edge = edgeOf(this.scene, id);
    if (!edge) return;
    const line = cableLine(this.scene, edge.nth, edge.which, place, this.size, this.isApart);
    pen.beginPath();
    pen.moveTo(line.ax, line.ay);
    pen.lineTo(line.bx, line.by);
    pen.lineCap = 'round';
    pen.strokeStyle = colours.match;
    pen.globalAlpha = 0.55;
    pen.lineWidth = width + 5;
    pen.stroke();
    pen.globalAlpha = 1;
  }

  drawNode(pen, id, place, colours, width, isTagged) {
    const at = this.at(id, place);
    if (!at) return;
    pen.beginPath();
    pen.arc(at.x, at.y, at.half * 1.25 + 4, 0, Math.PI * 2);
    pen.strokeStyle = colours.match;
    pen.lineWidth = width;
    pen.stroke();
    if (isTagged) tag(pen, this.index.label.get(id) ?? id, at.x, at.y - at.half - 28, colours, this.size);
  }

  /** Where a device is on the screen, or the switch that it is folded into. */
  at(id, place = this.place()) {
    const nth = this.scene.owner.get(String(id));
    if (nth === undefined) return null;
    const to = project(place, this.size);
    const plain = this.scene.plain;
    return { nth, x: to.x(plain.mx[nth]), y: to.y(plain.my[nth]), half: reach(plain, nth, place.scale) };
  }

  /** What is at a point of the screen: a device before a cable. */
  pick(px, py, slack = 6) {
    if (!this.scene) return null;
    const place = this.place();
    const to = project(place, this.size);
    const plain = this.scene.plain;
    let [best, found] = [Infinity, null];
    for (let nth = 0; nth < plain.mx.length; nth += 1) {
      const distance = Math.hypot(to.x(plain.mx[nth]) - px, to.y(plain.my[nth]) - py) - reach(plain, nth, place.scale) * 1.2;
      if (distance < Math.min(slack, best)) [best, found] = [distance, { node: this.scene.ids[nth], nth }];
    }
    return found ?? this.pickCable(px, py, slack, place);
  }

  pickCable(px, py, slack, place) {
    let [best, found] = [slack, null];
    const to = project(place, this.size);
    const plain = this.scene.plain;
    const wide = slack + this.scene.cables.reduce((most, cables) => Math.max(most, cables.length), 1) * 6;
    for (let nth = 0; nth < plain.ea.length; nth += 1) {
      const [a, b] = [plain.ea[nth], plain.eb[nth]];
      const distance = toLine(px, py, to.x(plain.mx[a]), to.y(plain.my[a]), to.x(plain.mx[b]), to.y(plain.my[b]));
      if (distance > (this.isApart ? wide : best)) continue;
      this.scene.cables[nth].forEach((id, which) => {
        const line = cableLine(this.scene, nth, which, place, this.size, this.isApart);
        const exact = toLine(px, py, line.ax, line.ay, line.bx, line.by);
        if (exact < best) [best, found] = [exact, { cable: id }];
      });
    }
    return found;
  }

  /** Looks at a device closely enough to see it. */
  goTo(id) {
    const nth = this.scene?.owner.get(String(id));
    if (nth === undefined) return;
    const { box, mx, my, size } = this.scene.plain;
    const place = this.place();
    const room = size[nth] * place.scale;
    const { camera } = this.shared;
    const zoom = room < 26 ? camera.zoom * Math.min(60, 34 / room) : camera.zoom;
    camera.fly({ x: (mx[nth] - box.left) / place.width, y: (my[nth] - box.top) / place.height, zoom });
  }
}

function toLine(px, py, ax, ay, bx, by) {
  const [dx, dy] = [bx - ax, by - ay];
  const length = dx * dx + dy * dy;
  const share = length ? Math.max(0, Math.min(1, ((px - ax) * dx + (py - ay) * dy) / length)) : 0;
  return Math.hypot(px - ax - dx * share, py - ay - dy * share);
}
