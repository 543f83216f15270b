/**
 * A file line by line, each with the commit that brought it, the push that brought the commit, and the way to what was
 * there before.
 *
 * Invariants: git ends a line at each line feed. A text in which other bytes look like one is not shown so.
 */
import type { Blame, BlameOrigin } from '../../../core/git/blame.ts';
import type { CommitRow } from '../../../core/git/commit-row.ts';
import { commitTime } from '../../../core/git/commit-time.ts';
import { type FileText, fileText } from '../../../core/git/file-text.ts';
import { decodeUtf8Lossy } from '../../../core/git/utf8.ts';
import type { ObjectId } from '../../../core/kernel/ids.ts';
import type { PushRow } from '../../../core/ports/activity.ts';
import { type BlamedFile, blameFile } from '../../../core/use-cases/reading/blame-file.ts';
import { namesIn } from '../../../core/use-cases/reading/list-tree.ts';
import { pushesOfCommits } from '../../../core/use-cases/reading/pushes-of-commits.ts';
import type { Contents } from '../../../core/use-cases/reading/read-contents.ts';
import type { RefPath } from '../../../core/use-cases/reading/ref-path.ts';
import { redirectTo, type SiteAnswer } from '../layout/answer.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';
import { bytesOf } from '../layout/weight.ts';
import { languageOf } from '../rendering/language.ts';
import type { LineWindow } from '../rendering/line-window.ts';
import { commitAddress, placeAddress } from './addresses.ts';
import { roomBeside, roomInSteps, windowPager } from './blob.ts';
import { contentsAt } from './contents-at.ts';
import { breadcrumbs, frameBytes, refPicker, showRepositoryPage } from './frame.ts';
import { PAGE_WHOLE_BYTES_MAX } from './limits.ts';
import { numberAsked, type PageRequest, showRefusal } from './page-request.ts';
import { pusherName } from './pushed-by.ts';
import { renderedLines, type ShownLines } from './rendered.ts';
import { counted, pathText, shownName, subjectOf } from './shown-text.ts';

export async function showBlame(asked: PageRequest, place: RefPath): Promise<SiteAnswer> {
  const { context, repository, visit } = asked;
  const { ref, names } = place;
  const contents = await contentsAt(asked, place);
  if ('refused' in contents) return showRefusal(asked, contents.refused);
  if (contents.type === 'dir') return redirectTo(placeAddress(repository, 'tree', ref, names));
  const { commit } = contents.place;
  const above = await headOf(asked, place);
  const without = (why: string): SiteAnswer => {
    const box = boxOf(asked, place, { commit, facts: null }, emptyBox(asked, place, why));
    return answer(asked, place, html`${above}${box}`);
  };
  if (commit === null) return without('This tag leads to a file, and to no commit.');
  const text = textOf(contents);
  if ('why' in text) return without(text.why);
  // The head of the box has the path up to four times.
  const headBytes = BOX_BYTES + 4 * placeAddress(repository, 'commits', commit, names).length;
  const room = roomFor(asked, roomBeside(frameBytes(asked, ref) + bytesOf(above) + headBytes));
  const lines = await linesAsked(asked, { id: contents.id, text: text.text, names, bytesMax: room / 2 });
  if (lines === null) return without('The server is too busy to show this file.');
  const path = { names, folder: false };
  const blamed = await blameFile(context, repository, { ref: commit, path, shown: lines, signal: visit.signal });
  if ('refused' in blamed) return showRefusal(asked, blamed.refused);
  const pushes = await pushesOfCommits(context, repository, [...blamed.commits.keys()], visit.signal);
  const { table, to } = tableOf(asked, lines, { ...blamed, pushes }, room);
  const content = html`${above}${boxOf(
    asked,
    place,
    { commit, facts: counted(lines.total, 'line') },
    html`${notFoundNote(blamed.blame, lines.total)}${table}${windowPager({ ...lines, to }, asked)}`,
  )}`;
  return answer(asked, place, content, lines.from);
}

function answer(asked: PageRequest, { ref, names }: RefPath, content: Html, from = 1): SiteAnswer {
  const lines = from === 1 ? '' : `, from line ${from}`;
  const title = `Blame of ${pathText(names)} at ${shownName(ref)}${lines}`;
  return showRepositoryPage(asked, { title, tab: 'Code', ref }, content);
}

async function headOf(asked: PageRequest, { ref, names }: RefPath): Promise<Html> {
  const row = html`<div class="row">${await refPicker(asked, 'blame', ref, names)}${breadcrumbs(asked, ref, names)}</div>`;
  return html`${row}
<h1 class="unseen">Blame of ${pathText(names)}</h1>`;
}

function boxOf(
  { repository }: PageRequest,
  { ref, names }: RefPath,
  { commit, facts }: { readonly commit: ObjectId | null; readonly facts: string | null },
  content: Content,
): Html {
  const link = (kind: 'blob' | 'blame' | 'commits', at: string, label: string): Html =>
    html`<a href="${placeAddress(repository, kind, at, names)}">${label}</a>`;
  return html`<section class="box" aria-label="Lines"><header class="row"><span class="soft">${facts}</span><span class="end row">${link(
    'blob',
    ref,
    'File',
  )}${link('commits', ref, 'History')}${commit !== null && link('blame', commit, 'Permalink')}</span></header>${content}</section>`;
}

function emptyBox({ repository }: PageRequest, { ref, names }: RefPath, why: string): Html {
  const file = placeAddress(repository, 'blob', ref, names);
  return html`<p class="empty">${why} <a href="${file}">See its page</a></p>`;
}

type Shown = Exclude<Contents, { readonly type: 'dir' }>;

/** Returns the text whose lines are those that git counts. */
function textOf(contents: Shown): FileText | { readonly why: string } {
  if (contents.type !== 'file') return { why: 'Only a file has lines.' };
  if (contents.content.kind !== 'held') return { why: 'This file is too large to show line by line.' };
  const { bytes } = contents.content;
  const shown = fileText(bytes);
  if (shown === null) return { why: 'This file is not text.' };
  if (shown.text === '') return { why: 'This file is empty.' };
  const isUtf16 = shown.encoding === 'UTF-16LE' || shown.encoding === 'UTF-16BE';
  if (isUtf16 && lineFeedsOf(bytes) !== shown.text.split('\n').length - 1) {
    return { why: `Git counts the lines of this file, which is ${shown.encoding}, in another way.` };
  }
  return shown;
}

function lineFeedsOf(bytes: Uint8Array): number {
  let count = 0;
  for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, at + 1)) count += 1;
  return count;
}

const LINE_FEED = 0x0a;
/** The head of the table, and the links between its parts. */
const BOX_BYTES = 1_200;

function roomFor({ visit }: PageRequest, left: number): number {
  if (visit.url.searchParams.has('all')) return PAGE_WHOLE_BYTES_MAX;
  return roomInSteps(left);
}

interface LinesJob {
  readonly id: ObjectId;
  readonly text: string;
  readonly names: RefPath['names'];
  readonly bytesMax: number;
}

/** Null if the server is too busy. */
async function linesAsked(asked: PageRequest, { names, ...source }: LinesJob): Promise<ShownLines | null> {
  const language = languageOf(decodeUtf8Lossy(names.at(-1) ?? new Uint8Array()));
  const job = { ...source, from: numberAsked(asked.visit, 'from', 1) };
  return (await renderedLines(asked, { ...job, language })) ?? (await renderedLines(asked, { ...job, language: null }));
}

interface Found extends Pick<BlamedFile, 'blame' | 'commits'> {
  readonly pushes: ReadonlyMap<ObjectId, PushRow>;
}

/** What is around the cells of a row. */
const ROW_BYTES = 120;

/** A row for each range, with fewer lines than were asked for if they take too many bytes; at least one line. */
function tableOf(
  asked: PageRequest,
  shown: ShownLines,
  found: Found,
  bytesMax: number,
): { readonly table: Html; readonly to: number } {
  const rows: Html[] = [];
  let left = bytesMax;
  let to = shown.from - 1;
  for (const { from, to: end, origin } of rangesWithin(found.blame, shown)) {
    const cells = cellsOf(asked, origin, found);
    left -= bytesOf(cells) + ROW_BYTES;
    const lines: Html[] = [];
    for (let number = from; number <= end; number += 1) {
      const line = html`<a id="L${number}" href="#L${number}">${number}</a>${shown.lines[number - shown.from] ?? ''}
`;
      left -= bytesOf(line);
      if (left < 0 && to >= shown.from) break;
      lines.push(line);
      to = number;
    }
    if (lines.length > 0) rows.push(html`<tr>${cells}<td><pre class="lines"><code>${lines}</code></pre></td></tr>`);
    if (left < 0) break;
  }
  const table = html`<div class="scroll" tabindex="0" role="group" aria-label="Lines with their commits"><table class="blame"><thead><tr><th>Commit</th><th>When</th><th>Pushed</th><th>Earlier</th><th>Lines</th></tr></thead><tbody>${rows}</tbody></table></div>`;
  return { table, to };
}

interface LineRange {
  readonly from: number;
  readonly to: number;
  /** Null if it was not found who brought these lines. */
  readonly origin: BlameOrigin | null;
}

/** Returns the parts of the ranges that are within the lines; together they are all of the lines. */
function rangesWithin({ ranges }: Blame, { from, to }: LineWindow): readonly LineRange[] {
  const found: LineRange[] = [];
  let next = from;
  for (const { start, count, origin } of ranges) {
    const end = start + count - 1;
    if (end < next) continue;
    if (start > to) break;
    found.push({ from: next, to: Math.min(end, to), origin });
    next = Math.min(end, to) + 1;
  }
  return next > to ? found : [...found, { from: next, to, origin: null }];
}

function cellsOf(asked: PageRequest, origin: BlameOrigin | null, { commits, pushes }: Found): Html {
  const commit = origin === null ? undefined : commits.get(origin.commit);
  if (origin === null || commit === undefined) return html`<td></td><td></td><td></td><td></td>`;
  const push = pushes.get(commit.id);
  return html`<td>${commitLink(asked, commit)}</td><td>${timeAgo(commitTime(commit.committedAt), asked.visit.now)}</td><td>${
    push !== undefined && html`<a href="/history/${push.eventId}"><bdi>${pusherName(push)}</bdi></a>`
  }</td><td>${beforeLink(asked, origin)}</td>`;
}

function commitLink({ repository }: PageRequest, { id, message }: CommitRow): Html {
  return html`<a class="subject" dir="auto" href="${commitAddress(repository, id)}">${subjectOf(message)}</a>`;
}

/** Leads to the file as it was before the commit. */
function beforeLink({ repository }: PageRequest, { previous }: BlameOrigin): Content {
  if (previous === null) return null;
  const names = namesIn(previous.path);
  const address = placeAddress(repository, 'blame', previous.commit, names);
  return html`<a href="${address}">Before<span class="unseen"> this commit</span></a>`;
}

function notFoundNote({ ranges, complete }: Blame, total: number): Content {
  if (complete) return null;
  const last = ranges.at(-1);
  const known = last === undefined ? 0 : last.start + last.count - 1;
  if (known >= total) return null;
  return html`<p class="note">Who brought the lines from ${known + 1} on was not found: the search for them reached a limit.</p>`;
}
