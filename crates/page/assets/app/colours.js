// Colours: two scales that people who do not tell red from green can read (blue for data, amber for waiting), and Okabe and Ito's for
// lanes and states. Colour never stands alone: what is down is dashed and crossed, waiting is wide.

export const STEPS = 8;
export const PLAIN = 0;
export const DOWN = STEPS + 1;
export const STARTING = STEPS + 2;
export const ACTIVE = STEPS + 3;
export const FAINT = STEPS + 4;

const DATA_LIGHT = ['#b9cad6', '#93bcd3', '#66a9cd', '#3a94c2', '#1f7bb0', '#135f93', '#0c4572', '#062c4e'];
const DATA_DARK = ['#39505f', '#3a6580', '#3a7ca1', '#3f95c2', '#5cafda', '#86c7e8', '#b2dcf2', '#def1fb'];
const WAIT_LIGHT = ['#d3ccbd', '#e9c98a', '#eeb04d', '#e5901f', '#cf6f0c', '#ac5108', '#833809', '#571f05'];
const WAIT_DARK = ['#4a4638', '#6b5525', '#8d661c', '#b37d1d', '#d9982b', '#f2b552', '#fbd28c', '#ffecc9'];

const LIGHT = {
  paper: '#ffffff', ink: '#1d2730', soft: '#5a6875', plain: '#bcc6cf', active: '#7d8d9b', faint: '#dde3e8', down: '#c94f00', starting: '#b0589a',
  switchFill: '#eaf0f5', switchLine: '#465866', hostFill: '#ffffff', hostLine: '#5f7180', match: '#7a3ff2', path: '#e69f00', pathEdge: '#7a4e00',
  hot: '#c2185b', frozen: '#2f8fc9', vm: '#00785a', halo: '#ffffff', data: DATA_LIGHT, wait: WAIT_LIGHT,
  lanes: ['#0072b2', '#d98200', '#00875f', '#bb5c94', '#3c9fd6', '#c94f00', '#8a7d00', '#555555'],
};
const DARK = {
  paper: '#12181e', ink: '#e3e9ee', soft: '#9aa9b6', plain: '#404c57', active: '#748594', faint: '#27313a', down: '#ff8a3d', starting: '#d98cc3',
  switchFill: '#25313c', switchLine: '#9db0c0', hostFill: '#12181e', hostLine: '#8da0b0', match: '#b794ff', path: '#ffc145', pathEdge: '#3d2a00',
  hot: '#ff6fa3', frozen: '#6fc3f2', vm: '#3ecf9f', halo: '#12181e', data: DATA_DARK, wait: WAIT_DARK,
  lanes: ['#56b4e9', '#ffb733', '#2fd3a0', '#e59ac6', '#9ad8ff', '#ff8a3d', '#f0e442', '#bbbbbb'],
};

export const isDark = () => matchMedia('(prefers-color-scheme: dark)').matches;
export const theme = (dark) => (dark ? DARK : LIGHT);

/** Colours of links by number, so that a worker gets bytes. */
export function palette(colours, colour) {
  const scale = colour === 'wait' ? colours.wait : colours.data;
  return [colours.plain, ...scale, colours.down, colours.starting, colours.active, colours.faint];
}

/** The number of a share from 0 to 1; nothing at all is plain. */
export function step(share) {
  if (!(share > 0)) return PLAIN;
  return 1 + Math.min(STEPS - 1, Math.floor(Math.sqrt(share) * STEPS));
}


/** The share of a link that is used, in its busier direction; relative to `top` where packets take no time. */
export function useOf(cable, state, top) {
  const mbps = Math.max(cable.ab?.mbps ?? 0, cable.ba?.mbps ?? 0);
  if (!mbps) return 0;
  if (state.shaped && cable.gbps) return Math.min(1, (mbps * 8) / 1000 / cable.gbps);
  return top > 0 ? mbps / top : 0;
}

/** The share of time waited for credits; relative to the most where packets take no time. */
export function waitOf(cable, state, top) {
  const wait = Math.max(cable.ab?.wait ?? 0, cable.ba?.wait ?? 0);
  if (state.shaped) return Math.min(1, wait);
  return top > 0 ? wait / top : 0;
}

/** The largest rate and wait of all links. */
export function tops(index) {
  const top = { mbps: 0, wait: 0 };
  const see = (way) => {
    if (way.mbps > top.mbps) top.mbps = way.mbps;
    if (way.wait > top.wait) top.wait = way.wait;
  };
  for (const [, cable] of index.cableList) {
    if (cable.ab) see(cable.ab);
    if (cable.ba) see(cable.ba);
  }
  return top;
}

/** The number of a link's colour. */
export function colourOf(cable, state, colour, top) {
  if (cable.state === 'down' || cable.planned === 'missing') return DOWN;
  if (cable.state === 'init' || cable.state === 'armed') return STARTING;
  if (colour === 'state') return ACTIVE;
  return step(colour === 'wait' ? waitOf(cable, state, top.wait) : useOf(cable, state, top.mbps));
}
