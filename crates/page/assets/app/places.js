// Positions that somebody dragged, kept in this browser, a list a fabric.

const PREFIX = 'weft-places:';
const FABRICS_MAX = 20;

/** A name of a fabric: FNV-1a over its GUIDs. */
function nameOf(guids) {
  let sum = 0x811c9dc5;
  for (const letter of [...guids].sort().join('')) sum = Math.imul(sum ^ letter.charCodeAt(0), 0x01000193) >>> 0;
  return PREFIX + sum.toString(16).padStart(8, '0');
}

const isPlace = (place) => place !== null && typeof place === 'object' && Number.isFinite(place.x) && Number.isFinite(place.y);

export class Places {
  constructor(changed) {
    this.changed = changed;
    this.key = null;
    this.places = {};
  }

  open(guids) {
    const key = nameOf(guids);
    if (key === this.key) return;
    this.key = key;
    this.places = {};
    try {
      const kept = JSON.parse(localStorage.getItem(key) ?? '{}');
      for (const [guid, place] of Object.entries(kept)) if (isPlace(place)) this.places[guid] = { x: place.x, y: place.y };
    } catch { /* nothing was kept, or something else's */ }
  }

  all() { return this.places; }
  some() { return Object.keys(this.places).length > 0; }
  move(guid, x, y) { this.places[guid] = { x, y }; }

  save() {
    try {
      const others = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX) && key !== this.key);
      others.slice(0, Math.max(0, others.length - FABRICS_MAX + 1)).forEach((key) => localStorage.removeItem(key));
      localStorage.setItem(this.key, JSON.stringify(this.places));
    } catch { /* a full or closed store keeps nothing */ }
  }

  clear() {
    this.places = {};
    try { localStorage.removeItem(this.key); } catch { /* as above */ }
    this.changed();
  }
}
