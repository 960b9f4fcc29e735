// Time: the bar below the map. It goes back through the last minutes or a tape, plays, steps, and compares two moments.

import { get, lines } from './api.js';
import { attribute, find, h, icon, text, toast } from './dom.js';
import { merge, whole } from './state.js';
import { moment } from './words.js';

const RANGE_EVERY_MS = 5000;
/** Once the range is known, the live state extends it; it is asked again only because old moments go. */
const AGAIN_EVERY_MS = 60_000;
const STEPS = 200;
const MARKS_MAX = 400;
const ICONS = {
  before: 'M3 3h2v10H3zM13 3v10L6 8z', back: 'M12 3v10L5 8z', play: 'M4 2.5v11l9-5.5z', pause: 'M4 3h3v10H4zM9 3h3v10H9z', on: 'M4 3v10l7-5z', next: 'M11 3h2v10h-2zM3 3v10l7-5z',
};
const SPEEDS = [0.25, 0.5, 1, 2, 5, 10, 60];

export class Tape {
  constructor(app) {
    this.app = app;
    this.range = null;
    this.at = null;
    this.playing = null;
    this.seek = null;
    this.build();
    this.asked = -Infinity;
    setInterval(() => { if (!document.hidden && performance.now() - this.asked > (this.range ? AGAIN_EVERY_MS : 0)) this.askRange(); }, RANGE_EVERY_MS);
  }

  build() {
    const button = (shape, label, run, kind = '') => h('button', { type: 'button', class: kind, 'aria-label': label, title: label, on: { click: run } }, shape in ICONS ? icon(ICONS[shape]) : shape);
    this.play = button('play', 'Play', () => (this.playing ? this.stop() : this.start()), 'play');
    this.slider = h('input', { type: 'range', min: 0, max: 1, step: 'any', 'aria-label': 'Moment', class: 'moment' });
    this.slider.addEventListener('input', () => this.goTo(Number(this.slider.value)));
    this.marks = h('div', { class: 'marks', 'aria-hidden': 'true' });
    this.clock = h('output', { class: 'clock' });
    this.speed = h('select', { 'aria-label': 'Speed' }, SPEEDS.map((value) => h('option', { value, text: `${value}×`, selected: value === 1 })));
    this.liveButton = button('Live', 'Live: back to now', () => this.toLive(), 'live');
    this.compare = h('button', { type: 'button', text: 'Compare', 'aria-pressed': 'false', title: 'Keep this moment beside another', on: { click: () => this.toggleCompare() } });
    this.jump = h('select', { 'aria-label': 'Jump to an event', class: 'jump' });
    this.jump.addEventListener('change', () => { if (this.jump.value) this.goTo(Number(this.jump.value)); });
    find('tape').replaceChildren(
      h('div', { class: 'keys' }, button('before', 'Event before', () => this.toMark(-1)), button('back', 'Step back', () => this.step(-1)), this.play,
        button('on', 'Step on', () => this.step(1)), button('next', 'Next event', () => this.toMark(1))),
      h('div', { class: 'line' }, this.marks, this.slider), this.clock, this.jump, this.speed, this.compare, this.liveButton);
  }

  async askRange() {
    if (this.app.status === 'denied') return;
    this.asked = performance.now();
    try {
      const range = await get('/api/tape');
      this.setRange(range);
    } catch { /* no tape is no harm: the bar stays away */ }
  }

  setRange(range) {
    if (!Number.isFinite(range.from_ms) || !Number.isFinite(range.to_ms) || range.to_ms <= range.from_ms) return;
    const isFirst = this.range === null;
    this.range = { ...range, marks: Array.isArray(range.marks) ? range.marks.slice(-MARKS_MAX) : [] };
    find('tape').hidden = false;
    if (isFirst) this.open();
    this.render();
  }

  /** The present goes on. */
  extend() {
    const { live } = this.app.store;
    if (!this.range?.live || !live) return;
    this.range.to_ms = Math.max(this.range.to_ms, live.at_ms ?? 0);
    const known = this.range.marks.at(-1)?.at_ms ?? this.range.from_ms;
    const later = Object.values(live.events).filter((event) => event.at_ms > known).sort((a, b) => a.at_ms - b.at_ms);
    this.range.marks = [...this.range.marks, ...later].slice(-MARKS_MAX);
  }

  /** A tape alone begins at its beginning; a view from the URL at its moment. */
  open() {
    const { view } = this.app;
    if (view.against !== null) this.showAgainst(view.against);
    if (view.at !== null) this.goTo(view.at);
    else if (!this.range.live) this.goTo(this.range.from_ms);
  }

  get clockKind() { return this.app.store.state?.clock; }

  render() {
    if (!this.range) return;
    this.extend();
    this.renderMarks();
    const { from_ms: from, to_ms: to, live } = this.range;
    const now = this.at ?? (live ? to : from);
    attribute(this.slider, 'min', from);
    attribute(this.slider, 'max', to);
    if (document.activeElement !== this.slider || this.at === null || this.playing) this.slider.value = String(now);
    const isPast = this.at !== null;
    const words = isPast || !live ? moment(now, this.clockKind) : 'now';
    attribute(this.slider, 'aria-valuetext', words);
    text(this.clock, words);
    const label = this.playing ? 'Pause' : 'Play';
    if (this.play.getAttribute('aria-label') !== label) this.play.replaceChildren(icon(this.playing ? ICONS.pause : ICONS.play));
    attribute(this.play, 'aria-label', label);
    attribute(this.play, 'title', label);
    this.liveButton.hidden = !live;
    this.liveButton.disabled = !isPast;
    attribute(this.compare, 'aria-pressed', this.app.view.against !== null);
    find('tape').classList.toggle('past', isPast && live);
  }

  renderMarks() {
    const { from_ms: from, to_ms: to, marks } = this.range;
    const key = `${from}/${Math.floor(to / 2000)}/${marks.length}/${marks.at(-1)?.at_ms}`;
    if (this.marksKey === key) return;
    this.marksKey = key;
    this.marks.replaceChildren(...marks.map((mark) => {
      const tick = h('i', { class: /down|kill|fail|dead/.test(mark.kind) ? 'tick bad' : 'tick' });
      tick.style.left = `${((mark.at_ms - from) / (to - from)) * 100}%`;
      return tick;
    }));
    const chosen = this.jump.value;
    const option = (mark) => h('option', { value: mark.at_ms, text: `${moment(mark.at_ms, this.clockKind)} ${mark.text ?? mark.kind}`.slice(0, 120) });
    this.jump.replaceChildren(h('option', { value: '', text: marks.length ? 'Jump to…' : 'No events' }), ...[...marks].reverse().map(option));
    this.jump.value = chosen;
  }

  clamp(ms) { return Math.max(this.range.from_ms, Math.min(this.range.to_ms, ms)); }

  /** Shows a moment. While the server looks for one, only the last that was wanted is asked next. */
  async goTo(ms, keepPlaying = false) {
    if (!this.range) return;
    if (!keepPlaying) this.stop();
    this.at = this.clamp(ms);
    this.app.view.at = Math.round(this.at);
    this.app.keep();
    this.render();
    if (this.seek) {
      this.seek.next = this.at;
      return;
    }
    this.seek = { next: this.at };
    try {
      while (this.seek.next !== null && this.at !== null) {
        const wanted = this.seek.next;
        this.seek.next = null;
        const { key } = await get(`/api/tape/at?ms=${Math.round(wanted)}`);
        if (this.at === null) break;
        this.app.showPast(key);
      }
    } catch (error) {
      toast(`This moment cannot be shown: ${error.message}`, 'error', error.hint ?? null);
    }
    this.seek = null;
    this.render();
  }

  toLive() {
    this.stop();
    this.at = null;
    this.app.view.at = null;
    this.app.keep();
    this.app.showLive();
    this.render();
  }

  stepMs() { return Math.max(1, Math.min(1000, (this.range.to_ms - this.range.from_ms) / STEPS)); }

  step(by) { this.goTo((this.at ?? this.range.to_ms) + by * this.stepMs()); }

  toMark(by) {
    const now = this.at ?? this.range.to_ms;
    const times = this.range.marks.map((mark) => mark.at_ms).sort((a, b) => a - b);
    const found = by > 0 ? times.find((ms) => ms > now + 0.5) : times.findLast((ms) => ms < now - 0.5);
    if (found === undefined) toast(by > 0 ? 'No later event' : 'No earlier event');
    else this.goTo(found);
  }

  stop() {
    this.playing?.abort();
    this.playing = null;
    this.render();
  }

  /** Plays: the server sends the patches, and they are applied when their time has come. */
  async start() {
    if (!this.range) return;
    const playing = new AbortController();
    this.playing = playing;
    const from = this.at === null || this.at >= this.range.to_ms - 1 ? this.range.from_ms : this.at;
    const begun = performance.now();
    let speed = Number(this.speed.value);
    let [base, baseAt] = [from, begun];
    const target = () => {
      if (Number(this.speed.value) !== speed) [base, baseAt, speed] = [base + (performance.now() - baseAt) * speed, performance.now(), Number(this.speed.value)];
      return base + (performance.now() - baseAt) * speed;
    };
    this.at = from;
    this.render();
    try {
      for await (const line of lines(`/api/tape/play?from=${Math.round(from)}&to=${Math.round(this.range.to_ms)}`, playing.signal)) {
        if (line.key) this.app.showPast(line.key);
        if (!line.patch) continue;
        await this.until(line.at_ms, target, playing.signal);
        if (playing.signal.aborted) return;
        this.app.store.patchShown(line.patch, line.at_ms);
      }
      if (this.range) await this.until(this.range.to_ms, target, playing.signal);
    } catch (error) {
      if (!playing.signal.aborted) toast(`The tape ends here: ${error.message}`, 'error');
    }
    if (this.playing === playing) this.stop();
  }

  /** Moves the clock until a time of the tape. */
  until(ms, target, signal) {
    return new Promise((resolve) => {
      const tick = () => {
        if (signal.aborted) {
          resolve();
          return;
        }
        const now = target();
        this.at = this.clamp(Math.min(now, ms));
        this.app.view.at = Math.round(this.at);
        this.render();
        if (now >= ms) {
          this.app.keep();
          resolve();
        } else {
          requestAnimationFrame(tick);
        }
      };
      tick();
    });
  }

  toggleCompare() {
    if (this.app.view.against !== null) this.app.closeOther();
    else this.showAgainst(this.at ?? this.range.to_ms);
    this.render();
  }

  async showAgainst(ms) {
    try {
      const { key } = await get(`/api/tape/at?ms=${Math.round(this.clamp(ms))}`);
      this.app.view.against = Math.round(this.clamp(ms));
      this.app.openOther(whole(merge({}, key)));
      this.render();
    } catch (error) {
      toast(`This moment cannot be kept: ${error.message}`, 'error', error.hint ?? null);
    }
  }
}
