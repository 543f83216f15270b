/**
 * What changed in a repository between two moments: its refs, and the files of one branch or tag.
 *
 * Invariants: the caller has found the repository as of both moments, so the layers of today hold what its refs named
 * then. Two commits that were reached then are compared, whether a ref reaches them now or not, so only the owner may
 * ask. The refs are walked in turns of the event loop, and only those of one page are kept.
 */
import type { Diff } from '../../git/diff/diff.ts';
import { byRefOrder, type RefName } from '../../git/ref-name.ts';
import { refuse } from '../../kernel/decider.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ObjectReader } from '../../ports/object-database.ts';
import { type RefRun, type Refs, refRuns } from '../../repository/ref-runs.ts';
import type { Ref } from '../../repository/state.ts';
import { type DiffContext, readDiff, type WantedDiff } from '../reading/read-diff.ts';
import { closing, openView } from '../reading/repository-view.ts';
import { findRef, HEAD, type NamedRef } from '../reading/resolve-ref.ts';
import type { FoundRepository } from '../repositories/repositories.ts';

/** One repository at two moments. */
export interface BothMoments {
  readonly earlier: FoundRepository;
  readonly later: FoundRepository;
}

export interface RefChange {
  /** The full name. */
  readonly ref: RefName;
  /** What it was at the earlier moment; null if it was not there. */
  readonly before: Ref | null;
  readonly after: Ref | null;
}

/** Refs that are compared before others have the event loop. */
const REFS_IN_TURN = 500;

/** Lists the refs that differ, in the order of their names. */
export async function refsChangedBetween(
  { clock }: { readonly clock: Pick<Clock, 'nextTurn'> },
  { earlier, later }: BothMoments,
  { offset, limit }: Page,
  signal: AbortSignal,
): Promise<PageOf<RefChange>> {
  const items: RefChange[] = [];
  let total = 0;
  let compared = 0;
  for (const change of comparing(earlier.entity.state.refs, later.entity.state.refs)) {
    compared += 1;
    if (compared % REFS_IN_TURN === 0) {
      await clock.nextTurn();
      signal.throwIfAborted();
    }
    if (change === null) continue;
    if (total >= offset && items.length < limit) items.push(change);
    total += 1;
  }
  return { items, total };
}

/** Yields each ref of either side that differs, and null for one that does not. Runs that both share are left out. */
function* comparing(before: Refs, after: Refs): Generator<RefChange | null> {
  const [older, newer] = [refRuns(before), refRuns(after)];
  const [left, right] = [refsOf(older, newer), refsOf(newer, older)];
  let old = left.next().value;
  let next = right.next().value;
  while (old !== undefined || next !== undefined) {
    const order = old === undefined ? 1 : next === undefined ? -1 : byRefOrder(old.name, next.name);
    if (old !== undefined && order < 0) {
      yield { ref: old.name, before: old, after: null };
    } else if (next !== undefined && order > 0) {
      yield { ref: next.name, before: null, after: next };
    } else if (old !== undefined && next !== undefined) {
      yield old.id === next.id ? null : { ref: old.name, before: old, after: next };
    }
    if (order <= 0) old = left.next().value;
    if (order >= 0) next = right.next().value;
  }
}

/** The refs of these runs, without the runs that the others have too. */
function* refsOf(runs: readonly RefRun[], others: readonly RefRun[]): Generator<RefRun[number], undefined> {
  const shared = new Set(others);
  for (const run of runs) {
    if (!shared.has(run)) yield* run;
  }
}

export interface WantedFileChanges {
  /** A text as resolve-ref.ts reads it; null: the default branch. */
  readonly ref: string | null;
  /** What the caller shows of the diff; by default up to the limits. */
  readonly shown?: WantedDiff;
  readonly signal: AbortSignal;
}

export interface FileChanges {
  /** The full name. */
  readonly ref: string;
  /** The commits that it led to; null where it was not there, or led to no commit. */
  readonly before: ObjectId | null;
  readonly after: ObjectId | null;
  /** Against the empty tree if it was not there before; null if it led to no commit at the later moment. */
  readonly diff: Diff | null;
}

type Refused = { readonly refused: Refusal };

const NOTHING_CHANGED: Diff = { files: [], filesTotal: 0, truncated: [] };

/** Refused with `ref-not-found` if no ref of this name was there at either moment, and as `readDiff` is. */
export async function filesChangedBetween(
  context: DiffContext,
  { earlier, later }: BothMoments,
  { ref, shown = {}, signal }: WantedFileChanges,
): Promise<FileChanges | Refused> {
  const text = ref ?? HEAD;
  const named = findRef(later, text) ?? findRef(earlier, text);
  if (named === null) return refuse({ code: 'ref-not-found' });
  const { fullName } = named;
  return closing(openView(context, later), async (view) => {
    const reader = await view.objects();
    const before = await commitOf(reader, findRef(earlier, fullName));
    const after = await commitOf(reader, findRef(later, fullName));
    if (after === null) return { ref: fullName, before, after, diff: null };
    if (before === after) return { ref: fullName, before, after, diff: NOTHING_CHANGED };
    const diff = await readDiff(context, reader, before, after, { ...shown, signal });
    return 'refused' in diff ? diff : { ref: fullName, before, after, diff };
  });
}

async function commitOf(reader: ObjectReader, named: NamedRef | null): Promise<ObjectId | null> {
  if (named === null) return null;
  const commit = await reader.commit(named.ref.peeled ?? named.ref.id);
  return commit?.id ?? null;
}
