/**
 * What the form with the text of a file has when scripts are on: line numbers, and previews in tabs. It saves without
 * them.
 */

/**
 * Numbers the lines that are in view: a text may have a million.
 *
 * @param {HTMLTextAreaElement} area
 * @param {HTMLElement} gutter
 */
function numberLines(area, gutter) {
  const numbers = document.createElement('div');
  gutter.append(numbers);
  let count = 1;
  const draw = () => {
    const { lineHeight, paddingTop } = getComputedStyle(area);
    const height = Number.parseFloat(lineHeight);
    const above = area.scrollTop - Number.parseFloat(paddingTop);
    const first = Math.max(0, Math.floor(above / height));
    const end = Math.min(count, Math.ceil((above + area.clientHeight) / height));
    const shown = Array.from({ length: Math.max(0, end - first) }, (_, index) => first + index + 1);
    numbers.textContent = shown.join('\n');
    numbers.style.translate = `0 ${first * height - area.scrollTop}px`;
  };
  const recount = () => {
    const { value } = area;
    count = 1;
    for (let at = value.indexOf('\n'); at !== -1; at = value.indexOf('\n', at + 1)) count += 1;
    gutter.style.minWidth = `calc(${Math.max(4, String(count).length)}ch + 17px)`;
    draw();
  };
  area.addEventListener('scroll', draw, { passive: true });
  area.addEventListener('input', recount);
  // Browsers may fill the form with what was in it before.
  addEventListener('pageshow', recount);
  new ResizeObserver(draw).observe(area);
  recount();
}

/**
 * @param {HTMLFormElement} form
 * @param {string} address
 * @param {string} shows
 * @param {AbortSignal} signal
 */
async function loadPreview(form, address, shows, signal) {
  const body = new FormData(form);
  body.set('show', shows);
  const answer = await fetch(address, { method: 'POST', body, signal });
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  // The heading of any other page says why there is no preview.
  return page.querySelector('.preview') ?? page.querySelector('h1')?.textContent ?? 'There is no preview.';
}

/**
 * The tabs of the ARIA Authoring Practices whose panels are loaded: arrows move between them, Enter and Space choose.
 *
 * @param {HTMLFormElement} form
 * @param {string} address
 * @param {{ readonly list: HTMLElement, readonly written: HTMLElement, readonly previewed: HTMLElement }} parts
 */
function addTabs(form, address, { list, written, previewed }) {
  /** @type {HTMLButtonElement[]} */
  const tabs = [...list.querySelectorAll('button')];
  let loading = new AbortController();
  const choose = (/** @type {HTMLButtonElement} */ chosen) => {
    for (const tab of tabs) {
      tab.setAttribute('aria-selected', String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
    }
    loading.abort();
    const { shows } = chosen.dataset;
    // What is below the tabs stays where it is.
    if (!written.hidden) previewed.style.minHeight = `${written.offsetHeight}px`;
    written.hidden = shows !== undefined;
    previewed.hidden = shows === undefined;
    if (shows === undefined) return;
    previewed.setAttribute('aria-labelledby', chosen.id);
    previewed.setAttribute('aria-busy', 'true');
    previewed.replaceChildren('Loading…');
    loading = new AbortController();
    const { signal } = loading;
    const show = (/** @type {Element | string} */ content) => {
      if (signal.aborted) return;
      previewed.replaceChildren(content);
      previewed.setAttribute('aria-busy', 'false');
    };
    loadPreview(form, address, shows, signal).then(show, () => show('The preview cannot be loaded now.'));
  };
  for (const tab of tabs) tab.addEventListener('click', () => choose(tab));
  list.addEventListener('keydown', (event) => {
    const shown = tabs.filter(({ hidden }) => !hidden);
    const at = shown.findIndex((tab) => tab === document.activeElement);
    const last = shown.length - 1;
    /** @type {Readonly<Record<string, number>>} */
    const keys = { ArrowLeft: at > 0 ? at - 1 : last, ArrowRight: at < last ? at + 1 : 0, Home: 0, End: last };
    const to = keys[event.key];
    if (to === undefined) return;
    event.preventDefault();
    shown[to]?.focus();
  });
  for (const panel of [written, previewed]) panel.setAttribute('role', 'tabpanel');
  written.setAttribute('aria-labelledby', 'tab-write');
  previewed.tabIndex = 0;
  list.hidden = false;

  /** @type {HTMLInputElement | null} */
  const path = form.querySelector('input[name="path"]:not([type="hidden"])');
  const [write] = tabs;
  const markdown = tabs.find(({ dataset: { shows } }) => shows === 'markdown');
  if (path === null || write === undefined || markdown === undefined) return;
  const follow = () => {
    markdown.hidden = !/\.(md|markdown)$/i.test(path.value);
    if (markdown.hidden && markdown.ariaSelected === 'true') choose(write);
  };
  path.addEventListener('input', follow);
  follow();
}

/** @type {NodeListOf<HTMLElement>} */
const editors = document.querySelectorAll('.editor');
for (const editor of editors) {
  const area = editor.querySelector('textarea');
  /** @type {HTMLElement | null} */
  const gutter = editor.querySelector('.numbers');
  if (area !== null && gutter !== null) numberLines(area, gutter);
  const form = editor.closest('form');
  /** @type {HTMLElement | null} */
  const list = editor.querySelector('[role="tablist"]');
  /** @type {HTMLElement | null} */
  const written = editor.querySelector('#written');
  /** @type {HTMLElement | null} */
  const previewed = editor.querySelector('#previewed');
  const { preview } = editor.dataset;
  if (form === null || list === null || written === null || previewed === null || preview === undefined) continue;
  addTabs(form, preview, { list, written, previewed });
}
