/**
 * Finds which commit brought each line of a file, as `git blame` does without `-M`, `-C` and `-w`.
 *
 * Invariants: what was found is kept for its commit, path and blob, which never change. The search is bounded in time,
 * lines and memory, and says when it left something out. What its time cut is not kept: the next may be whole. However
 * many ask for a file at the same time, one searches.
 */
import { BLAME_LINES_MAX, type Blame, createBlameParser, NO_BLAME } from '../../git/blame.ts';
import type { CommitRow } from '../../git/commit-row.ts';
import { nameKey } from '../../git/tree-bytes.ts';
import { refuse } from '../../kernel/decider.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { startOfText } from '../../kernel/text.ts';
import { type WorkUnderWay, workOnce } from '../../kernel/work-once.ts';
import { isBeyondBounds, ObjectDatabaseError, type ObjectReader } from '../../ports/object-database.ts';
import { readCommits } from '../../ports/read-commits.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { type ContentsPath, findEntry } from './entry-at-path.ts';
import { bytesOf } from './list-tree.ts';
import { pathsRefused } from './paths-on-page.ts';
import { closing, type ObjectsContext, openView } from './repository-view.ts';
import { resolveRef } from './resolve-ref.ts';

/** How long git may look for who brought the lines of a file. */
export const BLAME_SPAN_MS = 10_000;

/** A cache, bounded in memory, with the searches under way. */
export interface KnownBlames {
  get(key: string): Blame | undefined;
  set(key: string, blame: Blame): void;
  readonly underWay: WorkUnderWay<string, Blame>;
}

export interface BlameContext extends ObjectsContext {
  readonly knownBlames: KnownBlames;
}

export interface LineSpan {
  readonly from: number;
  readonly to: number;
}

export interface WantedBlame<Span extends LineSpan | null = LineSpan | null> {
  /** A text as resolve-ref.ts reads it; null: the default branch. */
  readonly ref: string | null;
  /** Null for a text that cannot name anything in a tree. */
  readonly path: ContentsPath | null;
  /** Chooses the lines, counted from 1, whose commits are read too; null: those of no line. */
  readonly shown: (blame: Blame) => Span | Promise<Span>;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/** A commit that brought lines, with the start of its message. */
export type LineCommit = Pick<CommitRow, 'id' | 'message' | 'committedAt'>;

export interface BlamedFile<Span extends LineSpan | null = LineSpan | null> {
  /** The commit that the ref leads to. */
  readonly commit: ObjectId;
  readonly blame: Blame;
  /** What `shown` chose. */
  readonly shown: Span;
  /** Those that brought the shown lines. */
  readonly commits: ReadonlyMap<ObjectId, LineCommit>;
}

type Refused = { readonly refused: Refusal };

/**
 * Refused with `repository-without-commits`, `default-branch-missing`, `ref-not-found`, `ref-not-a-commit`,
 * `path-not-found`, `path-not-a-file` or `file-too-large`.
 */
export async function blameFile<Span extends LineSpan | null>(
  context: BlameContext,
  repository: FoundRepository,
  { ref, path, shown, signal }: WantedBlame<Span>,
): Promise<BlamedFile<Span> | Refused> {
  return closing(openView(context, repository), async (view) => {
    const reader = await view.objects();
    const resolved = await resolveRef(repository, reader, ref);
    if ('refused' in resolved) return resolved;
    if (path === null) return refuse({ code: 'path-not-found' });
    const { id: tip, tree } = resolved.commit;
    const found = await findEntry(reader, { type: 'tree', id: tree }, path);
    if ('refused' in found) return found;
    if (found.type === 'dir' || found.type === 'submodule') return refuse({ code: 'path-not-a-file' });
    const file = { tip, path: bytesOf(path), blob: found.id, signal };
    // git has no first line to begin with in an empty file.
    const blame = found.sizeBytes === 0 ? NO_BLAME : await blameOnce(context, reader, file);
    const span = await shown(blame);
    const commits = span === null ? NO_COMMITS : await lineCommits(reader, commitsOf(blame, span));
    return { commit: tip, blame, shown: span, commits };
  });
}

/** Returns a page of the ranges. Refused with `page-paths-too-long`. */
export function rangesOnPage({ ranges }: Blame, { offset, limit }: Page): PageOf<Blame['ranges'][number]> | Refused {
  const items = ranges.slice(offset, offset + limit);
  return pathsRefused(items.map(({ origin }) => origin)) ?? { items, total: ranges.length };
}

/** Returns the commits that brought the lines, each once. */
function commitsOf({ ranges }: Blame, { from, to }: LineSpan): readonly ObjectId[] {
  const ids = new Set<ObjectId>();
  for (const { start, count, origin } of ranges) if (start <= to && start + count > from) ids.add(origin.commit);
  return [...ids];
}

/**
 * How much of a commit's message stands beside its lines, in UTF-16 code units. Internal: thousands stand on a page,
 * which shows less of each.
 */
const LINE_COMMIT_MESSAGE_LENGTH_MAX = 256;

const NO_COMMITS: BlamedFile['commits'] = new Map();

async function lineCommits(reader: ObjectReader, ids: readonly ObjectId[]): Promise<BlamedFile['commits']> {
  const found = new Map<ObjectId, LineCommit>();
  for await (const [id, commit] of readCommits(reader, ids)) {
    if (commit === null) throw new ObjectDatabaseError('layer-missing', `Commit ${id} is in no layer`);
    const message = startOfText(commit.message, LINE_COMMIT_MESSAGE_LENGTH_MAX);
    found.set(id, { id, message, committedAt: commit.committer.seconds });
  }
  return found;
}

interface FileAt {
  readonly tip: ObjectId;
  readonly path: Uint8Array;
  readonly blob: ObjectId;
  readonly signal: AbortSignal;
}

async function blameOnce({ knownBlames }: BlameContext, reader: ObjectReader, file: FileAt): Promise<Blame> {
  const { tip, path, blob, signal } = file;
  const key = `${tip} ${blob} ${nameKey(path)}`;
  const known = knownBlames.get(key);
  if (known !== undefined) return known;
  const search = async (): Promise<Blame> => {
    const { blame, isWhole } = await blameByGit(reader, file);
    if (isWhole) knownBlames.set(key, blame);
    return blame;
  };
  return workOnce(knownBlames.underWay, key, search, signal);
}

/** `isWhole` is false if the time was up. */
async function blameByGit(
  reader: ObjectReader,
  { tip, path, signal }: FileAt,
): Promise<{ readonly blame: Blame; readonly isWhole: boolean }> {
  const parser = createBlameParser();
  try {
    // One line more tells whether there are more than the limit.
    const chunks = reader.history.blame(tip, path, BLAME_LINES_MAX + 1, { signal, spanMs: BLAME_SPAN_MS });
    for await (const chunk of chunks) if (!parser.add(chunk)) break;
  } catch (error) {
    if (!isBeyondBounds(error)) throw error;
    return { blame: parser.end('cut'), isWhole: false };
  }
  return { blame: parser.end('whole'), isWhole: true };
}
