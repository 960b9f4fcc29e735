// Where one looks: a point of the scene and a zoom, relative to the scene, so that a shared view fits any window.

const ZOOM_MIN = 0.5;
const ZOOM_MAX = 400;
const MARGIN = 46;

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
  on(box, size) {
    const [width, height] = [Math.max(box.right - box.left, 1e-6), Math.max(box.bottom - box.top, 1e-6)];
    const fit = Math.min((size.width - 2 * MARGIN) / width, (size.height - 2 * MARGIN) / height, 90);
    const scale = Math.max(fit, 1e-6) * this.zoom;
    return { x: box.left + width * this.x, y: box.top + height * this.y, scale, width, height };
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
    const [dx, dy] = [px - size.width / 2, py - size.height / 2];
    this.set({
      x: this.x + (dx / place.scale - dx / scale) / place.width,
      y: this.y + (dy / place.scale - dy / scale) / place.height, zoom,
    });
  }
}
