/**
 * Decides which objects a fetch may want: every one that the repository's layers hold, if a ref once reached them all,
 * and else those that are reachable from a current ref (docs/git-path.md, Wants).
 *
 * Invariants: this is the only check, because git's upload-pack refuses no want over stateless HTTP. An object that no
 * ref ever reached cannot be fetched by its id, over any protocol version, and neither can one that a purge removed.
 */
import { type ObjectId, plusMs, type Timestamp } from '../../kernel/ids.ts';
import { LEFT_TIP_SPAN_MS } from '../../kernel/limits.ts';
import type { ObjectReader } from '../../ports/object-database.ts';
import type { OpenRepository } from '../../repository/state.ts';
import { servesAllObjects } from '../../repository/unreached.ts';
import type { FoundRepository } from '../repositories/repositories.ts';

/**
 * A time that is further ahead of this node's clock was written by a node whose clock was wrong. Internal: only a
 * machine with a wrong clock reaches it.
 */
export const CLOCK_AHEAD_MS_MAX = 60_000;

const TIPS = new WeakMap<OpenRepository['refs'], ReadonlySet<ObjectId>>();

/** Returns every id that a ref names, and the objects that annotated tags peel to. */
export function currentTips(repository: OpenRepository): ReadonlySet<ObjectId> {
  const known = TIPS.get(repository.refs);
  if (known !== undefined) return known;
  const tips = new Set<ObjectId>();
  for (const [, ref] of repository.refs.entries()) {
    tips.add(ref.id);
    if (ref.peeled !== null) tips.add(ref.peeled);
  }
  TIPS.set(repository.refs, tips);
  return tips;
}

/** Returns wants that must not be served; empty if all may be. `tipsKey` identifies the refs, e.g. by revision. */
export async function unauthorisedWants(
  repository: OpenRepository,
  wants: readonly ObjectId[],
  tipsKey: string,
  now: Timestamp,
  open: () => Promise<ObjectReader>,
): Promise<readonly ObjectId[]> {
  const { missing, existing } = await lookUp(repository, wants, now, open);
  // One unauthorised want is enough to refuse the fetch, so the existing objects need no check.
  return missing.length > 0 ? missing : unreached(repository, existing, tipsKey, open);
}

/** Returns those of the ids that exist but that the client could not fetch. A client may mention ids without a want. */
export async function unauthorisedMentions(
  repository: OpenRepository,
  ids: readonly ObjectId[],
  tipsKey: string,
  now: Timestamp,
  open: () => Promise<ObjectReader>,
): Promise<readonly ObjectId[]> {
  const { existing } = await lookUp(repository, ids, now, open);
  return unreached(repository, existing, tipsKey, open);
}

/**
 * Whether a current ref reaches an object that exists: what readers by REST and on the website see by its id. A fetch
 * may have more.
 */
export async function isReachedByRefs(
  repository: Pick<FoundRepository, 'entity'>,
  reader: ObjectReader,
  id: ObjectId,
): Promise<boolean> {
  return (await reachedByRefs(repository, reader, [id])).length > 0;
}

/** Returns those of the ids of objects that exist which a current ref reaches. */
export async function reachedByRefs(
  { entity }: Pick<FoundRepository, 'entity'>,
  reader: ObjectReader,
  ids: readonly ObjectId[],
): Promise<readonly ObjectId[]> {
  const { state, revision } = entity;
  // In a clean repository every object is reached (docs/git-path.md, Wants), and its tips need not be collected.
  if (state.clean) return ids;
  const tips = currentTips(state);
  const others = ids.filter((id) => !tips.has(id));
  if (others.length === 0) return ids;
  const reached = await reader.reachable(others, [...tips], String(revision));
  return ids.filter((id) => tips.has(id) || reached.has(id));
}

/** Splits the ids that are neither current tips nor ones left recently into those that exist and those that do not. */
async function lookUp(
  repository: OpenRepository,
  ids: readonly ObjectId[],
  now: Timestamp,
  open: () => Promise<ObjectReader>,
): Promise<{ readonly missing: readonly ObjectId[]; readonly existing: readonly ObjectId[] }> {
  const tips = currentTips(repository);
  const oldest = plusMs(now, -LEFT_TIP_SPAN_MS);
  // A push by a node whose clock was days ahead would keep what was forced away for days.
  const newest = plusMs(now, CLOCK_AHEAD_MS_MAX);
  const recent = repository.leftTips.filter(({ leftAt }) => leftAt >= oldest && leftAt <= newest);
  const left = new Set(recent.map((tip) => tip.id));
  const others = ids.filter((id) => !tips.has(id) && !left.has(id));
  if (others.length === 0) return { missing: [], existing: [] };
  const found = await (await open()).lookup(others);
  return {
    missing: others.filter((_, index) => found[index] === null),
    existing: others.filter((_, index) => found[index] !== null),
  };
}

async function unreached(
  repository: OpenRepository,
  ids: readonly ObjectId[],
  tipsKey: string,
  open: () => Promise<ObjectReader>,
): Promise<readonly ObjectId[]> {
  if (ids.length === 0 || repository.clean || servesAllObjects(repository)) return [];
  const reached = await (await open()).reachable(ids, [...currentTips(repository)], tipsKey);
  return ids.filter((id) => !reached.has(id));
}
