// Draws a scene: links in batches of one colour and width, marks, labels. It knows no document, so a worker can run it too.

import { theme, palette, DOWN, FAINT, PLAIN, STARTING } from './colours.js';
import { EDGE, FLAG } from './scene.js';

// One path with thousands of lines is slower in software than some of a few dozen.
const BATCH = 48;
const LABELS_MAX = 500;
const FONT = '11px system-ui, sans-serif';
const SMALL = '10px system-ui, sans-serif';
const LETTER = 5.8;

/** Half the width of a mark in pixels. */
export function reach(scene, nth, scale) {
  const isSwitch = scene.mk[nth] !== 1;
  const room = scene.size[nth] * scale * (isSwitch ? 0.33 : 0.3);
  return Math.max(isSwitch ? 2 : 1.2, Math.min(isSwitch ? 17 : 9, room));
}

/** Where a point of the scene is on the screen. */
export const project = (camera, size) => ({
  x: (x) => (x - camera.x) * camera.scale + size.width / 2,
  y: (y) => (y - camera.y) * camera.scale + size.height / 2,
});

/** Draws everything that does not move. `look`: dark, colour. Where links are drawn in detail, `detail` draws them instead. */
export function paint(context, scene, dress, camera, size, look, detail = null) {
  const colours = theme(look.dark);
  const to = project(camera, size);
  context.fillStyle = colours.paper;
  context.fillRect(0, 0, size.width, size.height);
  const seen = detail ? detail() : edges(context, scene, dress, to, size, colours, look);
  faultMarks(context, scene, dress, to, colours, size);
  const marks = visible(scene, to, size);
  for (const nth of marks) mark(context, scene, dress, nth, to, camera.scale, colours);
  labels(context, scene, dress, marks, to, camera.scale, colours, size);
  return { marks: marks.length, edges: seen };
}

function visible(scene, to, size) {
  const found = [];
  for (let nth = 0; nth < scene.mx.length; nth += 1) {
    const [x, y] = [to.x(scene.mx[nth]), to.y(scene.my[nth])];
    if (x > -40 && y > -40 && x < size.width + 40 && y < size.height + 40) found.push(nth);
  }
  return found;
}

/** Sorts what is on the screen by colour and width, so that each style is set once. */
function buckets(scene, dress, to, size) {
  const found = new Map();
  let seen = 0;
  for (let nth = 0; nth < scene.ea.length; nth += 1) {
    const [a, b] = [scene.ea[nth], scene.eb[nth]];
    const [ax, ay, bx, by] = [to.x(scene.mx[a]), to.y(scene.my[a]), to.x(scene.mx[b]), to.y(scene.my[b])];
    if (Math.max(ax, bx) < 0 || Math.max(ay, by) < 0 || Math.min(ax, bx) > size.width || Math.min(ay, by) > size.height) continue;
    seen += 1;
    const style = dress.colour[nth] * 8 + dress.width[nth];
    const bucket = found.get(style);
    if (bucket) bucket.push(ax, ay, bx, by);
    else found.set(style, [ax, ay, bx, by]);
  }
  return { found, seen };
}

/** What matters most is drawn last. */
const importance = (style) => {
  const colour = style >> 3;
  if (colour === FAINT) return -1;
  return colour === DOWN ? 1000 : style;
};

function edges(context, scene, dress, to, size, colours, look) {
  const { found, seen } = buckets(scene, dress, to, size);
  const paints = palette(colours, look.colour);
  const isDense = seen > 400;
  context.lineCap = 'butt';
  for (const style of [...found.keys()].sort((a, b) => importance(a) - importance(b))) {
    const colour = style >> 3;
    const isQuiet = colour === PLAIN || colour === FAINT || look.colour === 'state';
    context.strokeStyle = paints[colour];
    const wide = style & 7;
    context.lineWidth = isDense && isQuiet && wide === 0 ? 0.8 : 1.3 + wide * (isDense ? 0.5 : 0.9);
    context.globalAlpha = edgeAlpha(isQuiet && colour !== DOWN, seen);
    context.setLineDash(colour === DOWN ? [5, 4] : colour === STARTING ? [2, 3] : []);
    strokeLines(context, found.get(style));
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
  return seen;
}

function edgeAlpha(isQuiet, seen) {
  if (!isQuiet) return 0.95;
  return seen > 6000 ? 0.16 : seen > 1500 ? 0.3 : seen > 400 ? 0.5 : 0.9;
}

function strokeLines(context, lines) {
  for (let nth = 0; nth < lines.length;) {
    context.beginPath();
    for (const end = Math.min(lines.length, nth + BATCH * 4); nth < end; nth += 4) {
      context.moveTo(lines[nth], lines[nth + 1]);
      context.lineTo(lines[nth + 2], lines[nth + 3]);
    }
    context.stroke();
  }
}

/** A triangle in the middle of a link that a fault acts on. */
function faultMarks(context, scene, dress, to, colours, size) {
  for (let nth = 0; nth < scene.ea.length; nth += 1) {
    if (!(dress.edge[nth] & (EDGE.fault | EDGE.planned))) continue;
    const x = (to.x(scene.mx[scene.ea[nth]]) + to.x(scene.mx[scene.eb[nth]])) / 2;
    const y = (to.y(scene.my[scene.ea[nth]]) + to.y(scene.my[scene.eb[nth]])) / 2;
    if (x < 0 || y < 0 || x > size.width || y > size.height) continue;
    context.beginPath();
    context.moveTo(x, y - 6);
    context.lineTo(x + 6, y + 5);
    context.lineTo(x - 6, y + 5);
    context.closePath();
    context.fillStyle = dress.edge[nth] & EDGE.fault ? colours.down : colours.starting;
    context.fill();
    context.strokeStyle = colours.paper;
    context.lineWidth = 1.5;
    context.stroke();
  }
}

function shape(context, kind, x, y, half) {
  context.beginPath();
  if (kind === 0) {
    const [wide, high] = [half * 1.25, half * 0.85];
    if (half < 4) context.rect(x - wide, y - high, wide * 2, high * 2);
    else context.roundRect(x - wide, y - high, wide * 2, high * 2, Math.min(4, half * 0.4));
  } else if (kind === 1) {
    if (half < 2) context.rect(x - half, y - half, half * 2, half * 2);
    else context.arc(x, y, half, 0, Math.PI * 2);
  } else {
    context.moveTo(x, y - half * 1.2);
    context.lineTo(x + half * 1.2, y);
    context.lineTo(x, y + half * 1.2);
    context.lineTo(x - half * 1.2, y);
    context.closePath();
  }
}

function mark(context, scene, dress, nth, to, scale, colours) {
  const flags = dress.flags[nth];
  const [kind, half] = [scene.mk[nth], reach(scene, nth, scale)];
  const [x, y] = [to.x(scene.mx[nth]), to.y(scene.my[nth])];
  const isHost = kind === 1;
  context.globalAlpha = flags & FLAG.dim ? 0.25 : 1;
  if (flags & FLAG.match) ring(context, x, y, half + 5, colours.match, 3);
  if (flags & FLAG.hot) ring(context, x, y, half + 4, colours.hot, 2.5);
  shape(context, kind, x, y, half);
  context.fillStyle = flags & FLAG.down ? colours.paper : isHost ? colours.hostFill : colours.switchFill;
  context.fill();
  const isOdd = flags & (FLAG.down | FLAG.starting);
  context.strokeStyle = flags & FLAG.down ? colours.down : flags & FLAG.frozen ? colours.frozen : isHost ? colours.hostLine : colours.switchLine;
  context.lineWidth = half < 3 ? 0.8 : flags & (FLAG.down | FLAG.frozen) ? 2 : 1.2;
  if (isOdd && half >= 4) context.setLineDash([3, 2]);
  context.stroke();
  if (isOdd) context.setLineDash([]);
  inside(context, scene, flags, nth, x, y, half, colours);
  context.globalAlpha = 1;
}

function ring(context, x, y, radius, colour, width) {
  context.beginPath();
  context.arc(x, y, radius, 0, Math.PI * 2);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.stroke();
}

/** A cross, two bars, the number of folded hosts, the master's dot, a square for machines. */
function inside(context, scene, flags, nth, x, y, half, colours) {
  if (flags & FLAG.down) {
    const arm = Math.max(2, half * 0.55);
    context.beginPath();
    context.moveTo(x - arm, y - arm);
    context.lineTo(x + arm, y + arm);
    context.moveTo(x + arm, y - arm);
    context.lineTo(x - arm, y + arm);
    context.strokeStyle = colours.down;
    context.lineWidth = half < 4 ? 1.2 : 2;
    context.stroke();
  } else if (flags & FLAG.frozen && half >= 3) {
    context.fillStyle = colours.frozen;
    context.fillRect(x - half * 0.4, y - half * 0.4, half * 0.28, half * 0.8);
    context.fillRect(x + half * 0.12, y - half * 0.4, half * 0.28, half * 0.8);
  } else if (scene.count[nth] && scene.folding && half >= 9) {
    context.fillStyle = colours.ink;
    context.font = '600 10px system-ui, sans-serif';
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.fillText(String(scene.count[nth]), x, y + 0.5);
  }
  const corner = half * 0.9;
  if (flags & FLAG.trouble) dot(context, x + corner, y - corner, colours.down, colours.paper);
  if (flags & FLAG.vm && half >= 3) {
    context.fillStyle = colours.vm;
    context.fillRect(x + corner - 3, y + corner - 3, 6, 6);
  }
  if (flags & FLAG.sm && half >= 4) dot(context, x - corner, y - corner, colours.match, colours.paper);
}

function dot(context, x, y, colour, paper) {
  context.beginPath();
  context.arc(x, y, 3.5, 0, Math.PI * 2);
  context.fillStyle = colour;
  context.fill();
  context.strokeStyle = paper;
  context.lineWidth = 1.2;
  context.stroke();
}

/** Names that are alike differ at their ends. */
const shorten = (words, most) => (words.length <= most ? words : `${words.slice(0, most - 11)}…${words.slice(-10)}`);

/** Names of one row differ at their ends. */
const ending = (words, most) => (words.length <= most ? words : `…${words.slice(1 - most)}`);

/** How labels of each row stand: beside each other, turned where there is less room, or not at all. */
function rowStyles(scene, marks, scale) {
  const styles = new Map();
  for (const nth of marks) {
    const row = scene.row[nth];
    const style = styles.get(row) ?? { longest: 0, room: Infinity };
    style.longest = Math.max(style.longest, Math.min(22, scene.label[nth].length));
    style.room = Math.min(style.room, scene.size[nth] * scale);
    styles.set(row, style);
  }
  for (const style of styles.values()) {
    style.flat = style.longest * LETTER + 4 < style.room || style.room > 120;
    style.turned = !style.flat && style.room >= 9.5;
  }
  return styles;
}

function labels(context, scene, dress, marks, to, scale, colours, size) {
  if (marks.length > 4000) return;
  const styles = rowStyles(scene, marks, scale);
  const taken = new Set();
  context.lineJoin = 'round';
  let drawn = 0;
  const order = [...marks].sort((a, b) => priority(scene, dress, b) - priority(scene, dress, a));
  for (const nth of order) {
    if (drawn >= LABELS_MAX) break;
    const style = scene.row[nth] >= 0 ? styles.get(scene.row[nth]) : null;
    if (style && !style.flat && (!style.turned || dress.flags[nth] & FLAG.open)) continue;
    if (label(context, scene, dress, nth, to, scale, colours, style, taken, size)) drawn += 1;
  }
  context.globalAlpha = 1;
}

const priority = (scene, dress, nth) => (dress.flags[nth] & (FLAG.match | FLAG.hot | FLAG.down) ? 10 : 0) + (scene.mk[nth] === 1 ? 0 : 5);

function label(context, scene, dress, nth, to, scale, colours, style, taken, size) {
  const isTurned = Boolean(style?.turned);
  // In the upper half labels stand above their marks, where fewer links are.
  const above = scene.mk[nth] !== 1 && scene.isTiers && scene.my[nth] < scene.mid;
  const words = isTurned ? ending(scene.label[nth], above ? 10 : 12) : shorten(scene.label[nth], 22);
  const half = reach(scene, nth, scale);
  const [x, y] = [to.x(scene.mx[nth]), to.y(scene.my[nth])];
  const wide = words.length * LETTER;
  const isInside = scene.mk[nth] === 0 && !scene.folding && wide < half * 2.5 - 6 && !(dress.flags[nth] & FLAG.down);
  const gap = scene.mk[nth] === 0 ? half * 0.85 + 4 : half + 4;
  const top = above ? y - gap - (isTurned ? wide : 13) : y + gap;
  const rectangle = isTurned ? [x - 4.7, top, 9.4, wide] : [x - wide / 2, top, wide, 13];
  if (isInside) return nameInside(context, words, x, y, colours, dress.flags[nth]);
  if (top > size.height || (occupied(taken, rectangle) && !style)) return false;
  context.globalAlpha = dress.flags[nth] & FLAG.dim ? 0.25 : 1;
  context.font = isTurned ? SMALL : FONT;
  context.strokeStyle = colours.halo;
  context.lineWidth = 3;
  context.fillStyle = scene.mk[nth] === 1 ? colours.soft : colours.ink;
  context.save();
  if (isTurned) {
    context.translate(x, above ? y - gap : y + gap);
    context.rotate(-Math.PI / 2);
    context.textAlign = above ? 'left' : 'right';
    context.textBaseline = 'middle';
    context.strokeText(words, 0, 0);
    context.fillText(words, 0, 0);
  } else {
    context.textAlign = 'center';
    context.textBaseline = 'top';
    context.strokeText(words, x, top);
    context.fillText(words, x, top);
  }
  context.restore();
  return true;
}

function nameInside(context, words, x, y, colours, flags) {
  if (flags & FLAG.frozen) return false;
  context.font = FONT;
  context.globalAlpha = flags & FLAG.dim ? 0.25 : 1;
  context.fillStyle = colours.ink;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillText(words, x, y + 0.5);
  return true;
}

/** Whether a label would lie on another: by cells of 4 by 12 pixels. */
function occupied(taken, [x, y, wide, high]) {
  const cells = [];
  for (let column = Math.floor(x / 4); column <= Math.floor((x + wide - 1) / 4); column += 1) {
    for (let row = Math.floor(y / 12); row <= Math.floor((y + high - 1) / 12); row += 1) {
      const cell = column * 100003 + row;
      if (taken.has(cell)) return true;
      cells.push(cell);
    }
  }
  cells.forEach((cell) => taken.add(cell));
  return false;
}
