/**
 * Lists branches in pages, found by a part of their name, each with its tip and how far it is from the default branch.
 *
 * Invariants: a page by name costs as much as its branches, however many the repository has. By last change the dates
 * of all tips are read, once and in turns of the event loop, within a number and a time; beyond them a page is by name,
 * and says so. The order of all branches is kept as long as the refs stay as they are.
 */
import type { CommitRow } from '../../git/commit-row.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import { pickInTurns, sortInTurns } from '../../kernel/turns.ts';
import type { ObjectReader } from '../../ports/object-database.ts';
import type { AheadBehind } from '../../ports/object-history.ts';
import type { Refs } from '../../repository/ref-runs.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { type AheadBehindContext, countAheadBehind } from './ahead-behind.ts';
import { readCommitRows } from './commit-walk.ts';
import { type FindRefsContext, findRefs, type NamedRef } from './find-refs.ts';
import { closing, type ObjectsContext, openView } from './repository-view.ts';
import { findDefaultBranch } from './resolve-ref.ts';

/** Branches that are ordered by their last change. */
export const BRANCHES_BY_CHANGE_MAX = 20_000;
/** How long the dates of their tips may take to read; what was read is kept for the next page. */
export const BRANCH_DATES_SPAN_MS = 2_000;
/** Dates that are read in one go. Internal: they are all read in the end. */
const DATES_PART = 100;

/** A cache of the dates of commits, bounded in memory. */
export interface KnownCommitSeconds {
  get(commit: ObjectId): number | undefined;
  set(commit: ObjectId, seconds: number): void;
}

export interface BranchPageContext extends ObjectsContext, AheadBehindContext {
  readonly knownCommitSeconds: KnownCommitSeconds;
  readonly clock: AheadBehindContext['clock'] & FindRefsContext['clock'];
}

/** `changed`: the newest tip first, and those of one second by name. */
export type BranchOrder = 'name' | 'changed';

export interface WantedBranchPage {
  /** A part of the name, in any case; empty finds all. */
  readonly search: string;
  /** By default `name`. */
  readonly order?: BranchOrder;
  readonly page: Page;
  readonly signal: AbortSignal;
}

export interface ListedBranch {
  readonly name: string;
  readonly isDefault: boolean;
  readonly commit: CommitRow;
  /**
   * Commits that only this branch has, and that only the default branch has; null if there is no default branch, or
   * the count took too long.
   */
  readonly aheadBehind: AheadBehind | null;
}

export interface BranchPage {
  /** The version of the repository (`versionOf`). */
  readonly version: string;
  /** Short name. The branch need not exist. */
  readonly defaultBranch: string;
  /** The order of the page: `name` where the other one was too costly. */
  readonly order: BranchOrder;
  readonly branches: PageOf<ListedBranch>;
}

export async function listBranchPage(
  context: BranchPageContext,
  repository: FoundRepository,
  { search, order: wantedOrder = 'name', page, signal }: WantedBranchPage,
): Promise<BranchPage> {
  const wanted = { kind: 'branch', search, order: 'name', page } as const;
  const named = await findRefs(context, repository.entity.state, wanted);
  const { defaultBranch } = repository;
  const { total } = named;
  return closing(openView(context, repository), async (view) => {
    const base = findDefaultBranch(repository)?.id ?? null;
    const about = { version: view.version, defaultBranch };
    if (named.items.length === 0) return { ...about, order: wantedOrder, branches: { items: [], total } };
    const reader = await view.objects();
    const isDated = wantedOrder === 'changed' && total <= BRANCHES_BY_CHANGE_MAX;
    const dated = isDated ? await byChange(context, reader, repository, { search, total, signal }) : null;
    const items = dated?.slice(page.offset, page.offset + page.limit) ?? named.items;
    const order = dated === null ? 'name' : 'changed';
    const tips = items.map(({ ref }) => ref.id);
    const rows = await readCommitRows(reader, tips);
    const aheadBehind = base === null ? [] : await countAheadBehind(context, reader, tips, base, signal);
    const branches = items.flatMap(({ name }, index): ListedBranch[] => {
      const commit = rows[index];
      if (commit === undefined) return [];
      return [{ name, isDefault: name === defaultBranch, commit, aheadBehind: aheadBehind[index] ?? null }];
    });
    return { ...about, order, branches: { items: branches, total } };
  });
}

interface WantedByChange extends Pick<WantedBranchPage, 'search' | 'signal'> {
  /** How many there are. */
  readonly total: number;
}

/** The order of all branches, by a state of the refs: they and the dates of commits do not change. */
const ALL_BY_CHANGE = new WeakMap<Refs, readonly NamedRef[]>();

/** Returns the branches in the order of their last change; null if the dates took too long to read. */
async function byChange(
  context: BranchPageContext,
  reader: ObjectReader,
  { entity: { state } }: FoundRepository,
  { search, total, signal }: WantedByChange,
): Promise<readonly NamedRef[] | null> {
  const known = search === '' ? ALL_BY_CHANGE.get(state.refs) : undefined;
  if (known !== undefined) return known;
  const all = { kind: 'branch', search, order: 'name', page: { offset: 0, limit: total } } as const;
  const { items } = await findRefs(context, state, all);
  const seconds = await secondsOf(context, reader, items, signal);
  if (seconds === null) return null;
  const of = ({ ref }: NamedRef): number => seconds.get(ref.id) ?? 0;
  const sorted = await sortInTurns(items, (a, b) => of(b) - of(a), context.clock.nextTurn);
  if (search === '') ALL_BY_CHANGE.set(state.refs, sorted);
  return sorted;
}

/** Returns the dates of the tips of these branches; null if they took too long to read. */
async function secondsOf(
  { knownCommitSeconds, clock }: BranchPageContext,
  reader: ObjectReader,
  branches: readonly NamedRef[],
  signal: AbortSignal,
): Promise<ReadonlyMap<ObjectId, number> | null> {
  const seconds = new Map<ObjectId, number>();
  const takeKnown = ({ ref: { id } }: NamedRef): ObjectId | undefined => {
    const known = knownCommitSeconds.get(id);
    if (known === undefined) return id;
    seconds.set(id, known);
    return undefined;
  };
  const unknown = [...new Set(await pickInTurns(branches, takeKnown, clock.nextTurn))];
  const endMs = clock.monotonicMs() + BRANCH_DATES_SPAN_MS;
  for (let at = 0; at < unknown.length; at += DATES_PART) {
    signal.throwIfAborted();
    if (clock.monotonicMs() > endMs) return null;
    for (const [id, read] of await reader.commitSeconds(unknown.slice(at, at + DATES_PART))) {
      seconds.set(id, read);
      knownCommitSeconds.set(id, read);
    }
    await clock.nextTurn();
  }
  return seconds;
}
