/**
 * Compares two refs: the commits that the one has and the other lacks, and what they changed since both were the same.
 *
 * Invariants: both are resolved as every reader's ref is, so neither shows a commit that no current ref reaches.
 * Counts, commits and the diff are bounded in time, and say when a bound left something out. What was found between two
 * commits is kept, since it never changes.
 */
import type { CommitRow } from '../../git/commit-row.ts';
import type { Diff } from '../../git/diff/diff.ts';
import { listedRow } from '../../git/history/listed-commit.ts';
import { refuse } from '../../kernel/decider.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import type { Page } from '../../kernel/page.ts';
import type { ComparedSide, Refusal } from '../../kernel/refusal.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ObjectReader } from '../../ports/object-database.ts';
import type { AheadBehind } from '../../ports/object-history.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { type AheadBehindContext, allOf, countAheadBehind, withinBounds } from './ahead-behind.ts';
import { readCommitRows } from './commit-walk.ts';
import { type DiffContext, readDiff, type WantedDiff } from './read-diff.ts';
import { closing, openView } from './repository-view.ts';
import { type ResolvedRef, resolveRef } from './resolve-ref.ts';

/** How long git may walk for the commits between two refs. */
export const COMPARISON_SPAN_MS = 5_000;

/** What lies between two commits. */
export interface KnownComparison {
  readonly mergeBase: ObjectId | null;
  /** One page of the commits that only the second reaches. */
  readonly ids: readonly ObjectId[];
}

/** A cache, bounded in memory. */
export interface KnownComparisons {
  get(key: string): KnownComparison | undefined;
  set(key: string, comparison: KnownComparison): void;
}

export interface CompareContext extends DiffContext, AheadBehindContext {
  readonly clock: Pick<Clock, 'nextTurn' | 'monotonicMs'>;
  readonly knownComparisons: KnownComparisons;
}

export interface WantedComparison {
  /** A text as resolve-ref.ts reads it; null: the default branch. */
  readonly base: string | null;
  readonly head: string | null;
  /** Whether the files are compared from `base` itself, as two dots mean to git; else from the merge base. */
  readonly direct?: boolean;
  /** The page of commits. */
  readonly page: Page;
  /** What the caller shows of the diff; by default up to the limits. */
  readonly shown?: WantedDiff;
  readonly signal: AbortSignal;
}

export interface Comparison {
  /** The version of the repository (`versionOf`). */
  readonly version: string;
  readonly base: ComparedRef;
  readonly head: ComparedRef;
  /** The best common ancestor; null if the two have no history in common, or it was not found in time. */
  readonly mergeBase: ObjectId | null;
  /** False if the merge base was not found in time. */
  readonly mergeBaseKnown: boolean;
  /** Commits that only `head` reaches, and that only `base` reaches; null if the count took too long. */
  readonly aheadBehind: AheadBehind | null;
  /** The commits that only `head` reaches, newest first; null if they were not found in time. */
  readonly commits: readonly CommitRow[] | null;
  /** Where the files are compared from: the merge base; `base` if there is none, or if that was asked for. */
  readonly comparedFrom: ObjectId;
  readonly diff: Diff;
}

export interface ComparedRef {
  /** The name that the caller gave, or the short name of the default branch. */
  readonly name: string;
  readonly commit: CommitRow;
}

type Refused = { readonly refused: Refusal };

/** Refused as `resolveRef` and `readDiff` are. */
export async function compareRefs(
  context: CompareContext,
  repository: FoundRepository,
  { base, head, direct = false, page, shown = {}, signal }: WantedComparison,
): Promise<Comparison | Refused> {
  return closing(openView(context, repository), async (view) => {
    const reader = await view.objects();
    const from = await resolveRef(repository, reader, base);
    if ('refused' in from) return ofSide(from.refused, 'base');
    const to = await resolveRef(repository, reader, head);
    if ('refused' in to) return ofSide(to.refused, 'head');
    const [old, tip] = [from.commit.id, to.commit.id];
    const [{ mergeBase, mergeBaseKnown, ids }, [aheadBehind = null]] = await allOf([
      findBetween(context, reader, old, tip, page, signal),
      countAheadBehind(context, reader, [tip], old, signal),
    ]);
    const comparedFrom = direct ? old : (mergeBase ?? old);
    const diff = await readDiff(context, reader, comparedFrom, tip, { ...shown, signal });
    if ('refused' in diff) return diff;
    return {
      version: view.version,
      base: comparedRef(from),
      head: comparedRef(to),
      mergeBase,
      mergeBaseKnown,
      aheadBehind,
      commits: ids === null ? null : await readCommitRows(reader, ids),
      comparedFrom,
      diff,
    };
  });
}

function ofSide(refusal: Refusal, side: ComparedSide): Refused {
  return refuse(refusal.code === 'ref-not-found' ? { ...refusal, side } : refusal);
}

type BestAncestor = Pick<KnownComparison, 'mergeBase'>;
type Between = Pick<Comparison, 'mergeBase' | 'mergeBaseKnown'> & { readonly ids: readonly ObjectId[] | null };

async function findBetween(
  { knownComparisons }: CompareContext,
  reader: ObjectReader,
  old: ObjectId,
  tip: ObjectId,
  page: Page,
  signal: AbortSignal,
): Promise<Between> {
  if (old === tip) return { mergeBase: tip, mergeBaseKnown: true, ids: [] };
  const key = `${old} ${tip} ${page.offset} ${page.limit}`;
  const known = knownComparisons.get(key);
  if (known !== undefined) return { ...known, mergeBaseKnown: true };
  const bounded = { signal, spanMs: COMPARISON_SPAN_MS };
  const [base, ids] = await allOf([
    withinBounds<BestAncestor>(reader.history.mergeBase(old, tip, bounded).then((id) => ({ mergeBase: id }))),
    withinBounds(reader.history.commitsBetween(old, tip, page, bounded)),
  ]);
  const mergeBase = base?.mergeBase ?? null;
  // What was not found in time is looked for again.
  if (base !== null && ids !== null) knownComparisons.set(key, { mergeBase, ids });
  return { mergeBase, mergeBaseKnown: base !== null, ids };
}

function comparedRef({ name, commit }: ResolvedRef): ComparedRef {
  return { name, commit: listedRow(commit) };
}
