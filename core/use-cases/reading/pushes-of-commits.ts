/**
 * Finds the push that brought a commit: the first whose new tips reach it.
 *
 * The read model keeps the tips of each push, and no row for each commit: a push of 80,000 commits takes as much room
 * there as one of a single commit. What each push brought is worked out from the tips and the objects when it is first
 * asked for, and kept in memory by this node.
 *
 * Invariants: the push of a commit never changes, so what was worked out stays right; later pushes only add to it.
 * Time and memory are bounded, and a commit beyond them has no known push.
 */
import { CommitMarks } from '../../git/history/commit-marks.ts';
import type { ObjectId, RepositoryId } from '../../kernel/ids.ts';
import type { ActivityReader, PushRow } from '../../ports/activity.ts';
import { isBeyondBounds, type ObjectReader } from '../../ports/object-database.ts';
import type { ReadModelProgress } from '../../ports/read-models.ts';
import { lackOf, READS_ACTIVITY } from '../callers/permission.ts';
import type { Principal } from '../callers/principal.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { closing, type ObjectsContext, openView } from './repository-view.ts';
import { findDefaultBranch } from './resolve-ref.ts';

/** Commits of one repository, and changes of its refs, from which a node knows which push brought a commit. */
export const PUSHED_COMMITS_MAX = 1_000_000;
export const PUSHED_TIPS_MAX = 200_000;
/** How long git may walk to find which push brought a commit. */
export const PUSHED_SPAN_MS = 10_000;

/** What a node has worked out for one repository. */
export interface PushedCommits {
  /** Maps a commit to the revision of the push that brought it. */
  readonly marks: CommitMarks;
  /** The number of the first change of a ref that was not looked at yet. */
  readonly next: number;
  /** Commits whose whole history has marks. */
  readonly boundary: readonly ObjectId[];
  /** Whether a limit left some commits without a mark. */
  readonly incomplete: boolean;
}

/** A cache, bounded in memory by `marks.memoryBytes`, with the work under way. */
export interface KnownPushes {
  get(repository: RepositoryId): PushedCommits | undefined;
  set(repository: RepositoryId, pushed: PushedCommits): void;
  readonly underWay: Map<RepositoryId, Promise<PushedCommits>>;
}

export interface PushesContext extends ObjectsContext {
  readonly readModels: ReadModelProgress & Pick<ActivityReader, 'pushes' | 'pushTips'>;
  readonly knownPushes: KnownPushes;
  /** By default the limits. */
  readonly pushedBounds?: PushedBounds;
}

export interface PushedBounds {
  readonly commits: number;
  readonly tips: number;
}

const PUSHED_BOUNDS: PushedBounds = { commits: PUSHED_COMMITS_MAX, tips: PUSHED_TIPS_MAX };

/**
 * Returns the push of each commit, of those that are known. The caller may only ask for commits that it may show. The
 * pushes are events of `repository-<id>`.
 */
export async function pushesOfCommits(
  context: PushesContext,
  repository: FoundRepository,
  commits: readonly ObjectId[],
  signal: AbortSignal,
): Promise<ReadonlyMap<ObjectId, PushRow>> {
  if (commits.length === 0) return new Map();
  await context.readModels.caughtUp(repository.entity.position);
  const { marks } = await pushedCommits(context, repository, commits, signal);
  const revisions = new Map<ObjectId, number>();
  for (const id of commits) {
    const revision = marks.get(id);
    if (revision !== null) revisions.set(id, revision);
  }
  const rows = await context.readModels.pushes(repository.id, [...new Set(revisions.values())]);
  const byRevision = new Map(rows.map((row) => [row.revision, row]));
  const found = new Map<ObjectId, PushRow>();
  for (const [id, revision] of revisions) {
    const row = byRevision.get(revision);
    if (row !== undefined) found.set(id, row);
  }
  return found;
}

/** Does what `pushesOfCommits` does for a caller that may read the activity; any other is told of no push. */
export async function pushesToldTo(
  principal: Principal,
  ...[context, repository, commits, signal]: Parameters<typeof pushesOfCommits>
): Promise<ReadonlyMap<ObjectId, PushRow>> {
  if (lackOf(READS_ACTIVITY, principal, '') !== null) return new Map();
  return pushesOfCommits(context, repository, commits, signal);
}

/** Returns marks that hold the commits, if any push that the model knows brought them. One request works them out. */
async function pushedCommits(
  context: PushesContext,
  repository: FoundRepository,
  commits: readonly ObjectId[],
  signal: AbortSignal,
): Promise<PushedCommits> {
  const { knownPushes } = context;
  for (;;) {
    const known = knownPushes.get(repository.id);
    if (known !== undefined && commits.every((id) => known.marks.get(id) !== null)) return known;
    const underWay = knownPushes.underWay.get(repository.id);
    if (underWay === undefined) break;
    // It may fail because its own client left: then this request works on.
    await underWay.catch(() => undefined);
    signal.throwIfAborted();
  }
  const work = addPushes(context, repository, signal);
  knownPushes.underWay.set(repository.id, work);
  try {
    return await work;
  } finally {
    knownPushes.underWay.delete(repository.id);
  }
}

const NOTHING: Omit<PushedCommits, 'marks'> = { next: 0, boundary: [], incomplete: false };
/** Rows that are read and parsed together. */
const TIPS_PAGE = 2_000;
/**
 * Tips that end a walk: enough for nearly all repositories, and each is looked up. Internal: both ways find the same
 * pushes.
 */
const BOUNDARY_MAX = 200;

/** Looks at the changes since the last time, and marks what they brought. */
async function addPushes(
  context: PushesContext,
  repository: FoundRepository,
  signal: AbortSignal,
): Promise<PushedCommits> {
  const { id, entity } = repository;
  const { tips: tipsMax } = context.pushedBounds ?? PUSHED_BOUNDS;
  const before = context.knownPushes.get(id) ?? { marks: new CommitMarks(), ...NOTHING };
  /** The first push that pointed a ref to the object. Each page is worked off before the next, to keep turns short. */
  const firstPush = new Map<ObjectId, number>();
  let { next } = before;
  let tips = 0;
  for (;;) {
    signal.throwIfAborted();
    const page = await context.readModels.pushTips(id, next, TIPS_PAGE);
    // The model may be ahead of the repository that the caller found, whose layers lack newer objects.
    const seen = page.filter(({ revision }) => entity.revision !== 'none' && revision <= entity.revision);
    for (const { target, revision } of seen) if (!firstPush.has(target)) firstPush.set(target, revision);
    tips += seen.length;
    next = (seen.at(-1)?.number ?? next - 1) + 1;
    if (seen.length < TIPS_PAGE || tips > tipsMax) break;
  }
  if (tips === 0) return before;
  const tooMany = tips > tipsMax;
  const view = openView(context, repository);
  const complete =
    !tooMany &&
    (await closing(view, async () => markCommits(context, await view.objects(), { ...before, firstPush }, signal)));
  const result = { ...before, next, incomplete: before.incomplete || !complete, boundary: boundaryOf(repository) };
  context.knownPushes.set(id, result);
  return result;
}

function boundaryOf(repository: FoundRepository): readonly ObjectId[] {
  const first = findDefaultBranch(repository);
  const tips = new Set(first === null ? [] : [first.id]);
  for (const [, { id, peeled }] of repository.entity.state.refs.entries()) {
    if (tips.size >= BOUNDARY_MAX) break;
    tips.add(peeled ?? id);
  }
  return [...tips];
}

interface MarkedWith extends Pick<PushedCommits, 'marks' | 'boundary'> {
  /** By what refs pointed to. The walk adds the parents that it awaits. */
  readonly firstPush: Map<ObjectId, number>;
}

/** Marks the commits that the pushes brought and that have no mark yet. Returns false if a limit stopped it. */
async function markCommits(
  context: PushesContext,
  reader: ObjectReader,
  { marks, boundary, firstPush }: MarkedWith,
  signal: AbortSignal,
): Promise<boolean> {
  const { commits: commitsMax } = context.pushedBounds ?? PUSHED_BOUNDS;
  // Tips may be trees or blobs, and may have left storage since.
  const include = await existingCommits(reader, [...firstPush.keys()]);
  const exclude = await existingCommits(reader, boundary);
  try {
    for await (const batch of reader.history.links(include, exclude, { signal, spanMs: PUSHED_SPAN_MS })) {
      for (const { id, parents } of batch) {
        // A walk that was aborted has marked some commits already.
        const revision = marks.get(id) ?? firstPush.get(id);
        firstPush.delete(id);
        if (revision === undefined) continue;
        if (marks.count >= commitsMax) return false;
        marks.add(id, revision);
        // Children come first, so by the time a commit comes all pushes that reach it are known.
        for (const parent of parents) {
          const known = firstPush.get(parent);
          if (known === undefined || known > revision) firstPush.set(parent, revision);
        }
      }
    }
  } catch (error) {
    if (!isBeyondBounds(error)) throw error;
    return false;
  }
  return true;
}

async function existingCommits(reader: ObjectReader, ids: readonly ObjectId[]): Promise<readonly ObjectId[]> {
  const existing: ObjectId[] = [];
  for (let at = 0; at < ids.length; at += TIPS_PAGE) {
    const some = ids.slice(at, at + TIPS_PAGE);
    const infos = await reader.lookup(some);
    existing.push(...some.filter((_, index) => infos[index]?.type === 'commit'));
  }
  return existing;
}
