/**
 * Closes the open menu on Escape and on a click outside, and lists the branches and tags of the picker while somebody
 * types. Without it the field of the picker is a form.
 */

/** @type {NodeListOf<HTMLDetailsElement>} */
const menus = document.querySelectorAll('details.pop');

document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.isComposing) return;
  for (const menu of menus) {
    if (!menu.open) continue;
    menu.open = false;
    menu.querySelector('summary')?.focus();
  }
});

document.addEventListener('click', ({ target }) => {
  for (const menu of menus) {
    if (menu.open && target instanceof Node && !menu.contains(target)) menu.open = false;
  }
});

/** How long somebody types on before the first letters are searched for. */
const PAUSE_MS = 120;

/** @type {HTMLElement | null} */
const lists = document.querySelector('details.pop [data-refs]');
const form = lists?.closest('form');
/** @type {HTMLInputElement | null | undefined} */
const field = form?.querySelector('input[name=ref]');
if (lists !== null && form && field) filterWhileTyping(form, field, lists);

/**
 * @param {HTMLFormElement} form
 * @param {HTMLInputElement} field
 * @param {HTMLElement} lists
 */
function filterWhileTyping(form, field, lists) {
  const atFirst = [...lists.childNodes];
  let search = new AbortController();
  /** @type {number | undefined} */
  let timer;

  /** What cannot be read leaves the lists as they are: the form leads on all the same. */
  async function filter() {
    search.abort();
    search = new AbortController();
    const { signal } = search;
    const text = field.value.trim();
    if (text === '') {
      lists.replaceChildren(...atFirst);
      return;
    }
    const address = new URL(lists.dataset['refs'] ?? '', location.href);
    for (const [name, value] of new FormData(form)) {
      if (typeof value === 'string') address.searchParams.set(name === 'ref' ? 'q' : name, value);
    }
    const answer = await fetch(address, { signal });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const found = page.getElementById('picked');
    if (found !== null && !signal.aborted) lists.replaceChildren(...found.childNodes);
  }

  field.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      filter().catch(() => undefined);
    }, PAUSE_MS);
  });
}
