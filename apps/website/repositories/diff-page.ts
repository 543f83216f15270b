/**
 * What the address of a diff asks for: all files or one, its context, white space, and how its lines stand.
 *
 * Invariants: an address that names something else than a page can show is that of the plain diff.
 */
import { MIB } from '../../../core/kernel/byte-units.ts';
import type { WantedDiff } from '../../../core/use-cases/reading/read-diff.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { numberAsked } from './page-request.ts';

/** Files that one page of a diff lists. */
export const PAGE_FILES_MAX = 2_000;
/** Added and deleted lines of all files that a page shows; the other files are folded. */
export const PAGE_CHANGED_LINES_MAX = 20_000;
/** Lines of one file that are read for a page: more than a page holds. Internal: the weight of the page bounds them. */
const PAGE_FILE_LINES_MAX = 25_000;
/** Bytes of lines that are read for a page. Internal: the weight of the page bounds them. */
const PAGE_DIFF_BYTES_MAX = 3 * MIB;

/** The equal lines around those that differ: as git has them, more, and all. */
export const CONTEXTS = [3, 25, 200, 1_000_000] as const;

export interface DiffPage {
  /** The one file that is shown, counted from 0; null for all. */
  readonly file: number | null;
  /** Lines of that file before the first that is shown. */
  readonly linesBefore: number;
  readonly context: number;
  /** Files before the first that is listed. */
  readonly filesBefore: number;
  readonly ignoresWhiteSpace: boolean;
  readonly isSplit: boolean;
}

export function diffAsked(visit: Pick<PersonVisit, 'url'>): DiffPage {
  const { searchParams } = visit.url;
  const context = numberAsked(visit, 'context', CONTEXTS[0]);
  return {
    file: searchParams.has('file') ? numberAsked(visit, 'file', 0) : null,
    linesBefore: numberAsked(visit, 'from', 0),
    context: CONTEXTS.find((known) => known === context) ?? CONTEXTS[0],
    filesBefore: numberAsked(visit, 'files', 0),
    ignoresWhiteSpace: searchParams.get('w') === '1',
    isSplit: searchParams.get('view') === 'split',
  };
}

/** Returns the query of a page of the same diff. */
export function queryOf(page: DiffPage, other: Partial<DiffPage> = {}): Readonly<Record<string, string>> {
  const { file, linesBefore, context, filesBefore, ignoresWhiteSpace, isSplit } = { ...page, ...other };
  const ofFile = file === null ? {} : { file: String(file) };
  return {
    ...(filesBefore > 0 && file === null ? { files: String(filesBefore) } : {}),
    ...ofFile,
    ...(context === CONTEXTS[0] || file === null ? {} : { context: String(context) }),
    ...(linesBefore === 0 || file === null ? {} : { from: String(linesBefore) }),
    ...(ignoresWhiteSpace ? { w: '1' } : {}),
    ...(isSplit ? { view: 'split' } : {}),
  };
}

/** Returns what is read for the page. */
export function wantedFor({ file, linesBefore, context, filesBefore, ignoresWhiteSpace }: DiffPage): WantedDiff {
  const bounds = { fileLines: PAGE_FILE_LINES_MAX, keptBytes: PAGE_DIFF_BYTES_MAX };
  if (file !== null) {
    return { ignoresWhiteSpace, file: { index: file, context }, bounds: { ...bounds, linesBefore } };
  }
  const ofAll = { files: PAGE_FILES_MAX, filesBefore, changedLines: PAGE_CHANGED_LINES_MAX, partialFiles: false };
  return { ignoresWhiteSpace, countsAll: true, bounds: { ...bounds, ...ofAll } };
}

/** What a title says of the part of a diff that a page shows; empty for all of it. */
export function titleOfPart(page: DiffPage, name: string | null): string {
  const { file, linesBefore, context, filesBefore, ignoresWhiteSpace, isSplit } = page;
  const isAlone = file !== null;
  return [
    isAlone && (name ?? `file ${file + 1}`),
    isAlone && linesBefore > 0 && `from line ${linesBefore + 1}`,
    isAlone && context !== CONTEXTS[0] && `with ${context === CONTEXTS.at(-1) ? 'all' : context} equal lines`,
    !isAlone && filesBefore > 0 && `from file ${filesBefore + 1}`,
    ignoresWhiteSpace && 'without white space',
    isSplit && 'side by side',
  ]
    .filter((part) => part !== false)
    .join(', ');
}
