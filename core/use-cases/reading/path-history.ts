/**
 * Lists the commits that changed what is at one path, as `git log -- <path>` chooses and orders them.
 *
 * Invariants: what was walked is kept for its commit and path, which never change. A list is bounded in commits and
 * time, and says when either left something out.
 */

import type { CommitRow } from '../../git/commit-row.ts';
import { nameKey } from '../../git/history/last-changes.ts';
import { refuse } from '../../kernel/decider.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import { PATH_HISTORY_COMMITS_MAX, PATH_HISTORY_SPAN_MS } from '../../kernel/limits.ts';
import type { Page } from '../../kernel/page.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { isBeyondBounds, type ObjectReader } from '../../ports/object-database.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { readCommitRows } from './commit-walk.ts';
import type { ContentsPath } from './entry-at-path.ts';
import { bytesOf } from './list-tree.ts';
import type { Place } from './read-contents.ts';
import { closing, type ObjectsContext, openView } from './repository-view.ts';
import { resolveRef } from './resolve-ref.ts';

/** The start of a path's history. `end`: there is no more; `bound`: more may be beyond a limit. */
export interface KnownPathHistory {
  readonly ids: readonly ObjectId[];
  readonly after: 'end' | 'more' | 'bound';
}

/** A cache, bounded in memory. */
export interface KnownPathHistories {
  get(key: string): KnownPathHistory | undefined;
  set(key: string, history: KnownPathHistory): void;
}

export interface PathCommitsContext extends ObjectsContext {
  readonly knownPathHistories: KnownPathHistories;
}

export interface WantedPathCommits {
  /** A text as resolve-ref.ts reads it; null: the default branch. */
  readonly ref: string | null;
  /** Null for a text that cannot name anything in a tree. The path need not exist any more. */
  readonly path: ContentsPath | null;
  readonly page: Page;
  readonly signal: AbortSignal;
}

export interface PathCommits {
  /** The version of the repository (`versionOf`). */
  readonly version: string;
  readonly place: Place;
  /** Newest first. */
  readonly commits: readonly CommitRow[];
  readonly hasMore: boolean;
  /** Whether older commits may be missing: the walk reached a limit of time or number. */
  readonly truncated: boolean;
}

type Refused = { readonly refused: Refusal };

/** Refused with `repository-without-commits`, `ref-not-found`, or `path-not-found` if no commit ever had the path. */
export async function listCommitsOfPath(
  context: PathCommitsContext,
  repository: FoundRepository,
  { ref, path, page, signal }: WantedPathCommits,
): Promise<PathCommits | Refused> {
  return closing(openView(context, repository), async (view) => {
    const reader = await view.objects();
    const resolved = await resolveRef(repository, reader, ref);
    if ('refused' in resolved) return resolved;
    if (path === null || path.names.length === 0) return refuse({ code: 'path-not-found' });
    const tip = resolved.commit.id;
    const wanted = Math.min(page.offset + page.limit + 1, PATH_HISTORY_COMMITS_MAX);
    const { ids, after } = await historyOf(
      context,
      reader,
      { tip, path: bytesOf(path), wanted, signal },
      repository.id,
    );
    if (ids.length === 0 && after === 'end') return refuse({ code: 'path-not-found' });
    const end = page.offset + page.limit;
    return {
      version: view.version,
      place: { names: path.names, ref: resolved.name, commit: tip },
      commits: await readCommitRows(reader, ids.slice(page.offset, end)),
      hasMore: ids.length > end,
      truncated: after === 'bound' && ids.length <= end,
    };
  });
}

interface Search {
  readonly tip: ObjectId;
  readonly path: Uint8Array;
  readonly wanted: number;
  readonly signal: AbortSignal;
}

async function historyOf(
  { knownPathHistories }: PathCommitsContext,
  reader: ObjectReader,
  search: Search,
  repository: string,
): Promise<KnownPathHistory> {
  const key = `${repository} ${search.tip} ${nameKey(search.path)}`;
  const known = knownPathHistories.get(key);
  if (known !== undefined && (known.after !== 'more' || known.ids.length >= search.wanted)) return known;
  const walked = await walk(reader, search);
  knownPathHistories.set(key, walked);
  return walked;
}

/** The least that is walked: the pages after the first one then need no walk of their own. */
const WALKED_MIN = 1_000;

async function walk(reader: ObjectReader, { tip, path, wanted, signal }: Search): Promise<KnownPathHistory> {
  const count = Math.max(wanted, WALKED_MIN);
  const ids: ObjectId[] = [];
  try {
    for await (const batch of reader.history.commitsOfPath(tip, path, { signal, spanMs: PATH_HISTORY_SPAN_MS })) {
      ids.push(...batch);
      if (ids.length <= count) continue;
      const after = ids.length > PATH_HISTORY_COMMITS_MAX ? 'bound' : 'more';
      return { ids: ids.slice(0, PATH_HISTORY_COMMITS_MAX), after };
    }
  } catch (error) {
    if (!isBeyondBounds(error)) throw error;
    return { ids, after: 'bound' };
  }
  return ids.length > PATH_HISTORY_COMMITS_MAX
    ? { ids: ids.slice(0, PATH_HISTORY_COMMITS_MAX), after: 'bound' }
    : { ids, after: 'end' };
}
