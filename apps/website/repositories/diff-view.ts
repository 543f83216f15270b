/**
 * What changed, file by file, each in a part that folds.
 *
 * Invariants: the page says what a bound left out. A page shows a bounded number of lines; the other files are folded
 * away with a link that shows one of them alone.
 */
import type { ChangedFile, Diff, DiffBound, DiffLine, Hunk } from '../../../core/git/diff/diff.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { textBytes } from '../layout/weight.ts';
import { markInvisible } from '../rendering/invisible.ts';
import { PAGE_TEXT_BYTES_MAX, PAGE_WHOLE_BYTES_MAX } from './limits.ts';
import { numberAsked } from './page-request.ts';
import { counted, shownName } from './shown-text.ts';

/** The markup around a line, and around a file. */
const LINE_OVERHEAD_BYTES = 90;
const FILE_OVERHEAD_BYTES = 600;
/** Files listed on a page where other parts leave no room for as many. */
export const FILES_SHOWN_MIN = 10;

/**
 * `address` returns the page's address that shows one file alone, or all files. `beside` is how many bytes what else a
 * page shows takes.
 */
export function diffView(
  { visit }: { readonly visit: Pick<PersonVisit, 'url'> },
  address: (file: number | null) => string,
  diff: Diff,
  { beside = 0 }: { readonly beside?: number } = {},
): Html {
  if (diff.filesTotal === 0) return html`<p class="soft">No file differs.</p>`;
  const first = numberAsked(visit, 'file', 0);
  const isAlone = visit.url.searchParams.has('file');
  let room = PAGE_TEXT_BYTES_MAX - beside;
  const shown = isAlone ? diff.files.slice(first, first + 1) : filesWithin(diff, room);
  for (const file of shown) room -= foldedBytesOf(file);
  const files = shown.map((whole, index) => {
    const file = isAlone ? withinBytes(whole, PAGE_WHOLE_BYTES_MAX) : whole;
    const bytes = bytesOfLines(file);
    const fits = isAlone || bytes <= room;
    if (fits) room -= bytes;
    return fileView(file, { fits, address: address(index) });
  });
  return html`<div class="row"><h2>${countOf(diff)}</h2> <span class="plus">+${sumOf(
    diff,
    'additions',
  )}</span> <span class="minus">−${sumOf(diff, 'deletions')}</span>${
    isAlone && html`<a class="button end" href="${address(null)}">All files</a>`
  }</div>${boundsNote(diff)}${files}${
    !isAlone && diff.files.length > shown.length && html`<p class="note">The first ${shown.length} files are shown.</p>`
  }`;
}

/** The changed lines of the one file of a diff. */
export function oneFileView({ files: [file], filesTotal }: Diff): Html {
  if (file !== undefined) return fileView(withinBytes(file, PAGE_WHOLE_BYTES_MAX), { fits: true, address: '' });
  return html`<p class="soft">${filesTotal === 0 ? 'Nothing is changed.' : 'The comparison took too long.'}</p>`;
}

/** The files of which a page has room for the names, all folded. */
function filesWithin({ files }: Diff, room: number): readonly ChangedFile[] {
  let left = room;
  const count = files.findIndex((file) => (left -= foldedBytesOf(file)) < 0);
  return count === -1 ? files : files.slice(0, Math.max(count, FILES_SHOWN_MIN));
}

function foldedBytesOf(file: ChangedFile): number {
  return FILE_OVERHEAD_BYTES + 2 * textBytes(nameOf(file));
}

function countOf({ files, filesTotal }: Diff): string {
  return filesTotal === null ? `More than ${counted(files.length, 'file')}` : counted(filesTotal, 'file');
}

function sumOf({ files }: Diff, kind: 'additions' | 'deletions'): number {
  return files.reduce((sum, file) => sum + (file[kind] ?? 0), 0);
}

const BOUNDS: Readonly<Record<DiffBound, string>> = {
  files: 'only the first files are listed',
  lines: 'a file has more lines than are shown',
  bytes: 'there are more lines than are read for a page',
  time: 'the comparison took too long and was ended',
};

function boundsNote({ truncated }: Diff): Content {
  if (truncated.length === 0) return null;
  return html`<p class="note">Not everything is shown: ${truncated.map((bound) => BOUNDS[bound]).join(', ')}. A clone shows all.</p>`;
}

function bytesOfLines({ hunks }: ChangedFile): number {
  const bytesOfAll = (lines: readonly DiffLine[]): number => lines.reduce((sum, line) => sum + bytesOfLine(line), 0);
  return hunks.reduce((sum, hunk) => sum + bytesOfHead(hunk) + bytesOfAll(hunk.lines), 0);
}

function bytesOfHead({ heading }: Hunk): number {
  return LINE_OVERHEAD_BYTES + textBytes(heading);
}

function bytesOfLine({ text }: DiffLine): number {
  return LINE_OVERHEAD_BYTES + textBytes(text);
}

/** Leaves out the lines beyond a weight. */
function withinBytes(file: ChangedFile, bytesMax: number): ChangedFile {
  if (bytesOfLines(file) <= bytesMax) return file;
  let room = bytesMax;
  const hunks = file.hunks.map((hunk) => {
    room -= bytesOfHead(hunk);
    const lines = hunk.lines.filter((line) => (room -= bytesOfLine(line)) >= 0);
    return { ...hunk, lines };
  });
  return { ...file, hunks: hunks.filter(({ lines }) => lines.length > 0), cut: true };
}

function fileView(file: ChangedFile, { fits, address }: { readonly fits: boolean; readonly address: string }): Html {
  const counts =
    file.binary || file.additions === null || file.deletions === null
      ? null
      : html`<span class="plus">+${file.additions}</span> <span class="minus">−${file.deletions}</span>`;
  return html`<details class="box"${fits && html` open`}><summary><code><bdi>${nameOf(
    file,
  )}</bdi></code>${STATUSES[file.status]}<span class="end">${counts}</span></summary>${
    fits
      ? linesOf(file)
      : html`<p class="empty">Too many lines for this page. <a href="${address}">Show this file alone</a></p>`
  }</details>`;
}

const STATUSES: Readonly<Record<ChangedFile['status'], Content>> = {
  added: html` <span class="mark good">new</span>`,
  deleted: html` <span class="mark bad">deleted</span>`,
  modified: null,
  renamed: html` <span class="mark">renamed</span>`,
  typechange: html` <span class="mark warn">another type</span>`,
};

function nameOf({ path, previousPath }: ChangedFile): string {
  return previousPath === null ? shownName(path) : `${shownName(previousPath)} → ${shownName(path)}`;
}

function linesOf(file: ChangedFile): Content {
  if (file.binary) return html`<p class="empty">A binary file.</p>`;
  if (file.hunks.length === 0)
    return html`<p class="empty">${file.cut ? 'Its lines were not read.' : noLines(file)}</p>`;
  const isCrlf = file.hunks.every(({ lines }) => lines.every(endsInCrlf));
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Changes of ${shownName(
    file.path,
  )}"><table class="diff"><tbody>${file.hunks.map((hunk) => hunkView(hunk, isCrlf))}</tbody></table></div>${
    file.cut && html`<p class="empty">More lines changed than are shown.</p>`
  }${file.hunks.some(isGuessed) && html`<p class="empty">Lines that are not UTF-8 are shown as Windows-1252, by a guess.</p>`}`;
}

/** Lines without their ends are not asked. */
function endsInCrlf(line: DiffLine): boolean {
  return !isWhole(line) || line.text.endsWith('\r');
}

function isWhole({ cut, ended }: DiffLine): boolean {
  return ended && !cut;
}

function isGuessed({ lines }: Hunk): boolean {
  return lines.some(({ guessed }) => guessed);
}

function noLines({ status, before, after }: ChangedFile): string {
  if (status === 'renamed') return 'Only its name changed.';
  if (before !== null && after !== null && before.mode !== after.mode) {
    return `Only its mode changed, from ${before.mode} to ${after.mode}.`;
  }
  return 'An empty file.';
}

/** A carriage return is shown where not all lines end in one: there the ends may be what changed. */
function hunkView({ oldStart, oldLines, newStart, newLines, heading, lines }: Hunk, isCrlf: boolean): Html {
  return html`<tr class="hunk"><td></td><td></td><td>@@ -${oldStart},${oldLines} +${newStart},${newLines} @@ ${markInvisible(
    heading,
  )}</td></tr>${lines.map((line) => lineView(line, isCrlf && isWhole(line) ? line.text.slice(0, -1) : line.text))}`;
}

function lineView({ kind, oldNumber, newNumber, cut, ended }: DiffLine, text: string): Html {
  const name = kind === 'added' ? html` class="added"` : kind === 'deleted' && html` class="removed"`;
  return html`<tr${name}><td>${oldNumber}</td><td>${newNumber}</td><td>${markInvisible(text)}${cut && '…'}${
    !ended && html` <span class="soft">(no line end)</span>`
  }</td></tr>`;
}
