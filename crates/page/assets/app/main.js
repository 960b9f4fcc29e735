// The page: brings the server's stream, the view and the parts together.

import { Refused, takeToken } from './api.js';
import { listen, stream } from './boot.js';
import { attribute, find, text, toast } from './dom.js';
import { App } from './app.js';

const app = new App();
// A test reads frames and counts here.
globalThis.weft = app;

let hiddenAt = null;

text(find('status'), 'connecting');
listen({
  heard: (line) => {
    if (line.key) app.heardKey(line.key);
    else if (line.patch) app.heardPatch(line.patch, line.at_ms);
    else if (line.gone) app.heardGone(line.gone);
  },
  lost: (error) => {
    if (error instanceof Refused && (error.status === 401 || error.status === 403)) app.denied(error);
    else app.heardGone(error instanceof Refused ? error.message : 'the page’s server does not answer', 'is weft ui still running?');
  },
});

// A tab that slept has missed patches, or has a long queue of them: it begins with a fresh state.
const SLEPT_MS = 60_000;
document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    hiddenAt = { wall: Date.now(), own: performance.now() };
    return;
  }
  const slept = hiddenAt && Math.max(Date.now() - hiddenAt.wall, performance.now() - hiddenAt.own);
  hiddenAt = null;
  if (slept > SLEPT_MS) stream.again();
});
addEventListener('online', () => stream.again());
addEventListener('pageshow', (event) => { if (event.persisted) stream.again(); });

// A fragment that somebody pastes is another view, or a new token.
addEventListener('hashchange', () => {
  if (/[#&]token=/.test(location.hash)) {
    takeToken();
    stream.again();
  }
  app.readView();
});

function wireTools() {
  const menu = find('exports');
  const opener = find('export');
  const show = (isOpen) => {
    menu.hidden = !isOpen;
    attribute(opener, 'aria-expanded', isOpen);
  };
  opener.addEventListener('click', () => show(menu.hidden));
  menu.addEventListener('click', (event) => {
    const kind = event.target.dataset?.export;
    if (!kind) return;
    show(false);
    app.export(kind).catch((error) => toast(`Cannot export: ${error.message}`, 'error'));
  });
  document.addEventListener('pointerdown', (event) => { if (!event.target.closest('.menu')) show(false); });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && !menu.hidden) {
      show(false);
      opener.focus();
    }
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      find('find').focus();
    }
  });
  find('share').addEventListener('click', async () => {
    const url = app.sharedUrl();
    try {
      await navigator.clipboard.writeText(url);
      toast('Link copied. It has this view and no token.');
    } catch {
      toast(url);
    }
  });
}

wireTools();
