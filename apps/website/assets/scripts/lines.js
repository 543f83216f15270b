/**
 * What the lines of a file have with scripts on: ranges, marked by a click and a click with the shift key; the key `y`
 * for the address that keeps the lines; and the way to a line that is in another window. A link to one line works
 * without it.
 */

/** Those of a file in one box, and those of a blame in a box for each commit. */
const boxes = document.querySelectorAll('.lines');

/** @returns {readonly [number, number] | null} */
function rangeOf(/** @type {string} */ hash) {
  const [, first, last] = /^#L(\d{1,9})(?:-L?(\d{1,9}))?$/.exec(hash) ?? [];
  if (first === undefined) return null;
  const [a, b] = [Number(first), Number(last ?? first)];
  return a < b ? [a, b] : [b, a];
}

/** @type {HTMLElement[]} */
let marked = [];

/** Marks the lines that the address names. */
function mark() {
  for (const number of marked) number.classList.remove('marked');
  marked = [];
  const [first, last] = rangeOf(location.hash) ?? [1, 0];
  for (let number = first; number <= last; number += 1) {
    const line = document.getElementById(`L${number}`);
    // The rest is in another window.
    if (line === null) break;
    line.classList.add('marked');
    marked.push(line);
  }
}

/** Opens the window of a line that is not on this page. */
function find() {
  const [first] = rangeOf(location.hash) ?? [];
  if (first === undefined) return;
  const line = document.getElementById(`L${first}`);
  if (line !== null) {
    // A browser finds a line by itself, but not a range.
    if (location.hash.includes('-')) line.scrollIntoView();
    return;
  }
  /** @type {HTMLElement | null} */
  const windows = document.querySelector('[data-lines]');
  if (windows === null || first < 1 || first > Number(windows.dataset['lines'])) return;
  const address = new URL(location.href);
  if (address.searchParams.get('from') === String(first)) return;
  address.searchParams.set('from', String(first));
  location.replace(address);
}

if (boxes.length > 0) {
  // From here on the script marks lines, since the target of the page stays what it was when that moves nowhere.
  for (const box of boxes) box.classList.add('scripted');
  document.addEventListener('click', (event) => {
    if (!(event.target instanceof Element) || event.ctrlKey || event.metaKey || event.altKey) return;
    const hash = event.target.closest('.lines a[id]')?.getAttribute('href') ?? '';
    const clicked = rangeOf(hash);
    if (clicked === null) return;
    event.preventDefault();
    const from = event.shiftKey ? rangeOf(location.hash) : null;
    const [a, b] = from === null ? clicked : [Math.min(from[0], clicked[0]), Math.max(from[0], clicked[0])];
    // The page stays where it is.
    history.replaceState(null, '', a === b ? `#L${a}` : `#L${a}-L${b}`);
    mark();
  });
  addEventListener('hashchange', () => {
    mark();
    find();
  });
  mark();
  find();
}

addEventListener('keydown', (event) => {
  const { target } = event;
  if (event.key !== 'y' || event.ctrlKey || event.metaKey || event.altKey) return;
  if (target instanceof HTMLElement && (target.isContentEditable || target.matches('input, textarea, select'))) return;
  /** @type {HTMLAnchorElement | null} */
  const link = document.querySelector('a[data-permalink]');
  if (link === null) return;
  const address = new URL(link.href);
  address.search = location.search;
  address.hash = location.hash;
  history.replaceState(null, '', address);
});
