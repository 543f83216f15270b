/**
 * A file line by line, each with the commit that brought it, the push that brought the commit, and the way to what was
 * there before.
 *
 * Invariants: git ends a line at each line feed. A text in which other bytes look like one is not shown so.
 */
import type { Blame, BlameOrigin } from '../../../core/git/blame.ts';
import { commitTime } from '../../../core/git/commit-time.ts';
import { type FileText, fileText } from '../../../core/git/file-text.ts';
import { decodeUtf8Lossy } from '../../../core/git/utf8.ts';
import type { ObjectId } from '../../../core/kernel/ids.ts';
import type { PushRow } from '../../../core/ports/activity.ts';
import {
  type BlamedFile,
  blameFile,
  type LineCommit,
  type LineSpan,
} from '../../../core/use-cases/reading/blame-file.ts';
import { namesIn } from '../../../core/use-cases/reading/list-tree.ts';
import { pushesOfCommits } from '../../../core/use-cases/reading/pushes-of-commits.ts';
import type { Contents } from '../../../core/use-cases/reading/read-contents.ts';
import type { RefPath } from '../../../core/use-cases/reading/ref-path.ts';
import { redirectTo, type SiteAnswer } from '../layout/answer.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';
import { turnsOf } from '../layout/turns.ts';
import { languageOf } from '../rendering/language.ts';
import { countLines, linesOf, weighLine, weighRuns, weighText, wholeCharacters } from '../rendering/line-markup.ts';
import type { Runs } from '../rendering/runs.ts';
import { addWeights, fitsInto, LONG_PAGE_ROOM, type Weight } from '../rendering/weight.ts';
import { commitAddress, placeAddress } from './addresses.ts';
import { lineAsked, numbered, WINDOW_LINE_LENGTH_MAX, windowPager } from './code-view.ts';
import { contentsAt } from './contents-at.ts';
import { breadcrumbs, refPicker, showRepositoryPage } from './frame.ts';
import { type PageRequest, showRefusal } from './page-request.ts';
import { pusherName } from './pushed-by.ts';
import { laterLineRows, type NumberedLine, type RowOfLines } from './rendered.ts';
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
  const from = lineAsked(asked);
  const path = { names, folder: false };
  const shown = (blame: Blame): Promise<Plan> => planOf(text.text, blame, from, turnsOf(visit.signal));
  const blamed = await blameFile(context, repository, { ref: commit, path, shown, signal: visit.signal });
  if ('refused' in blamed) return showRefusal(asked, blamed.refused);
  const { shown: plan } = blamed;
  const pushes = await pushesOfCommits(context, repository, [...blamed.commits.keys()], visit.signal);
  const runs = await coloursOf(asked, { id: contents.id, text: text.text, names, plan });
  const isWhole = plan.from === 1 && plan.to === plan.total;
  const content = html`${above}${boxOf(
    asked,
    place,
    { commit, facts: counted(plan.total, 'line') },
    html`${notFoundNote(blamed.blame, plan.total)}${tableOf(asked, { text: text.text, runs, plan }, { ...blamed, pushes })}${
      !isWhole && windowPager(asked, { first: plan.from, last: plan.to, total: plan.total })
    }`,
  )}`;
  return answer(asked, place, content, plan.from);
}

function answer(asked: PageRequest, { ref, names }: RefPath, content: Html, from = 1): SiteAnswer {
  const lines = from === 1 ? '' : `, from line ${from}`;
  const title = `Blame of ${pathText(names)} at ${shownName(ref)}${lines}`;
  return showRepositoryPage(asked, { title, tab: 'Code', ref, scripts: ['lines.js'] }, content);
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
  )}${link('commits', ref, 'History')}${
    commit !== null && html`<a data-permalink href="${placeAddress(repository, 'blame', commit, names)}">Permalink</a>`
  }</span></header>${content}</section>`;
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

/** One range of lines, as far as the page shows it. */
interface PlannedRow {
  readonly origin: BlameOrigin | null;
  readonly lines: NumberedLine[];
}

interface Plan extends LineSpan {
  readonly rows: readonly PlannedRow[];
  /** The lines of the whole text. */
  readonly total: number;
  readonly weight: Weight;
}

/**
 * What the cells of a row take at most, without the path of the file before: a subject of 120 characters and a name of
 * a token of 200, each of five bytes, and three addresses.
 */
const ROW: Weight = { bytes: 2_600, elements: 16 };
const PATH_BYTES = 3;

/** Chooses the lines that a page holds with their commits, from one on; at least one line. */
async function planOf(text: string, blame: Blame, asked: number, turn: ReturnType<typeof turnsOf>): Promise<Plan> {
  const total = countLines(text);
  const from = Math.min(Math.max(1, asked), Math.max(1, total));
  const ranges = rangesWithin(blame, { from, to: total });
  const rows: PlannedRow[] = [];
  let weight: Weight = { bytes: 0, elements: 0 };
  let to = from - 1;
  let at = 0;
  for (const line of numbered(linesOf(text), 1)) {
    await turn();
    if (line.number < from) continue;
    const range = ranges[at];
    if (range === undefined) break;
    const begins = line.number === range.from;
    const end = wholeCharacters(text, Math.min(line.end, line.start + WINDOW_LINE_LENGTH_MAX));
    const ofLine = weighLine(weighText(text, line.start, end), line.number);
    const more = addWeights(weight, begins ? addWeights(ofLine, weighRow(range.origin)) : ofLine);
    if (!fitsInto(more, LONG_PAGE_ROOM) && to >= from) break;
    weight = more;
    to = line.number;
    if (begins) rows.push({ origin: range.origin, lines: [] });
    rows.at(-1)?.lines.push({ ...line, end, isCut: end < line.end });
    if (line.number === range.to) at += 1;
  }
  return { from, to: Math.max(to, from), total, rows, weight };
}

function weighRow(origin: BlameOrigin | null): Weight {
  return { bytes: ROW.bytes + PATH_BYTES * (origin?.previous?.path.length ?? 0), elements: ROW.elements };
}

interface ColouredFile {
  readonly id: ObjectId;
  readonly text: string;
  readonly names: RefPath['names'];
  readonly plan: Plan;
}

/** A part of a text has no colours, nor has a text that would be too heavy with them. */
async function coloursOf(
  { context, visit }: PageRequest,
  { id, text, names, plan }: ColouredFile,
): Promise<Runs | null> {
  const language = languageOf(decodeUtf8Lossy(names.at(-1) ?? new Uint8Array()));
  if (language === null || plan.from > 1 || plan.to < plan.total) return null;
  const runs = await context.renderer.colours(visit.person.account, { id, text, language });
  return runs !== null && fitsInto(addWeights(plan.weight, weighRuns(text, runs)), LONG_PAGE_ROOM) ? runs : null;
}

interface Found extends Pick<BlamedFile, 'blame' | 'commits'> {
  readonly pushes: ReadonlyMap<ObjectId, PushRow>;
}

interface ShownText {
  readonly text: string;
  readonly runs: Runs | null;
  readonly plan: Plan;
}

/** What a line takes in memory beside its text, and a row beside its lines, about. */
const LINE_HELD_BYTES = 80;
const ROW_HELD_BYTES = 2_048;

/** A row for each range. */
function tableOf(asked: PageRequest, { text, runs, plan }: ShownText, found: Found): Html {
  const after = html`</code></pre></td></tr>`;
  function* rows(): Generator<RowOfLines> {
    for (const { origin, lines } of plan.rows) {
      const before = html`<tr>${cellsOf(asked, origin, found)}<td><pre class="lines"><code>`;
      yield { before, lines, after };
    }
  }
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Lines with their commits"><table class="blame"><thead><tr><th>Commit</th><th>When</th><th>Pushed</th><th>Earlier</th><th>Lines</th></tr></thead><tbody>${laterLineRows(
    { text, runs },
    (plan.to - plan.from + 1) * LINE_HELD_BYTES + plan.rows.length * ROW_HELD_BYTES,
    rows,
  )}</tbody></table></div>`;
}

interface LineRange {
  readonly from: number;
  readonly to: number;
  /** Null if it was not found who brought these lines. */
  readonly origin: BlameOrigin | null;
}

/** Returns the parts of the ranges that are within the lines; together they are all of the lines. */
function rangesWithin({ ranges }: Blame, { from, to }: LineSpan): readonly LineRange[] {
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

function commitLink({ repository }: PageRequest, { id, message }: LineCommit): Html {
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
