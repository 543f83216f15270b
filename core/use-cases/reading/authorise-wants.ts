/**
 * Which objects a fetch may ask for: those that current refs reach (git-path, Wants).
 *
 * Must stay true: git's own upload-pack refuses nothing over stateless HTTP, so this is the only check; an
 * object that no ref reaches cannot be fetched by its id, over any protocol version.
 */
import { type ObjectId, plusMs, type Timestamp } from '../../kernel/ids.ts';
import { LEFT_TIP_SPAN_MS } from '../../kernel/limits.ts';
import type { ObjectReader } from '../../ports/object-database.ts';
import type { OpenRepository } from '../../repository/state.ts';

const TIPS = new WeakMap<OpenRepository['refs'], ReadonlySet<ObjectId>>();

/** Every id a ref names, and what annotated tags lead to. */
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

/** The wants that are not to be served; empty when all are. `tipsKey` names the refs, e.g. by revision. */
export async function unauthorisedWants(
  repository: OpenRepository,
  wants: readonly ObjectId[],
  tipsKey: string,
  now: Timestamp,
  open: () => Promise<ObjectReader>,
): Promise<readonly ObjectId[]> {
  const { missing, existing } = await lookUp(repository, wants, now, open);
  // One is enough to refuse the fetch.
  return missing.length > 0 ? missing : unreached(repository, existing, tipsKey, open);
}

/** Of ids that a client only mentions all that exist and that it could not fetch. */
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

/** Of the ids that are no tips those that do not exist, and those that do. */
async function lookUp(
  repository: OpenRepository,
  ids: readonly ObjectId[],
  now: Timestamp,
  open: () => Promise<ObjectReader>,
): Promise<{ readonly missing: readonly ObjectId[]; readonly existing: readonly ObjectId[] }> {
  const tips = currentTips(repository);
  const oldest = plusMs(now, -LEFT_TIP_SPAN_MS);
  const left = new Set(repository.leftTips.filter((tip) => tip.leftAt >= oldest).map((tip) => tip.id));
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
  if (ids.length === 0 || repository.clean) return [];
  const reached = await (await open()).reachable(ids, [...currentTips(repository)], tipsKey);
  return ids.filter((id) => !reached.has(id));
}
