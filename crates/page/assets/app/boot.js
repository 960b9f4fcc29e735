// Begins with the stream before the rest of the page is there: the state and the page's own parts come at the same time.

import { follow, takeToken } from './api.js';

const EARLY_MAX = 1000;

takeToken();

let listener = null;
const early = [];

const hear = (kind, what) => {
  if (listener) listener[kind](what);
  else if (early.length < EARLY_MAX) early.push([kind, what]);
};

export const stream = follow((line) => hear('heard', line), (error) => hear('lost', error));

/** Hands over what has come, and what will come. */
export function listen(to) {
  listener = to;
  early.splice(0).forEach(([kind, what]) => to[kind](what));
}
