/**
 * What the picker of a moment has with scripts on: the pushes to choose from, in the place of the button that leads to
 * their page.
 */

/** @type {HTMLDetailsElement | null} */
const picker = document.querySelector('details.moment');
/** @type {HTMLButtonElement | null | undefined} */
const choose = picker?.querySelector('button[formaction]');

/** Returns the list of the page that the button leads to, as far as one page has it. */
async function load(/** @type {HTMLButtonElement} */ button) {
  const address = `${button.formAction}?${new URLSearchParams({ [button.name]: button.value }).toString()}`;
  const answer = await fetch(address);
  if (!answer.ok) return null;
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const list = page.querySelector('form.moments');
  return list === null ? null : document.adoptNode(list);
}

/** Without the list, the button leads to its page all the same. */
async function fill(/** @type {HTMLElement} */ menu, /** @type {HTMLButtonElement} */ button) {
  const list = await load(button).catch(() => null);
  if (list === null) return;
  menu.append(list);
  button.textContent = 'All pushes';
}

/** @type {HTMLElement | null | undefined} */
const menu = picker?.querySelector('.menu');
let isAsked = false;
picker?.addEventListener('toggle', () => {
  if (!picker.open || isAsked || menu === null || menu === undefined || choose === null || choose === undefined) return;
  isAsked = true;
  // What cannot be shown leaves the button, which leads to its page.
  fill(menu, choose).catch(() => undefined);
});
