// Where one looks: a point of the scene and a zoom, relative to the scene, so that a shared view fits any window.

const ZOOM_MIN = 0.5;
const ZOOM_MAX = 400;
const SIDE = 40;
/** Room for turned labels, where there are few enough marks for labels at all. */
const LABELS = { none: [26, 26], flat: [40, 56], turned: [74, 84] };
const TURNED_ABOVE = 30;
const LABELLED_MAX = 400;

const labelsOf = (marks) => (marks > LABELLED_MAX ? LABELS.none : marks > TURNED_ABOVE ? LABELS.turned : LABELS.flat);

/** What a scene of `marks` marks may take of a window. */
export function usable(size, marks) {
  const [wantedAbove, wantedBelow] = labelsOf(marks);
  const [above, below] = [Math.min(wantedAbove, size.height / 5), Math.min(wantedBelow, size.height / 4)];
  return { width: Math.max(60, size.width - 2 * SIDE), height: Math.max(60, size.height - above - below), lifted: (below - above) / 2 };
}

const isCalm = () => matchMedia('(prefers-reduced-motion: reduce)').matches;

export class Camera {
  constructor() {
    this.x = 0.5;
    this.y = 0.5;
    this.zoom = 1;
    this.isFitted = true;
    this.flight = null;
    this.listeners = [];
  }

  onMove(listener) { this.listeners.push(listener); }

  moved() { this.listeners.forEach((listener) => listener()); }

  set({ x, y, zoom }) {
    this.x = Math.max(-0.5, Math.min(1.5, x));
    this.y = Math.max(-0.5, Math.min(1.5, y));
    this.zoom = Math.max(ZOOM_MIN, Math.min(ZOOM_MAX, zoom));
    this.isFitted = false;
    this.moved();
  }

  fit() {
    this.flight = null;
    this.fly({ x: 0.5, y: 0.5, zoom: 1 }, true);
  }

  /** Goes there within a fifth of a second, or at once where motion is not wanted. */
  fly(to, isFit = false) {
    const from = { x: this.x, y: this.y, zoom: this.zoom };
    const begun = performance.now();
    const flight = {};
    this.flight = flight;
    const go = () => {
      if (this.flight !== flight) return;
      const share = isCalm() ? 1 : Math.min(1, (performance.now() - begun) / 220);
      const eased = 1 - (1 - share) ** 3;
      const between = (key) => from[key] + (to[key] - from[key]) * eased;
      this.set({ x: between('x'), y: between('y'), zoom: from.zoom * (to.zoom / from.zoom) ** eased });
      if (share < 1) requestAnimationFrame(go);
      else this.isFitted = isFit;
    };
    go();
  }

  /** The scene's centre on the screen and pixels a unit, in a window. */
  on({ box, shown }, size) {
    const [width, height] = [Math.max(box.right - box.left, 1e-6), Math.max(box.bottom - box.top, 1e-6)];
    const room = usable(size, shown);
    const fit = Math.min(room.width / width, room.height / height, 90);
    const scale = Math.max(fit, 1e-6) * this.zoom;
    // The room below is for labels: what is fitted stands above the middle.
    return { x: box.left + width * this.x, y: box.top + height * this.y + room.lifted / scale, scale, width, height, lifted: room.lifted };
  }

  /** Pans by pixels. */
  pan(dx, dy, place) {
    this.flight = null;
    this.set({ x: this.x - dx / place.scale / place.width, y: this.y - dy / place.scale / place.height, zoom: this.zoom });
  }

  /** Zooms by a factor, a point of the screen kept where it is. */
  zoomAt(factor, px, py, place, size) {
    this.flight = null;
    const zoom = Math.max(ZOOM_MIN, Math.min(ZOOM_MAX, this.zoom * factor));
    const scale = place.scale * (zoom / this.zoom);
    const [dx, dy] = [px - size.width / 2, py - (size.height / 2 - place.lifted)];
    this.set({
      x: this.x + (dx / place.scale - dx / scale) / place.width,
      y: this.y + (dy / place.scale - dy / scale) / place.height, zoom,
    });
  }
}
