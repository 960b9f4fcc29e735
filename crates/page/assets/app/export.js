// What is seen as a file: PNG and SVG of the map, CSV of the table.

import { isDark, palette, theme } from './colours.js';
import { project, reach } from './paint.js';
import { FLAG } from './scene.js';
import { detailed, route } from './strands.js';

export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const fileName = (app, extension) => `${(app.store.state?.lab ?? 'weft').replace(/[^\w.-]+/g, '-').slice(0, 60)}.${extension}`;

/** The map as it is seen, twice as fine. */
export async function png(app, map) {
  const ratio = 2;
  const canvas = document.createElement('canvas');
  canvas.width = map.size.width * ratio;
  canvas.height = map.size.height * ratio;
  const pen = canvas.getContext('2d', { alpha: false });
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  const [place, look] = [map.place(), map.look()];
  const seen = detailed(map.scene, place, map.size);
  map.paintOn(pen, place, seen);
  const flow = map.state.flows[app.view.flow];
  if (flow) route(pen, map.scene, map.state, flow.path ?? [], place, map.size, look, seen !== null, 0);
  const blob = await new Promise((resolve) => { canvas.toBlob(resolve, 'image/png'); });
  save(blob, fileName(app, 'png'));
}

const escaped = (words) => String(words).replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`)
  // eslint-disable-next-line no-control-regex
  .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '�');

/** The map as it is seen, as vectors. */
export function svg(app, map) {
  const colours = theme(isDark());
  const place = map.place();
  const to = project(place, map.size);
  const { plain } = map.scene;
  const paints = palette(colours, app.view.colour);
  const { width, height } = map.size;
  const out = [`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="11">`,
    `<title>${escaped(app.store.state.lab ?? 'weft')}</title><desc>${escaped(app.summaryWords())}</desc>`, `<rect width="100%" height="100%" fill="${colours.paper}"/>`];
  for (let nth = 0; nth < plain.ea.length; nth += 1) {
    const [a, b] = [plain.ea[nth], plain.eb[nth]];
    const dash = paints[map.dress.colour[nth]] === colours.down ? ' stroke-dasharray="5 4"' : '';
    out.push(`<path d="M${to.x(plain.mx[a]).toFixed(1)} ${to.y(plain.my[a]).toFixed(1)}L${to.x(plain.mx[b]).toFixed(1)} ${to.y(plain.my[b]).toFixed(1)}" stroke="${paints[map.dress.colour[nth]]}" stroke-width="${(1.2 + map.dress.width[nth] * 0.9).toFixed(1)}"${dash}/>`);
  }
  for (let nth = 0; nth < plain.mx.length; nth += 1) out.push(markSvg(map, nth, to, place.scale, colours));
  out.push('</svg>');
  save(new Blob([out.join('\n')], { type: 'image/svg+xml' }), fileName(app, 'svg'));
}

function markSvg(map, nth, to, scale, colours) {
  const { plain } = map.scene;
  const [x, y, half] = [to.x(plain.mx[nth]), to.y(plain.my[nth]), reach(plain, nth, scale)];
  const isDown = map.dress.flags[nth] & FLAG.down;
  const paintOf = `fill="${plain.mk[nth] === 1 ? colours.hostFill : colours.switchFill}" stroke="${isDown ? colours.down : colours.switchLine}"`;
  const title = `<title>${escaped(plain.label[nth])}</title>`;
  const body = plain.mk[nth] === 1
    ? `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${half.toFixed(1)}" ${paintOf}>${title}</circle>`
    : `<rect x="${(x - half * 1.25).toFixed(1)}" y="${(y - half * 0.85).toFixed(1)}" width="${(half * 2.5).toFixed(1)}" height="${(half * 1.7).toFixed(1)}" rx="3" ${paintOf}>${title}</rect>`;
  const room = plain.size[nth] * scale;
  if (room < 40) return body;
  return `${body}<text x="${x.toFixed(1)}" y="${(y + half + 13).toFixed(1)}" text-anchor="middle" fill="${colours.ink}">${escaped(plain.label[nth].slice(0, 24))}</text>`;
}

/** A cell of CSV (RFC 4180). One that a spreadsheet would take for a formula is marked as text. */
function cell(value) {
  let words = String(value ?? '').replaceAll(' ', ' ');
  if (/^[=+\-@\t\r]/.test(words) && Number.isNaN(Number(words))) words = `'${words}`;
  return /[",\r\n]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
}

export function csv(app, table) {
  const lines = table.texts().map((row) => row.map(cell).join(','));
  save(new Blob([`${lines.join('\r\n')}\r\n`], { type: 'text/csv' }), fileName(app, 'csv'));
}
