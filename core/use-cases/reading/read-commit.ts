/**
 * Reads one commit with what it changed: against its first parent, a root commit against the empty tree.
 *
 * Invariants: only commits that a current ref reaches are found. The diff is bounded in files, lines, bytes and
 * time, and says which bound cut it. One that its time cut is not kept: the next may be whole.
 */
import type { Diff } from '../../git/diff/diff.ts';
import { createDiffParser, DIFF_BOUNDS, type DiffBounds } from '../../git/diff/diff-parser.ts';
import type { Commit } from '../../git/objects.ts';
import { refuse } from '../../kernel/decider.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { isBeyondBounds } from '../../ports/object-database.ts';
import type { ObjectHistory } from '../../ports/object-history.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { closing, type ObjectsContext, openView } from './repository-view.ts';
import { commitNamed } from './resolve-ref.ts';

/** How long git may take for a diff. */
export const DIFF_SPAN_MS = 5_000;

/** A cache, bounded in memory. */
export interface KnownDiffs {
  get(key: string): Diff | undefined;
  set(key: string, diff: Diff): void;
}

export interface DiffContext extends ObjectsContext {
  readonly knownDiffs: KnownDiffs;
}

export interface WantedCommit {
  /** A full or a short commit id; anything else is not found. */
  readonly id: string;
  /** What the caller shows of the diff; by default up to the limits. */
  readonly bounds?: Partial<DiffBounds>;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

export interface CommitWithDiff {
  /** The version of the repository (`versionOf`). */
  readonly version: string;
  /** Whole: a commit has at most `COMMIT_BYTES_MAX`. */
  readonly commit: Commit;
  readonly diff: Diff;
}

type Refused = { readonly refused: Refusal };

/** Refused with `ref-not-found` or `short-id-ambiguous`. */
export async function readCommit(
  context: DiffContext,
  repository: FoundRepository,
  { id, bounds = {}, signal }: WantedCommit,
): Promise<CommitWithDiff | Refused> {
  return closing(openView(context, repository), async (view) => {
    const reader = await view.objects();
    const commit = await commitNamed(repository, reader, id);
    if (commit === null) return refuse({ code: 'ref-not-found' });
    if ('refused' in commit) return commit;
    const diff = await readDiff(context, reader, commit.parents[0] ?? null, commit.id, { bounds, signal });
    return { version: view.version, commit, diff };
  });
}

/** Reads what changed between two commits; null is the empty tree. The caller has checked that they may be read. */
export async function readDiff(
  { knownDiffs }: Pick<DiffContext, 'knownDiffs'>,
  reader: { readonly history: Pick<ObjectHistory, 'diff'> },
  from: ObjectId | null,
  to: ObjectId,
  { bounds, signal }: { readonly bounds: Partial<DiffBounds>; readonly signal: AbortSignal },
): Promise<Diff> {
  const within = { ...DIFF_BOUNDS, ...bounds };
  const key = `${from} ${to} ${Object.values(within).join(' ')}`;
  const known = knownDiffs.get(key);
  if (known !== undefined) return known;
  const parser = createDiffParser(within);
  try {
    for await (const chunk of reader.history.diff(from, to, { signal, spanMs: DIFF_SPAN_MS })) {
      if (!parser.add(chunk)) break;
    }
  } catch (error) {
    if (!isBeyondBounds(error)) throw error;
    return parser.end('time');
  }
  const diff = parser.end('whole');
  knownDiffs.set(key, diff);
  return diff;
}
