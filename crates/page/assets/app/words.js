// Numbers, units and times in words.

const SPACE = ' ';

function short(value) {
  if (value === 0) return '0';
  if (value >= 100) return value.toFixed(0);
  if (value >= 10) return value.toFixed(1);
  return value.toFixed(2);
}

/** Megabytes a second: of the machine's clock, or of fabric time where the laboratory is shaped. */
export function rate(mbps, shaped) {
  if (mbps === null || mbps === undefined) return '–';
  if (shaped) return `${short((mbps * 8) / 1000)}${SPACE}Gb/s`;
  if (mbps >= 1000) return `${short(mbps / 1000)}${SPACE}GB/s`;
  if (mbps > 0 && mbps < 0.1) return `${short(mbps * 1000)}${SPACE}kB/s`;
  return `${short(mbps)}${SPACE}MB/s`;
}

export function percent(share) {
  if (share === null || share === undefined) return '–';
  const value = share * 100;
  return `${value > 0 && value < 1 ? '<1' : value.toFixed(0)}${SPACE}%`;
}

export function count(value) {
  if (value === null || value === undefined) return '–';
  // Intl would take longer than all else of the first picture.
  return String(value).replace(/\B(?=(\d{3})+$)/g, SPACE);
}

export function micros(value) {
  if (value === null || value === undefined) return '–';
  return value >= 1000 ? `${short(value / 1000)}${SPACE}ms` : `${short(value)}${SPACE}µs`;
}

export function bytes(value) {
  if (value === null || value === undefined) return '–';
  if (value < 1000) return `${value}${SPACE}B`;
  const [unit, name] = value < 1e6 ? [1e3, 'kB'] : value < 1e9 ? [1e6, 'MB'] : value < 1e12 ? [1e9, 'GB'] : [1e12, 'TB'];
  return `${short(value / unit)}${SPACE}${name}`;
}

/** What is known of a flow's latency. */
export function latency(flow) {
  const known = [['mean', flow.mean_us], ['p50', flow.p50_us], ['p99', flow.p99_us], ['max', flow.max_us]].filter(([, value]) => Number.isFinite(value));
  return known.map(([name, value]) => `${name} ${micros(value)}`).join(', ');
}

/** A duration; clocks may be set back, so it is never negative. */
export function since(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds}${SPACE}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}${SPACE}min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}${SPACE}h ${Math.floor((seconds % 3600) / 60)}${SPACE}min`;
  return `${Math.floor(seconds / 86400)}${SPACE}d`;
}

const two = (value) => String(value).padStart(2, '0');

/** A moment: of the wall clock, or of the run's own. */
export function moment(ms, clock) {
  if (!Number.isFinite(ms)) return '–';
  if (clock === 'virtual') {
    const seconds = ms / 1000;
    const minutes = Math.floor(seconds / 60);
    return `${minutes}:${(seconds - minutes * 60).toFixed(3).padStart(6, '0')}`;
  }
  // A thousand times slower: milliseconds stand for microseconds.
  if (clock === 'virtual-us') return `${(ms / 1000).toFixed(3)}${SPACE}ms`;
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return '–';
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function plural(number, one, many = `${one}s`) {
  return `${count(number)}${SPACE}${number === 1 ? one : many}`;
}

/** The first letters of a text. */
export function cut(words, most) {
  const wanted = String(words ?? '');
  return wanted.length <= most ? wanted : `${wanted.slice(0, most - 1)}…`;
}

/** Names in one list: `a, b and c`, at most `most` of them. */
export function names(list, most = 6) {
  const shown = list.slice(0, most);
  if (list.length > most) return `${shown.join(', ')} and ${list.length - most} more`;
  if (shown.length < 2) return shown.join('');
  return `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`;
}
