/**
 * A file of a repository: its lines with numbers and colours, Markdown rendered, images, and what is too large to show.
 *
 * Invariants: an image is shown as an image only, which runs no scripts; its bytes come from `raw`, whose own policy
 * lets nothing run either.
 */
import { fileText } from '../../../core/git/file-text.ts';
import { decodeUtf8Lossy } from '../../../core/git/utf8.ts';
import type { Contents, FileContents, SymlinkContents } from '../../../core/use-cases/reading/read-contents.ts';
import type { RefPath } from '../../../core/use-cases/reading/ref-path.ts';
import { redirectTo, type SiteAnswer } from '../layout/answer.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { sizeText } from '../layout/sizes.ts';
import { bytesLeft, bytesOf } from '../layout/weight.ts';
import { markInvisible } from '../rendering/invisible.ts';
import { isMarkdown, languageOf } from '../rendering/language.ts';
import type { LineWindow } from '../rendering/line-window.ts';
import { type FormKind, placeAddress, shownAddress } from './addresses.ts';
import { contentsAt } from './contents-at.ts';
import { editableText } from './editable-text.ts';
import { breadcrumbs, frameBytes, refPicker, showRepositoryPage } from './frame.ts';
import { PAGE_TEXT_BYTES_MAX, PAGE_WHOLE_BYTES_MAX } from './limits.ts';
import { numberAsked, type PageRequest, showRefusal } from './page-request.ts';
import { imageType } from './raw.ts';
import { renderedLines, renderedMarkdown, type TextFile } from './rendered.ts';
import { counted, encodingFacts, pathText, shownName } from './shown-text.ts';
import { lastCommitAt } from './tree.ts';
import { branchShown } from './writing.ts';

export async function showBlob(asked: PageRequest, { ref, names }: RefPath): Promise<SiteAnswer> {
  const { repository } = asked;
  const contents = await contentsAt(asked, { ref, names });
  if ('refused' in contents) return showRefusal(asked, contents.refused);
  if (contents.type === 'dir') return redirectTo(placeAddress(repository, 'tree', ref, names));
  const above = html`<div class="row">${await refPicker(asked, 'blob', ref, names)}${breadcrumbs(asked, ref, names)}</div>`;
  // The head of the box has the path up to eight times.
  const { commit } = contents.place;
  const addressBytes = 8 * placeAddress(repository, 'commits', commit ?? ref, names).length;
  const last = await lastCommitAt(asked, commit, names);
  const room = roomBeside(frameBytes(asked, ref) + bytesOf(above, last) + addressBytes);
  const { box, facts, actions = [] } = await boxOf(asked, contents, { ref, names, room });
  const raw = placeAddress(repository, 'raw', ref, names);
  const hasBytes = contents.type !== 'submodule';
  const content = html`${above}
<h1 class="unseen">${shownName(names.at(-1) ?? '')}</h1>
<section class="box" aria-label="File">${last}<header class="row"><span class="soft">${facts}</span><span class="end row">${actions}${writingLinks(asked, contents, { ref, names })}${
    hasBytes && html`<a href="${raw}">Raw</a>`
  }${
    commit !== null &&
    html`${contents.type === 'file' && html`<a href="${placeAddress(repository, 'blame', ref, names)}">Blame</a>`}<a href="${placeAddress(repository, 'commits', ref, names)}">History</a><a href="${placeAddress(
      repository,
      'blob',
      commit,
      names,
    )}">Permalink</a>`
  }</span></header>${box}</section>`;
  return showRepositoryPage(asked, { title: `${pathText(names)} at ${shownName(ref)}`, tab: 'Code', ref }, content);
}

/** For who may write, which is who sees the page. */
function writingLinks(asked: PageRequest, contents: Shown, { ref, names }: RefPath): Content {
  if (names.length === 0 || branchShown(asked, ref) === null) return null;
  const link = (kind: FormKind, label: string): Html =>
    html`<a href="${placeAddress(asked.repository, kind, ref, names)}">${label}</a>`;
  return html`${contents.type === 'file' && editOrWhy(contents, link)}${link('move', 'Move')}${link('remove', 'Delete')}`;
}

function editOrWhy({ content }: FileContents, link: (kind: FormKind, label: string) => Html): Html {
  const editable = editableText(content);
  return 'why' in editable ? html`<span class="soft">Not editable: ${editable.why}</span>` : link('edit', 'Edit');
}

/** What a text has on a page of very long names. */
export const ROOM_BYTES_MIN = 8 * 1_024;

export function roomBeside(bytes: number): number {
  return bytesLeft(bytes, ROOM_BYTES_MIN);
}

/** The texts of a file are kept rendered by their size, so they have few sizes. */
const ROOM_STEP_BYTES = 4 * 1_024;

export function roomInSteps(left: number): number {
  return Math.min(PAGE_TEXT_BYTES_MAX, Math.floor(left / ROOM_STEP_BYTES) * ROOM_STEP_BYTES);
}

interface Place extends RefPath {
  /** How many bytes of the page are left. */
  readonly room: number;
}

interface Box {
  readonly box: Content;
  readonly facts: string;
  readonly actions?: readonly Html[];
}

type Shown = Exclude<Contents, { readonly type: 'dir' }>;

async function boxOf(asked: PageRequest, contents: Shown, place: Place): Promise<Box> {
  switch (contents.type) {
    case 'submodule':
      return {
        facts: 'submodule',
        box: html`<p class="empty">A commit of another repository: <code class="id">${contents.id}</code></p>`,
      };
    case 'symlink':
      return linkBox(contents);
    case 'file':
      return fileBox(asked, contents, place);
  }
}

/** The same file, shown in another form. */
function viewed({ repository }: PageRequest, view: 'source' | 'whole' | null): string {
  const query = view === null ? {} : { view };
  // A reference that is empty would keep the query of the page.
  return shownAddress(repository, '', query) || '?';
}

function linkBox({ target }: SymlinkContents): Box {
  const text = shownName(target);
  return { facts: 'link', box: html`<p class="empty">A link to <code><bdi>${text}</bdi></code></p>` };
}

async function fileBox(asked: PageRequest, file: FileContents, { ref, names, room }: Place): Promise<Box> {
  const size = sizeText(file.sizeBytes);
  const name = decodeUtf8Lossy(names.at(-1) ?? new Uint8Array());
  const raw = placeAddress(asked.repository, 'raw', ref, names);
  if (imageType(name) !== null && asked.visit.url.searchParams.get('view') !== 'source') {
    return {
      facts: size,
      box: html`<p class="image-box"><img src="${raw}" alt="${shownName(name)}"></p>`,
      actions: file.isText ? [html`<a href="${viewed(asked, 'source')}">Source</a>`] : [],
    };
  }
  if (file.content.kind !== 'held') {
    return {
      facts: size,
      box: html`<p class="empty">This file is too large to show. <a href="${raw}">Download it</a></p>`,
    };
  }
  const shown = fileText(file.content.bytes);
  if (shown === null) {
    return { facts: size, box: html`<p class="empty">This file is not text. <a href="${raw}">Download it</a></p>` };
  }
  const { text } = shown;
  const facts = [size, ...encodingFacts(shown)].join(' · ');
  if (text === '') return { facts: size, box: html`<p class="empty">This file is empty.</p>` };
  return textBox(asked, { id: file.id, text, ref, names }, { name, size: facts, room });
}

async function textBox(
  asked: PageRequest,
  file: TextFile,
  about: { readonly name: string; readonly size: string; readonly room: number },
): Promise<Box> {
  const { name, size } = about;
  const room = roomInSteps(about.room);
  const view = asked.visit.url.searchParams.get('view');
  if (isMarkdown(name) && view !== 'source') {
    const markup = await renderedMarkdown(asked, file);
    const isWhole = markup !== null && (view === 'whole' || bytesOf(markup) <= room);
    if (isWhole) {
      const actions = [html`<a href="${viewed(asked, 'source')}">Source</a>`];
      return {
        facts: size,
        box: html`<h2 class="unseen">Content</h2><article class="prose">${markup}</article>`,
        actions,
      };
    }
    if (markup !== null)
      return codeBox(asked, file, { size, room }, [html`<a href="${viewed(asked, 'whole')}">Rendered</a>`]);
  }
  return codeBox(
    asked,
    file,
    { size, room },
    isMarkdown(name) ? [html`<a href="${viewed(asked, null)}">Rendered</a>`] : [],
  );
}

async function codeBox(
  asked: PageRequest,
  file: TextFile,
  { size, room }: { readonly size: string; readonly room: number },
  actions: readonly Html[],
): Promise<Box> {
  const { visit } = asked;
  const { id, text } = file;
  const language = languageOf(decodeUtf8Lossy(file.names.at(-1) ?? new Uint8Array()));
  const bytesMax = visit.url.searchParams.has('all') ? PAGE_WHOLE_BYTES_MAX : room;
  const job = { id, text, language, from: numberAsked(visit, 'from', 1), bytesMax };
  const shown = (await renderedLines(asked, job)) ?? (await renderedLines(asked, { ...job, language: null }));
  if (shown === null) return { facts: size, box: startOfFile(text), actions };
  const rows = shown.lines.map(
    (line, index) => html`${lineNumber(shown.from + index)}${line}
`,
  );
  const pre = html`<pre class="lines" tabindex="0"><code>${rows}</code></pre>`;
  const facts = `${counted(shown.total, 'line')} · ${size}`;
  return { facts, box: html`${pre}${windowPager(shown, asked)}`, actions };
}

/** For a text that could not be rendered in time: as much of it as costs nothing. */
export const START_LENGTH_MAX = 8 * 1_024;

export function startOfFile(text: string): Html {
  const start = markInvisible(text.slice(0, START_LENGTH_MAX));
  return html`<p class="note">The server is too busy to show this file whole. Its start, and all of it under Raw:</p><pre class="plain" tabindex="0">${start}</pre>`;
}

function lineNumber(number: number): Html {
  return html`<a id="L${number}" href="#L${number}">${number}</a>`;
}

/** The way to the other lines of a text that a page does not hold whole. */
export function windowPager({ from, to, total }: LineWindow, { visit, repository }: PageRequest): Content {
  if (from === 1 && to === total) return null;
  const view = visit.url.searchParams.get('view');
  const isLong = visit.url.searchParams.has('all');
  const query = (wanted: Readonly<Record<string, string>>): string => {
    const kept = { ...(view === null ? {} : { view }), ...(isLong ? { all: 'yes' } : {}) };
    return shownAddress(repository, '', { ...kept, ...wanted });
  };
  return html`<nav class="row pager" aria-label="Lines">${
    from > 1 && html`<a class="button" href="${query({ from: '1' })}">First lines</a>`
  }<span class="soft">Lines ${from}–${to} of ${total}</span>${
    to < total && html`<a class="button" rel="next" href="${query({ from: String(to + 1) })}">Next lines</a>`
  }${!isLong && html`<a class="button quiet end" href="${query({ all: 'yes' })}">Longer pages</a>`}</nav>`;
}
