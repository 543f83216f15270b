/**
 * Goes to a file with the key `t`, and finds files while somebody types. Without it the page of files is a form whose
 * results are links.
 */

const tabs = document.querySelector('nav[data-files]');
const form = document.querySelector('form.go-to-file');
const field = form?.querySelector('input[type=search]');

/** @param {EventTarget | null} target */
function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches('input, textarea, select'));
}

document.addEventListener('keydown', (event) => {
  const isAlone = !event.ctrlKey && !event.metaKey && !event.altKey && !event.isComposing;
  if (event.key !== 't' || !isAlone || isTyping(event.target)) return;
  event.preventDefault();
  if (field instanceof HTMLElement) field.focus();
  else if (tabs instanceof HTMLElement) location.assign(tabs.dataset['files'] ?? '');
});

/** What changes with what is typed. The elements stay, so that a screen reader says the number of files. */
const CHANGING = ['count', 'found'];
/** How long somebody types on before the first letters are searched for. */
const PAUSE_MS = 120;

if (form instanceof HTMLFormElement && field instanceof HTMLInputElement) findWhileTyping(form, field);

/**
 * @param {HTMLFormElement} form
 * @param {HTMLInputElement} field
 */
function findWhileTyping(form, field) {
  // Enter opens the first file, and nothing else is to be sent.
  for (const button of form.querySelectorAll('button')) button.hidden = true;
  let shown = field.value;
  let search = new AbortController();
  /** @type {number | undefined} */
  let timer;

  const links = () => [...document.querySelectorAll('#found ol a')].filter((link) => link instanceof HTMLAnchorElement);

  /** Shows what the page of the form has. Whatever is not that page is shown instead. */
  async function find() {
    clearTimeout(timer);
    search.abort();
    search = new AbortController();
    const { signal } = search;
    const address = new URL(form.action);
    const text = field.value;
    for (const [name, value] of new FormData(form)) {
      if (typeof value === 'string') address.searchParams.set(name, value);
    }
    try {
      const answer = await fetch(address, { signal });
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const changed = CHANGING.map((id) => [document.getElementById(id), page.getElementById(id)]);
      if (!answer.ok || changed.flat().includes(null)) {
        location.assign(address);
        return;
      }
      for (const [shownNow, found] of changed) shownNow?.replaceChildren(...(found?.childNodes ?? []));
      document.title = page.title;
      history.replaceState(null, '', address);
      shown = text;
    } catch (error) {
      // The next search has begun.
      if (!signal.aborted) throw error;
    }
  }

  async function openFirst() {
    if (shown !== field.value) await find();
    const [first] = links();
    if (shown === field.value && first !== undefined) location.assign(first.href);
  }

  /** Leaves it to the browser, which says what is wrong. */
  const send = () => form.submit();
  field.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      find().catch(send);
    }, PAUSE_MS);
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    openFirst().catch(send);
  });
  document.addEventListener('keydown', (event) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    const all = links();
    const at = all.findIndex((link) => link === document.activeElement);
    if (step === 0 || (at === -1 && document.activeElement !== field)) return;
    event.preventDefault();
    (all[at + step] ?? field).focus();
  });
}
