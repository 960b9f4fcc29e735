// Links in detail, where there is room: each cable of a bundle, each direction, each lane a strand; waiting makes it wide. And the way of
// a flow, what is chosen and what is under the pointer, drawn above everything.

import { theme, palette, colourOf, DOWN, STARTING } from './colours.js';
import { project, reach } from './paint.js';
import { cut } from './words.js';

const TAG_MAX = 32;
const CABLES_GAP = 11;
const EDGES_MAX = 220;
const ROOM_MIN = 24;
const PORTS_MIN = 56;

/** The edges on the screen, or null where they are too many or too small for strands. */
export function detailed(scene, camera, size) {
  const plain = scene.plain;
  const to = project(camera, size);
  let seen = 0;
  for (let nth = 0; nth < plain.mx.length; nth += 1) {
    const [x, y] = [to.x(plain.mx[nth]), to.y(plain.my[nth])];
    if (x < 0 || y < 0 || x > size.width || y > size.height) continue;
    if (plain.size[nth] * camera.scale < ROOM_MIN) return null;
    seen += 1;
  }
  if (!seen) return null;
  const found = [];
  for (let nth = 0; nth < plain.ea.length; nth += 1) {
    const line = ends(plain, nth, to);
    if (Math.max(line.ax, line.bx) < 0 || Math.max(line.ay, line.by) < 0) continue;
    if (Math.min(line.ax, line.bx) > size.width || Math.min(line.ay, line.by) > size.height) continue;
    found.push(nth);
    if (found.length > EDGES_MAX) return null;
  }
  return found;
}

function ends(plain, nth, to) {
  const [a, b] = [plain.ea[nth], plain.eb[nth]];
  return { a, b, ax: to.x(plain.mx[a]), ay: to.y(plain.my[a]), bx: to.x(plain.mx[b]), by: to.y(plain.my[b]) };
}

/** The line of a cable: beside its parallel ones, from rim to rim. */
export function cableLine(scene, nth, which, camera, size, isApart) {
  const to = project(camera, size);
  const line = ends(scene.plain, nth, to);
  const length = Math.hypot(line.bx - line.ax, line.by - line.ay) || 1;
  const [ux, uy] = [(line.bx - line.ax) / length, (line.by - line.ay) / length];
  const shift = isApart ? (which - (scene.cables[nth].length - 1) / 2) * CABLES_GAP : 0;
  const trims = isApart || length > 60;
  const [from, until] = trims ? [reach(scene.plain, line.a, camera.scale), reach(scene.plain, line.b, camera.scale)] : [0, 0];
  const [ox, oy] = [-uy * shift, ux * shift];
  return {
    ax: line.ax + ux * from + ox, ay: line.ay + uy * from + oy, bx: line.bx - ux * until + ox, by: line.by - uy * until + oy,
    ux, uy, length: Math.max(0, length - from - until), a: line.a, b: line.b,
  };
}

/** Whether a cable's end `a` is the bundle's first mark. */
const isForward = (scene, state, id, nth) => scene.owner.get(String(state.cables[id].a)) === scene.plain.ea[nth];

export function strands(context, scene, state, seen, camera, size, look, top, drawn) {
  const colours = theme(look.dark);
  const paints = palette(colours, look.colour);
  for (const nth of seen) {
    scene.cables[nth].forEach((id, which) => {
      const cable = state.cables[id];
      if (!cable) return;
      const line = cableLine(scene, nth, which, camera, size, true);
      const forward = isForward(scene, state, id, nth);
      oneCable(context, cable, line, forward, { colours, paints, look, top, state, drawn });
      if (line.length > 90 && roomAt(scene, line, camera) > PORTS_MIN) ports(context, cable, line, forward, colours);
    });
  }
  context.setLineDash([]);
  return seen.length;
}

const roomAt = (scene, line, camera) => Math.min(scene.plain.size[line.a], scene.plain.size[line.b]) * camera.scale;

function stroke(context, line, shift, colour, width, dash = []) {
  const [ox, oy] = [-line.uy * shift, line.ux * shift];
  context.beginPath();
  context.moveTo(line.ax + ox, line.ay + oy);
  context.lineTo(line.bx + ox, line.by + oy);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.setLineDash(dash);
  context.stroke();
}

function oneCable(context, cable, line, forward, more) {
  const { paints, look, top, state, colours, drawn } = more;
  const own = colourOf(cable, state, look.colour, top);
  if (own === DOWN || own === STARTING) {
    stroke(context, line, 0, paints[own], 1.6, own === DOWN ? [5, 4] : [2, 3]);
    return;
  }
  const ways = [['ab', forward ? 1 : -1], ['ba', forward ? -1 : 1]].filter(([way]) => cable[way]);
  if (!ways.length || look.colour === 'state') stroke(context, line, 0, paints[look.colour === 'state' ? own : 0], 1.2);
  if (look.colour === 'state') return;
  for (const [way, side] of ways) {
    const lanes = Object.entries(cable[way].lanes ?? {}).filter(([, lane]) => lane.mbps > 0 || lane.wait > 0);
    if (!lanes.length) lanes.push([null, cable[way]]);
    let shift = 1.4;
    for (const [lane, data] of lanes) {
      if (lane !== null) drawn.add(Number(lane));
      const share = state.shaped || !top.wait ? Math.min(1, data.wait ?? 0) : (data.wait ?? 0) / top.wait;
      const width = 1.3 + share * 4.5;
      shift += width / 2;
      stroke(context, line, side * shift, lane === null ? paints[own] : colours.lanes[Number(lane) % 8], width, Number(lane) >= 8 ? [6, 2] : []);
      shift += width / 2 + 1;
    }
    arrow(context, line, side, shift, lanes[0][0] === null ? paints[own] : colours.lanes[Number(lanes[0][0]) % 8]);
  }
}

/** Which way packets go. */
function arrow(context, line, side, shift, colour) {
  if (line.length < 60) return;
  const share = 0.5 + side * 0.1;
  const [x, y] = [line.ax + (line.bx - line.ax) * share - line.uy * side * shift, line.ay + (line.by - line.ay) * share + line.ux * side * shift];
  const [dx, dy] = [line.ux * side, line.uy * side];
  context.beginPath();
  context.moveTo(x + dx * 5, y + dy * 5);
  context.lineTo(x - dx * 3 - dy * 4, y - dy * 3 + dx * 4);
  context.lineTo(x - dx * 3 + dy * 4, y - dy * 3 - dx * 4);
  context.closePath();
  context.fillStyle = colour;
  context.fill();
}

function ports(context, cable, line, forward, colours) {
  const [first, second] = forward ? [cable.ap, cable.bp] : [cable.bp, cable.ap];
  context.font = '9px system-ui, sans-serif';
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillStyle = colours.soft;
  context.strokeStyle = colours.halo;
  context.setLineDash([]);
  context.lineWidth = 3;
  for (const [words, x, y, side] of [[first, line.ax, line.ay, 1], [second, line.bx, line.by, -1]]) {
    const [px, py] = [x + line.ux * 11 * side, y + line.uy * 11 * side];
    context.strokeText(String(words), px, py);
    context.fillText(String(words), px, py);
  }
}

/** Where the edge of a cable is in the scene. */
export function edgeOf(scene, id) {
  if (!scene.edgeIndex) {
    scene.edgeIndex = new Map();
    scene.cables.forEach((cables, nth) => cables.forEach((cable, which) => scene.edgeIndex.set(cable, { nth, which })));
  }
  return scene.edgeIndex.get(id);
}

/** Lights the way of a flow. `phase` moves its dashes. */
export function route(context, scene, state, path, camera, size, look, isApart, phase) {
  const colours = theme(look.dark);
  const lines = [];
  for (const [id, way] of path) {
    const place = edgeOf(scene, String(id));
    if (!place || !state.cables[id]) continue;
    const line = cableLine(scene, place.nth, place.which, camera, size, isApart);
    const along = isForward(scene, state, String(id), place.nth) === (Number(way) === 0);
    lines.push(along ? [line.ax, line.ay, line.bx, line.by] : [line.bx, line.by, line.ax, line.ay]);
  }
  const all = (colour, width, dash, offset) => {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.lineDashOffset = offset;
    context.lineCap = dash.length ? 'butt' : 'round';
    for (const [ax, ay, bx, by] of lines) {
      context.beginPath();
      context.moveTo(ax, ay);
      context.lineTo(bx, by);
      context.stroke();
    }
  };
  all(colours.halo, 9, [], 0);
  all(colours.path, 6, [], 0);
  all(colours.pathEdge, 1.8, [7, 7], -phase);
  context.setLineDash([]);
  return lines.length;
}

/** A name in a box at a mark, for the ends of a flow and for what is chosen. */
export function tag(context, name, x, y, colours, size) {
  const words = cut(name, TAG_MAX);
  context.font = '600 11px system-ui, sans-serif';
  const wide = context.measureText(words).width + 12;
  const left = Math.max(2, Math.min(size.width - wide - 2, x - wide / 2));
  const top = Math.max(2, Math.min(size.height - 20, y));
  context.beginPath();
  context.roundRect(left, top, wide, 18, 4);
  context.fillStyle = colours.ink;
  context.fill();
  context.fillStyle = colours.paper;
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  context.fillText(words, left + 6, top + 9.5);
}

/** A machine that moves: an arc from host to host, with its name. */
export function move(context, name, from, to, colours, size) {
  const [middle, rise] = [(from.x + to.x) / 2, Math.max(30, Math.abs(to.x - from.x) * 0.22)];
  const top = Math.min(from.y, to.y) - rise;
  context.beginPath();
  context.moveTo(from.x, from.y - from.half);
  context.quadraticCurveTo(middle, top - rise * 0.4, to.x, to.y - to.half);
  context.strokeStyle = colours.vm;
  context.lineWidth = 2.5;
  context.setLineDash([6, 4]);
  context.stroke();
  context.setLineDash([]);
  const angle = Math.atan2(to.y - to.half - top + rise * 0.4, to.x - middle);
  context.beginPath();
  context.moveTo(to.x, to.y - to.half);
  context.lineTo(to.x - 10 * Math.cos(angle - 0.4), to.y - to.half - 10 * Math.sin(angle - 0.4));
  context.lineTo(to.x - 10 * Math.cos(angle + 0.4), to.y - to.half - 10 * Math.sin(angle + 0.4));
  context.closePath();
  context.fillStyle = colours.vm;
  context.fill();
  tag(context, `${name} moves`, middle, top, colours, size);
}
