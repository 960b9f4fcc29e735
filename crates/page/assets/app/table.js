// A table that can be sorted, filtered and paged: what the map shows, for keyboards and screen readers.

import { attribute, h, keyed, text } from './dom.js';
import { count } from './words.js';

const PAGE = 100;
// Longer tables are not sorted again with each change: it would take longer than a frame.
const MANY = 2000;
const SORT_EVERY_MS = 5000;

/**
 * `columns`: {key, title, value(row), show(row)?, numeric?, button?}. `rows()` gives what is to be shown, `key(row)` an id,
 * `choose(row)` is called on a click; `isChosen(row)` marks one.
 */
export class Table {
  constructor({ caption, columns, rows, key, choose, isChosen, sort, empty, isFiltered }) {
    Object.assign(this, { columns, rows, key, choose, isChosen, empty, isFiltered });
    this.sort = sort;
    this.page = 0;
    this.body = h('tbody');
    this.none = h('p', { class: 'none', text: empty });
    this.head = h('tr', {}, columns.map((column) => this.header(column)));
    const table = h('table', {}, h('caption', { class: 'hidden', text: caption }), h('thead', {}, this.head), this.body);
    this.shown = h('span', { class: 'shown' });
    this.back = h('button', { type: 'button', text: 'Previous', on: { click: () => this.turn(-1) } });
    this.next = h('button', { type: 'button', text: 'Next', on: { click: () => this.turn(1) } });
    this.pager = h('div', { class: 'pager', hidden: true }, this.shown, this.back, this.next);
    this.element = h('div', { class: 'tablebox' }, table, this.none, this.pager);
  }

  header(column) {
    if (!column.value) return h('th', { scope: 'col', text: column.title });
    const button = h('button', { type: 'button', class: 'sort', text: column.title, on: { click: () => this.sortBy(column) } });
    return h('th', { scope: 'col', class: column.numeric ? 'number' : '', data: { key: column.key } }, button);
  }

  sortBy(column) {
    const down = this.sort.key === column.key ? !this.sort.down : Boolean(column.numeric);
    this.sort = { key: column.key, down };
    this.page = 0;
    this.update();
  }

  turn(by) {
    this.page += by;
    this.update();
  }

  /** All rows that fit the filter, sorted. */
  sorted() {
    const column = this.columns.find((one) => one.key === this.sort.key) ?? this.columns[0];
    const by = this.sort.down ? -1 : 1;
    return [...this.rows()].map((row) => [column.value(row), row]).sort(([a], [b]) => by * compare(a, b)).map(([, row]) => row);
  }

  /** Shows the rows again. A change of data alone (`isLazy`) may leave the order of a long table as it is. */
  update(isLazy = false) {
    const isFresh = this.last && performance.now() - this.last.at < SORT_EVERY_MS && this.last.rows.length > MANY;
    if (!isLazy || !isFresh) this.last = { rows: this.sorted(), at: performance.now() };
    const { rows } = this.last;
    const pages = Math.max(1, Math.ceil(rows.length / PAGE));
    this.page = Math.max(0, Math.min(this.page, pages - 1));
    const from = this.page * PAGE;
    for (const cell of this.head.children) {
      const isOwn = cell.dataset.key === this.sort.key;
      attribute(cell, 'aria-sort', isOwn ? (this.sort.down ? 'descending' : 'ascending') : 'none');
    }
    keyed(this.body, rows.slice(from, from + PAGE), this.key, (row) => this.make(row), (element, row) => this.fill(element, row));
    this.none.hidden = rows.length > 0;
    text(this.none, this.isFiltered?.() ? 'Nothing fits the search.' : this.empty);
    this.pager.hidden = rows.length <= PAGE;
    text(this.shown, `${count(from + 1)} to ${count(Math.min(rows.length, from + PAGE))} of ${count(rows.length)}`);
    this.back.disabled = this.page === 0;
    this.next.disabled = this.page >= pages - 1;
  }

  make() {
    const element = h('tr', {}, this.columns.map((column, nth) => {
      const cell = h(nth === 0 ? 'th' : 'td', { class: column.numeric ? 'number' : (column.class ?? ''), scope: nth === 0 ? 'row' : null });
      if (nth === 0 && this.choose) cell.append(h('button', { type: 'button', class: 'link' }));
      return cell;
    }));
    if (this.choose) {
      element.addEventListener('click', (event) => {
        if (!event.target.closest('button:not(.link)')) this.choose(element.row);
      });
    }
    return element;
  }

  fill(element, row) {
    element.row = row;
    const isChosen = this.isChosen?.(row) ?? false;
    element.classList.toggle('chosen', isChosen);
    this.columns.forEach((column, nth) => {
      const cell = element.children[nth];
      if (column.fill) {
        column.fill(cell, row);
        return;
      }
      const target = nth === 0 && this.choose ? cell.firstChild : cell;
      text(target, column.show ? column.show(row) : column.value(row));
      if (nth === 0 && this.choose) attribute(target, 'aria-pressed', isChosen);
      if (column.state) cell.className = `${column.class ?? ''} state-${column.state(row)}`;
    });
  }

  /** The table as texts, for a file. */
  texts() {
    const columns = this.columns.filter((column) => column.value);
    const line = (row) => columns.map((column) => (column.show ? column.show(row) : column.value(row)));
    return [columns.map((column) => column.title), ...this.sorted().map(line)];
  }
}

function compare(a, b) {
  const [none, other] = [a === null || a === undefined, b === null || b === undefined];
  if (none || other) return none - other;
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), 'en', { numeric: true });
}
