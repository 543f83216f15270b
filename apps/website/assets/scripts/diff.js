/**
 * What a diff has with scripts on: files that were folded open in their place, and so does more context of a file. The
 * links that this takes lead to pages that show the same.
 */

/** @type {Map<string, Promise<Element>>} */
const loading = new Map();

/** Loads the page that shows a file alone, and returns the file. */
function load(/** @type {string} */ address, /** @type {string} */ id) {
  const loadFile = async () => {
    const answer = await fetch(address);
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const file = page.getElementById(id);
    if (!answer.ok || file === null) throw new Error(`${address} does not show the file`);
    return document.adoptNode(file);
  };
  const known = loading.get(address) ?? loadFile().finally(() => loading.delete(address));
  loading.set(address, known);
  return known;
}

/**
 * Shows the file of the link where the link stands; follows the link if that fails.
 *
 * @param {HTMLAnchorElement} link
 */
function open(link, afterwards = () => {}) {
  show(link).then(afterwards, () => location.assign(link.href));
}

/** @param {HTMLAnchorElement} link */
async function show(link) {
  const file = link.closest('details');
  if (file === null) return;
  const hadFocus = document.activeElement === link;
  link.setAttribute('aria-busy', 'true');
  const loaded = await load(link.href, file.id);
  file.replaceWith(loaded);
  if (hadFocus) loaded.querySelector('summary')?.focus();
}

/** Opens the folded file of the line that the address names. */
function find() {
  const [, name] = /^#(d\d+)[LR]\d+$/.exec(location.hash) ?? [];
  if (name === undefined || document.getElementById(location.hash.slice(1)) !== null) return;
  const file = document.getElementById(name);
  /** @type {HTMLAnchorElement | null | undefined} */
  const link = file?.querySelector('.empty a[data-in-place]');
  // Sets the target of the page once more, now that it is there.
  if (link !== null && link !== undefined) open(link, () => location.replace(location.hash));
}

document.addEventListener('click', (event) => {
  if (!(event.target instanceof Element) || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  /** @type {HTMLAnchorElement | null} */
  const link = event.target.closest('a[data-in-place]');
  if (link === null) return;
  event.preventDefault();
  open(link);
});

// The event does not bubble.
document.addEventListener(
  'toggle',
  ({ target }) => {
    if (!(target instanceof HTMLDetailsElement) || !target.open) return;
    /** @type {HTMLAnchorElement | null} */
    const link = target.querySelector(':scope > .empty a[data-in-place]');
    if (link !== null) open(link);
  },
  true,
);

addEventListener('hashchange', find);
find();
