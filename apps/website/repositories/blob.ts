/**
 * A file of a repository: its lines with numbers and colours, Markdown rendered, and images.
 *
 * Invariants: an image is shown as an image only, which runs no scripts; its bytes come from `raw`, whose own policy
 * lets nothing run either.
 */
import { fileText } from '../../../core/git/file-text.ts';
import { decodeUtf8Lossy } from '../../../core/git/utf8.ts';
import {
  type Contents,
  type FileContents,
  SYMLINK_TARGET_BYTES_MAX,
  type SymlinkContents,
} from '../../../core/use-cases/reading/read-contents.ts';
import { readLines } from '../../../core/use-cases/reading/read-lines.ts';
import type { RefPath } from '../../../core/use-cases/reading/ref-path.ts';
import { redirectTo, type SiteAnswer } from '../layout/answer.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { sizeText } from '../layout/sizes.ts';
import { separatorOf } from '../rendering/csv-rows.ts';
import { isMarkdown, languageOf } from '../rendering/language.ts';
import { countLines } from '../rendering/line-markup.ts';
import { type FormKind, placeAddress, shownAddress } from './addresses.ts';
import { lineAsked, textOfWindow, WINDOW_READ_BYTES_MAX, wholeView, windowOf, windowView } from './code-view.ts';
import { contentsAt } from './contents-at.ts';
import { editableText } from './editable-text.ts';
import { breadcrumbs, refPicker, showRepositoryPage } from './frame.ts';
import { inLargeTurn } from './large-reads.ts';
import { type PageRequest, showRefusal } from './page-request.ts';
import { mediaKind } from './raw.ts';
import { inPieces, renderedMarkdown, type TextFile } from './rendered.ts';
import { counted, encodingFacts, pathText, shownName } from './shown-text.ts';
import { tableView } from './table-view.ts';
import { lastCommitAt } from './tree.ts';
import { branchShown } from './writing.ts';

export async function showBlob(asked: PageRequest, { ref, names }: RefPath): Promise<SiteAnswer> {
  const { repository } = asked;
  const contents = await contentsAt(asked, { ref, names });
  if ('refused' in contents) return showRefusal(asked, contents.refused);
  if (contents.type === 'dir') return redirectTo(placeAddress(repository, 'tree', ref, names));
  const above = html`<div class="row">${await refPicker(asked, 'blob', ref, names)}${breadcrumbs(asked, ref, names)}</div>`;
  const { commit } = contents.place;
  // The search for the commit may take as long as the colours.
  const [last, { box, facts, actions = [] }] = await Promise.all([
    lastCommitAt(asked, commit, names),
    boxOf(asked, contents, { ref, names }),
  ]);
  const raw = placeAddress(repository, 'raw', ref, names);
  const hasBytes = contents.type !== 'submodule';
  const content = html`${above}
<h1 class="unseen">${shownName(names.at(-1) ?? '')}</h1>
<section class="box" aria-label="File">${last}<header class="row"><span class="soft">${facts}</span><span class="end row">${actions}${writingLinks(asked, contents, { ref, names })}${
    hasBytes && html`<a href="${raw}">Raw</a>`
  }${
    commit !== null &&
    html`${contents.type === 'file' && html`<a href="${placeAddress(repository, 'blame', ref, names)}">Blame</a>`}<a href="${placeAddress(repository, 'commits', ref, names)}">History</a><a data-permalink href="${placeAddress(
      repository,
      'blob',
      commit,
      names,
    )}">Permalink</a>`
  }</span></header>${box}</section>`;
  const from = lineAsked(asked);
  const part = [asked.visit.url.searchParams.get('view') === 'source' && 'source', from > 1 && `from ${from}`];
  const title = [`${pathText(names)} at ${shownName(ref)}`, ...part.filter((text) => text !== false)].join(', ');
  return showRepositoryPage(asked, { title, tab: 'Code', ref, scripts: ['lines.js'] }, content);
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

interface Box {
  readonly box: Content;
  readonly facts: string;
  readonly actions?: readonly Html[];
}

type Shown = Exclude<Contents, { readonly type: 'dir' }>;

async function boxOf(asked: PageRequest, contents: Shown, place: RefPath): Promise<Box> {
  switch (contents.type) {
    case 'submodule':
      return {
        facts: 'submodule',
        box: html`<p class="empty">A commit of another repository: <code class="id">${contents.id}</code></p>`,
      };
    case 'symlink':
      return linkBox(asked, contents, place);
    case 'file':
      return fileBox(asked, contents, place);
  }
}

/** The same file, shown in another form. */
function viewed({ repository }: PageRequest, view: 'source' | null): string {
  const query = view === null ? {} : { view };
  // A reference that is empty would keep the query of the page.
  return shownAddress(repository, '', query) || '?';
}

/** A link leads to what it names, if that is in the repository. */
async function linkBox(asked: PageRequest, { target }: SymlinkContents, { ref, names }: RefPath): Promise<Box> {
  const text = html`<code><bdi>${shownName(target)}</bdi></code>`;
  const inside = targetOfLink(names, target);
  const found = inside === null ? null : await contentsAt(asked, { ref, names: inside });
  const isThere = found !== null && (!('refused' in found) || found.refused.code === 'file-too-large');
  const address = inside !== null && isThere && placeAddress(asked.repository, 'blob', ref, inside);
  const said =
    address !== false ? html`<a href="${address}">${text}</a>` : html`${text}, which is not in this repository`;
  return { facts: 'link', box: html`<p class="empty">A link to ${said}</p>` };
}

const SLASH = 0x2f;

/** Returns the names from the root down that a link in a folder leads to; null for one that leaves the repository. */
function targetOfLink(names: RefPath['names'], target: Uint8Array): RefPath['names'] | null {
  // A longer target was cut, and no system follows it.
  if (target[0] === SLASH || target.length >= SYMLINK_TARGET_BYTES_MAX) return null;
  const reached = names.slice(0, -1);
  for (let at = 0; at <= target.length; ) {
    const slash = target.indexOf(SLASH, at);
    const end = slash === -1 ? target.length : slash;
    const name = target.subarray(at, end);
    at = end + 1;
    const text = name.length > 2 ? '' : decodeUtf8Lossy(name);
    if (name.length === 0 || text === '.') continue;
    if (text !== '..') reached.push(name);
    else if (reached.pop() === undefined) return null;
  }
  return reached;
}

async function fileBox(asked: PageRequest, file: FileContents, { ref, names }: RefPath): Promise<Box> {
  const size = sizeText(file.sizeBytes);
  const name = decodeUtf8Lossy(names.at(-1) ?? new Uint8Array());
  const raw = placeAddress(asked.repository, 'raw', ref, names);
  const media = mediaKind(name);
  if (media !== null && media !== 'image') {
    return { facts: size, box: html`<p class="empty">${MEDIA[media]} <a href="${raw}">Play it</a></p>` };
  }
  if (media === 'image' && asked.visit.url.searchParams.get('view') !== 'source') {
    return {
      facts: size,
      box: html`<p class="image-box"><img src="${raw}" alt="${shownName(name)}"></p>`,
      actions: file.isText ? [html`<a href="${viewed(asked, 'source')}">Source</a>`] : [],
    };
  }
  if (file.content.kind !== 'held') return largeBox(asked, { ref, names }, size);
  const shown = fileText(file.content.bytes);
  if (shown === null) return notTextBox(size, raw);
  const { text } = shown;
  const facts = [size, ...encodingFacts(shown)].join(' · ');
  if (text === '') return { facts: size, box: html`<p class="empty">This file is empty.</p>` };
  return textBox(asked, { id: file.id, text, ref, names }, { name, size: facts });
}

const MEDIA = { audio: 'A sound.', video: 'A film.' };

interface About {
  readonly name: string;
  readonly size: string;
}

async function textBox(asked: PageRequest, file: TextFile, { name, size }: About): Promise<Box> {
  const separator = separatorOf(name);
  if (!isMarkdown(name) && separator === null) return codeBox(asked, file, size, []);
  const isSource = asked.visit.url.searchParams.get('view') === 'source';
  const other = isSource
    ? html`<a href="${viewed(asked, null)}">${separator === null ? 'Rendered' : 'Table'}</a>`
    : html`<a href="${viewed(asked, 'source')}">Source</a>`;
  if (isSource) return codeBox(asked, file, size, [other]);
  if (separator !== null) {
    const table = await tableView(asked, file.text, separator);
    return table === null ? codeBox(asked, file, size, []) : { facts: size, box: table, actions: [other] };
  }
  const markup = await renderedMarkdown(asked, file);
  if (markup === null) return codeBox(asked, file, size, []);
  return {
    facts: size,
    box: html`<h2 class="unseen">Content</h2><article class="prose">${inPieces(markup)}</article>`,
    actions: [other],
  };
}

async function codeBox(asked: PageRequest, file: TextFile, size: string, actions: readonly Html[]): Promise<Box> {
  const { context, visit } = asked;
  const { id, text } = file;
  const language = languageOf(decodeUtf8Lossy(file.names.at(-1) ?? new Uint8Array()));
  const runs = language === null ? null : await context.renderer.colours(visit.person.account, { id, text, language });
  const box = wholeView(text, runs) ?? windowView(asked, windowOf(text, lineAsked(asked)));
  return { facts: `${counted(countLines(text), 'line')} · ${size}`, box, actions };
}

/** A file that is not read whole comes in windows of its lines. */
async function largeBox(asked: PageRequest, { ref, names }: RefPath, size: string): Promise<Box> {
  const { context, visit, repository } = asked;
  const raw = placeAddress(repository, 'raw', ref, names);
  const wanted = { ref, path: { names, folder: false }, from: lineAsked(asked) };
  const bounded = { bytesMax: WINDOW_READ_BYTES_MAX, signal: visit.signal };
  const read = await inLargeTurn(asked, () => readLines(context, repository, { ...wanted, ...bounded }));
  const shown = 'refused' in read || read.total === null ? null : textOfWindow(read.bytes);
  if ('refused' in read || read.total === null || shown === null) return notTextBox(size, raw);
  const { from: first, total } = read;
  const window = { text: shown.text, first, total, isOpen: read.bytes.length === WINDOW_READ_BYTES_MAX };
  const facts = [counted(total, 'line'), size, ...encodingFacts(shown)].join(' · ');
  return { facts, box: windowView(asked, window) };
}

function notTextBox(size: string, raw: string): Box {
  return { facts: size, box: html`<p class="empty">This file is not text. <a href="${raw}">Download it</a></p>` };
}
