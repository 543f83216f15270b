/**
 * What all pages of the documentation share: the tabs above, code to copy, and words with code in them.
 *
 * Invariants: the pages work without scripts and without an account, and say the addresses of this service, so that
 * whatever is shown can be copied as it is.
 */
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import type { Visit } from '../layout/visit.ts';

export const DOCS = '/docs';

const TABS = [
  { path: DOCS, label: 'Getting started' },
  { path: `${DOCS}/git`, label: 'Git over HTTPS' },
  { path: `${DOCS}/tokens`, label: 'Access tokens' },
  { path: `${DOCS}/device-login`, label: 'Device login' },
  { path: `${DOCS}/ci`, label: 'CI jobs' },
  { path: `${DOCS}/webhooks`, label: 'Webhooks' },
  { path: `${DOCS}/undo`, label: 'Undo' },
  { path: `${DOCS}/time-travel`, label: 'Time travel' },
  { path: `${DOCS}/audit`, label: 'Audit' },
  { path: `${DOCS}/buckets`, label: 'Storage buckets' },
  { path: `${DOCS}/cli`, label: 'Command line' },
  { path: `${DOCS}/api`, label: 'API' },
] as const;

type DocsPath = (typeof TABS)[number]['path'];

export interface DocsPage {
  readonly title: string;
  /** The tab that the page belongs to. */
  readonly path: DocsPath;
  readonly head: Content;
}

export function showDocs(visit: Visit, { title, path, head }: DocsPage, content: Content): SiteAnswer {
  const tabs = TABS.map(
    (tab) => html`<a href="${tab.path}"${tab.path === path && html` aria-current="page"`}>${tab.label}</a>`,
  );
  const full = html`<h1>${head}</h1><nav class="tabs many" aria-label="Documentation">${tabs}</nav>`;
  return showPage(
    page(visit, { title: `${title} · Docs`, head: full }, html`<article class="docs stack">${content}</article>`),
  );
}

/** One command or more, ready to copy as a whole. */
export function commands(label: string, ...lines: readonly string[]): Html {
  return html`<div class="copy commands"><code tabindex="0" aria-label="${label}">${lines.join('\n')}</code><button type="button" aria-label="Copy: ${label}" hidden>Copy</button></div>`;
}

/** A program, named by its file. */
export function program(name: string, text: string): Html {
  return html`<figure class="box"><figcaption>${name}</figcaption><pre tabindex="0" aria-label="${name}">${text}</pre></figure>`;
}

/** A text of the OpenAPI document, in which backticks mark code. */
export function words(text: string): Html {
  const parts = text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part));
  return html`${parts}`;
}

/** How long the service keeps what was deleted or forced away. */
export interface Retention {
  readonly retentionMs: number;
}

/** The name that stands in examples: the reader's own, if somebody is signed in. */
export function exampleName({ person }: Visit): string {
  return person?.username ?? 'ada';
}
