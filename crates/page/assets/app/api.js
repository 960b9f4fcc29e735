// The server: the token, requests and streams of lines.

const KEY = 'weft-token';
const SILENCE_MS = 25_000;
const WAIT_MIN_MS = 500;
const WAIT_MAX_MS = 5_000;
// A line longer than this is not one of ours.
const LINE_MAX = 64 * 1024 * 1024;

let token = null;

/** Takes the token out of the URL: it moves to sessionStorage, and a shared or reloaded URL has none. */
export function takeToken() {
  const fragment = new URLSearchParams(location.hash.slice(1, 4096));
  const given = fragment.get('token');
  if (given) {
    fragment.delete('token');
    const rest = fragment.toString();
    history.replaceState(null, '', rest ? `#${rest}` : location.pathname);
    token = given;
    try { sessionStorage.setItem(KEY, given); } catch { /* the token lives as long as the page */ }
    return;
  }
  try { token = sessionStorage.getItem(KEY); } catch { token = null; }
}

function headers(more = {}) {
  return token ? { Authorization: `Bearer ${token}`, ...more } : more;
}

export class Refused extends Error {
  constructor(status, words, hint) {
    super(words);
    this.status = status;
    this.hint = hint;
  }
}

async function refusal(response) {
  let said = {};
  try { said = await response.json(); } catch { /* no JSON: the status has to do */ }
  return new Refused(response.status, said.error ?? `the server answers ${response.status}`, said.hint ?? null);
}

export async function get(path, signal) {
  const response = await fetch(path, { headers: headers(), cache: 'no-store', signal });
  if (!response.ok) throw await refusal(response);
  return response.json();
}

/** Sends an action. Returns its words, or a file to save. */
export async function act(what) {
  const response = await fetch('/api/act', {
    method: 'POST', headers: headers({ 'Content-Type': 'application/json' }), body: JSON.stringify(what), cache: 'no-store',
  });
  if (!response.ok) throw await refusal(response);
  const kind = response.headers.get('Content-Type') ?? '';
  if (kind.startsWith('application/json')) return (await response.json()).done ?? 'done';
  return { blob: await response.blob(), name: fileName(response.headers.get('Content-Disposition')) };
}

function fileName(disposition) {
  const found = /filename="([\w.-]{1,100})"/.exec(disposition ?? '');
  return found ? found[1] : 'capture.pcapng';
}

/** Lines of JSON as they come. A reader that waits makes the server wait. */
export async function* lines(path, signal) {
  const response = await fetch(path, { headers: headers(), cache: 'no-store', signal });
  if (!response.ok) throw await refusal(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let parts = [];
  let length = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const pieces = value.split('\n');
    for (let nth = 0; nth < pieces.length; nth += 1) {
      parts.push(pieces[nth]);
      length += pieces[nth].length;
      if (length > LINE_MAX) throw new Error('a line of the server is too long');
      if (nth === pieces.length - 1) break;
      const line = parts.join('');
      [parts, length] = [[], 0];
      if (line) yield JSON.parse(line);
    }
  }
}

/**
 * Follows the live stream for ever: begins again when it ends, when nothing comes for 25 s, and on demand.
 * `heard(line)` gets each line, `lost(error)` why there is none.
 */
export function follow(heard, lost) {
  let abort = null;
  let last = performance.now();
  let wake = null;
  const again = () => { abort?.abort(); wake?.(); };
  setInterval(() => { if (performance.now() - last > SILENCE_MS) again(); }, 1000);
  const pause = (ms) => new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    wake = () => { clearTimeout(timer); resolve(); };
  });
  (async () => {
    for (let wait = WAIT_MIN_MS; ; wait = Math.min(wait * 2, WAIT_MAX_MS)) {
      abort = new AbortController();
      last = performance.now();
      let why = new Error('the server has ended the stream');
      try {
        for await (const line of lines('/api/stream?from=live', abort.signal)) {
          last = performance.now();
          if (line.key) wait = WAIT_MIN_MS;
          heard(line);
        }
      } catch (error) {
        why = error;
      }
      if (!abort.signal.aborted) lost(why);
      await pause(wait);
    }
  })();
  return { again };
}
