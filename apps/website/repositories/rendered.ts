/**
 * Declares trusted what apps/website/rendering made.
 *
 * Invariants: only its output passes here. It escapes all text and passes an allow-list.
 */
import type { ObjectId } from '../../../core/kernel/ids.ts';
import { refOfAnyAddress } from '../../../core/use-cases/reading/ref-path.ts';
import { encodeName } from '../../front-door/request-target.ts';
import { type Html, laterHtml, trustedHtml } from '../layout/html.ts';
import { type CsvRow, headMarkup, rowMarkup } from '../rendering/csv-rows.ts';
import { type ColouredLines, type DiffRows, diffRows } from '../rendering/diff-rows.ts';
import { type Line, markupOf, numberedLine, partsOf, wholeCharacters } from '../rendering/line-markup.ts';
import type { Runs } from '../rendering/runs.ts';
import { repositoryAddress, shownAddress } from './addresses.ts';
import type { PageRequest } from './page-request.ts';

export interface TextFile {
  readonly id: ObjectId;
  readonly text: string;
  readonly ref: string;
  /** The path of the file. */
  readonly names: readonly Uint8Array[];
}

/** Null if the text is too long or took too long. */
export async function renderedMarkdown(asked: PageRequest, { id, text, ref, names }: TextFile): Promise<Html | null> {
  const { context, visit, repository } = asked;
  const folder = names.slice(0, -1);
  const at = refOfAnyAddress(repository, ref).split('/').map(encodeURIComponent).join('/');
  const home = repositoryAddress(repository);
  const place = { blobs: `${home}/blob/${at}`, raw: `${home}/raw/${at}`, folder: folder.map(encodeName).join('/') };
  const query = shownAddress(repository, '');
  const markup = await context.renderer.markdown(visit.person.account, { id, text, place: { ...place, query } });
  return markup === null ? null : trustedHtml(markup);
}

/** The same markup, sent in pieces. */
export function inPieces(markup: Html): Html {
  const text = markup.markup();
  return laterHtml({ heldBytes: 2 * text.length, make: () => slices(text) });
}

function* slices(text: string): Generator<Html> {
  for (let at = 0; at < text.length; ) {
    const end = wholeCharacters(text, Math.min(text.length, at + PIECE_LENGTH));
    yield trustedHtml(text.slice(at, end));
    at = end;
  }
}

export interface NumberedLine extends Line {
  readonly number: number;
  /** Whether its text goes on behind `end`. */
  readonly isCut: boolean;
}

/** The lines of a text, each with its number, made while they are sent. */
export function laterLines(text: string, runs: Runs | null, lines: () => Iterable<NumberedLine>): Html {
  return laterHtml({
    heldBytes: 2 * text.length + (runs?.byteLength ?? 0),
    make: () => pieces(numberedLines(text, runs, lines())),
  });
}

export interface RowOfLines {
  readonly before: Html;
  readonly lines: readonly NumberedLine[];
  readonly after: Html;
}

/** Rows of lines, each with more beside them, which holds that much memory, made while they are sent. */
export function laterLineRows(
  { text, runs }: { readonly text: string; readonly runs: Runs | null },
  besideBytes: number,
  rows: () => Iterable<RowOfLines>,
): Html {
  return laterHtml({
    heldBytes: 2 * text.length + (runs?.byteLength ?? 0) + besideBytes,
    make: () => pieces(lineRows(text, runs, rows())),
  });
}

function* lineRows(text: string, runs: Runs | null, rows: Iterable<RowOfLines>): Generator<string> {
  const markup = markupOf(text, runs);
  for (const { before, lines, after } of rows) {
    yield before.markup();
    yield* linesWith(markup, text, lines);
    yield after.markup();
  }
}

function numberedLines(text: string, runs: Runs | null, lines: Iterable<NumberedLine>): Generator<string> {
  return linesWith(markupOf(text, runs), text, lines);
}

function* linesWith(
  markup: ReturnType<typeof markupOf>,
  text: string,
  lines: Iterable<NumberedLine>,
): Generator<string> {
  for (const line of lines) {
    const [first = { start: line.start, end: line.end }, ...more] = partsOf(text, line);
    const end = line.isCut ? '<span class=soft>…</span>\n' : '\n';
    yield `${numberedLine(markup(first), line.number)}${more.length === 0 ? end : ''}`;
    for (const part of more) yield markup(part);
    if (more.length > 0) yield end;
  }
}

/** The rows of a table, made while they are sent. */
export function laterRows(heldBytes: number, head: CsvRow, rows: () => Iterable<CsvRow>): Html {
  return laterHtml({ heldBytes, make: () => pieces(tableMarkup(head, rows())) });
}

function* tableMarkup(head: CsvRow, rows: Iterable<CsvRow>): Generator<string> {
  yield headMarkup(head);
  for (const row of rows) yield rowMarkup(row);
  yield '</tbody>';
}

export interface FileOfDiff {
  readonly before: Html;
  readonly rows: DiffRows | null;
  readonly after: Html;
}

/** The files of a diff with their lines, made while they are sent. */
export function laterDiff(heldBytes: number, coloured: ColouredLines | null, files: () => Iterable<FileOfDiff>): Html {
  return laterHtml({ heldBytes, make: () => pieces(diffMarkup(coloured, files())) });
}

function* diffMarkup(coloured: ColouredLines | null, files: Iterable<FileOfDiff>): Generator<string> {
  const markup = coloured === null ? null : markupOf(coloured.text, coloured.runs);
  for (const { before, rows, after } of files) {
    yield before.markup();
    if (rows !== null) yield* diffRows(rows, markup);
    yield after.markup();
  }
}

/** What of a page is made in one go, in UTF-16 code units of markup. */
const PIECE_LENGTH = 32 * 1_024;

/** Joins short parts of markup. */
function* pieces(markups: Iterable<string>): Generator<Html> {
  let piece = '';
  for (const markup of markups) {
    piece += markup;
    if (piece.length < PIECE_LENGTH) continue;
    yield trustedHtml(piece);
    piece = '';
  }
  yield trustedHtml(piece);
}
