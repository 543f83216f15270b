/**
 * What a page of a diff shows: the files that it lists, those of them whose lines it has room for, and with colours or
 * without.
 *
 * Invariants: the page stays within its weight. The colours and the marks of changed words are left out first, and
 * where a file is folded no file has them.
 */
import type { ChangedFile, Diff, Hunk } from '../../../core/git/diff/diff.ts';
import { decodeUtf8Lossy } from '../../../core/git/utf8.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import type { turnsOf } from '../layout/turns.ts';
import type { PersonVisit, SignedIn } from '../layout/visit.ts';
import { textBytes } from '../layout/weight.ts';
import type { ChangedText } from '../rendering/changed-words.ts';
import { type ColouredLines, weighDiffLine, weighHunk } from '../rendering/diff-rows.ts';
import { languageOf } from '../rendering/language.ts';
import { weighRuns } from '../rendering/line-markup.ts';
import { RENDERED_CODE_LENGTH_MAX, type Renderer } from '../rendering/renderer.ts';
import { addWeights, fitsInto, type Weight } from '../rendering/weight.ts';
import type { DiffPage } from './diff-page.ts';
import { shownName } from './shown-text.ts';

/** Who reads a diff, of which repository. */
export interface DiffReader {
  readonly context: { readonly renderer: Pick<Renderer, 'changes'> };
  readonly visit: Pick<PersonVisit, 'signal'> & { readonly person: Pick<SignedIn, 'account'> };
  readonly repository: FoundRepository;
}

export interface ShownDiff {
  readonly diff: Diff;
  readonly page: DiffPage;
  /** The commits whose files are compared; null for the empty tree. */
  readonly before: string | null;
  readonly after: string;
  /** The repository as of the moment at which a ref reached the older commit, if that is not the reader's. */
  readonly earlier?: FoundRepository;
  /** Returns the address of the page with this query. */
  readonly address: (query: Readonly<Record<string, string>>) => string;
}

export interface PlannedFile {
  readonly file: ChangedFile;
  /** Its number in the diff. */
  readonly index: number;
  /** The lines that are shown; null if they are folded. */
  readonly hunks: readonly Hunk[] | null;
  /** How many lines of the hunks these are. */
  readonly lines: number;
  /** Where its lines begin among those of all files, in a text that has them all. */
  readonly start: number;
}

export interface Plan {
  readonly files: readonly PlannedFile[];
  readonly weight: Weight;
  /** The characters of the lines of all files. */
  readonly length: number;
}

/** The elements of a file without its lines, with images before and after, and of its entry in the list. */
const FILE_ELEMENTS = 28;
const FILE_BYTES = 1_500;
/** A path is in up to three addresses, where each of its bytes may take three. */
const PATHS = 9;

function weighFile(file: ChangedFile): Weight {
  const pathBytes = file.path.length + (file.previousPath?.length ?? 0);
  return { bytes: FILE_BYTES + PATHS * pathBytes + 3 * textBytes(nameOf(file)), elements: FILE_ELEMENTS };
}

/** Chooses the files that the page lists, and those of them whose lines it shows. */
export async function planOf({ diff, page }: ShownDiff, room: Weight, turn: ReturnType<typeof turnsOf>): Promise<Plan> {
  let weight: Weight = { bytes: 0, elements: 0 };
  const listed: ChangedFile[] = [];
  for (const file of diff.files) {
    const more = addWeights(weight, weighFile(file));
    if (!fitsInto(more, room) && listed.length > 0) break;
    weight = more;
    listed.push(file);
  }
  const first = page.file ?? page.filesBefore;
  let start = 0;
  const files: PlannedFile[] = [];
  for (const [at, file] of listed.entries()) {
    await turn();
    const planned = { file, index: first + at, start };
    const fitting = hunksWithin(file.hunks, page.isSplit, { used: weight, room });
    if (page.file === null && (file.cut || fitting.isCut)) {
      files.push({ ...planned, hunks: null, lines: 0 });
      continue;
    }
    weight = fitting.weight;
    start += fitting.length;
    files.push({ ...planned, hunks: fitting.hunks, lines: fitting.lines });
  }
  return { files, weight, length: start };
}

interface Fitting {
  readonly hunks: readonly Hunk[];
  readonly lines: number;
  /** The characters of all lines, each with its line feed. */
  readonly length: number;
  readonly weight: Weight;
  readonly isCut: boolean;
}

/** Returns the first of the lines, as many as there is room for. */
export function hunksWithin(
  hunks: readonly Hunk[],
  isSplit: boolean,
  { used, room }: { readonly used: Weight; readonly room: Weight },
): Fitting {
  const fitting: Hunk[] = [];
  let [lines, length, weight] = [0, 0, used];
  for (const hunk of hunks) {
    weight = addWeights(weight, weighHunk(hunk));
    for (const [at, line] of hunk.lines.entries()) {
      const more = addWeights(weight, weighDiffLine(line, isSplit));
      if (!fitsInto(more, room)) {
        if (at > 0) fitting.push({ ...hunk, lines: hunk.lines.slice(0, at) });
        return { hunks: fitting, lines, length, weight, isCut: true };
      }
      weight = more;
      lines += 1;
      length += line.text.length + 1;
    }
    fitting.push(hunk);
  }
  return { hunks: fitting, lines, length, weight, isCut: false };
}

/** A page that folds part of a diff has neither colours nor marks. */
export async function coloursOf(
  { context, visit }: DiffReader,
  { before, after, page }: ShownDiff,
  { files, weight, length }: Plan,
  room: Weight,
): Promise<ColouredLines | null> {
  if (length > RENDERED_CODE_LENGTH_MAX || files.some(({ hunks }) => hunks === null)) return null;
  const texts = files.map(({ file, hunks }) => changedText(file, hunks ?? []));
  const key = JSON.stringify([before, after, page.file, page.linesBefore, page.context, page.ignoresWhiteSpace]);
  const runs = await context.renderer.changes(visit.person.account, { key, files: texts });
  if (runs === null) return null;
  const text = texts.map((one) => one.text).join('');
  // Side by side a context line stands twice.
  const added = weighRuns(text, runs);
  const twice = page.isSplit ? addWeights(added, added) : added;
  return fitsInto(addWeights(weight, twice), room) ? { text, runs } : null;
}

const MARKS = { context: ' ', added: '+', deleted: '-' };

function changedText({ path }: ChangedFile, hunks: readonly Hunk[]): ChangedText {
  const lines = hunks.flatMap((hunk) => hunk.lines);
  return {
    text: lines.map(({ text }) => `${text}\n`).join(''),
    marks: lines.map(({ kind }) => MARKS[kind]).join(''),
    language: languageOf(lastName(path)),
  };
}

export function lastName(path: Uint8Array): string {
  return decodeUtf8Lossy(path.subarray(path.lastIndexOf(SLASH) + 1));
}

const SLASH = 0x2f;

/** What objects and texts take in memory, about. */
const LINE_HELD_BYTES = 160;

export function heldBytesOf(files: readonly PlannedFile[]): number {
  const linesOf = ({ hunks }: PlannedFile) => (hunks ?? []).flatMap(({ lines }) => lines);
  return files.reduce(
    (sum, file) => linesOf(file).reduce((all, { text }) => all + LINE_HELD_BYTES + 2 * text.length, sum),
    0,
  );
}

export function nameOf({ path, previousPath }: ChangedFile): string {
  return previousPath === null ? shownName(path) : `${shownName(previousPath)} → ${shownName(path)}`;
}
