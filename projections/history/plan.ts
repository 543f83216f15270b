/**
 * Computes, before the transaction, what a batch changes in one repository: reads Git and the stored rows.
 *
 * Invariants: nothing is written here. Objects that are missing because a later event replaced them do not stop the
 * model: the repository is marked incomplete until that event is applied.
 */
import type { AppendList } from '../../core/kernel/append-list.ts';
import { streamName } from '../../core/kernel/envelope.ts';
import { type AccountId, type ObjectId, type RepositoryId, type Uuid, uuid } from '../../core/kernel/ids.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { type CommittedObjects, isBeyondBounds, type ObjectDatabase } from '../../core/ports/object-database.ts';
import type { Layer } from '../../core/repository/layer.ts';
import { type CommittedLayers, changeLayers, NO_LAYERS } from '../../core/repository/layers.ts';
import { FALLBACK_DEFAULT_BRANCH } from '../../core/repository/state.ts';
import { StreamFault } from '../runner/faults.ts';
import { orderCommit } from './entry.ts';
import { isListed, type RefValue, type RepositoryChange } from './fold.ts';
import { GitFault, type HistoryReader, isMissing, mayPass, withReader } from './git-reading.ts';
import { findNewCommits, MissingCommits, type NewCommits } from './new-commits.ts';
import { type OrderChange, orderChange } from './order.ts';
import type { Head, StoredHistory } from './stored.ts';
import { boundedOrder, type MemoryBudget, TooMuchWork, type WorkBounds } from './work-bounds.ts';

export interface PlanContext {
  readonly objects: Pick<ObjectDatabase, 'open'>;
  readonly events: Pick<EventStore, 'readStream'>;
  readonly stored: StoredHistory;
  readonly bounds: WorkBounds;
  /** The memory of the whole batch. */
  readonly memory: MemoryBudget;
  /**
   * If true, work beyond the bounds parks the stream until an operator requests a retry; if false, it is replayed
   * beside the writer.
   */
  readonly patient: boolean;
  /** Buckets of users whose repositories are read beside the writer, because others would wait for the bucket. */
  readonly slowBuckets: { get(bucket: Uuid): true | undefined; set(bucket: Uuid, isSlow: true): unknown };
}

/** What is stored of a repository before the batch. */
export interface Base {
  readonly head: Head | null;
  readonly layers: AppendList<Layer>;
}

export const NO_BASE: Base = { head: null, layers: NO_LAYERS.layers };

export interface RepositoryPlan {
  readonly change: RepositoryChange;
  readonly before: Head | null;
  readonly after: Head;
  readonly commits: NewCommits;
  readonly order: OrderChange;
  readonly committed: CommittedObjects & CommittedLayers;
  /**
   * How many of the stored layers, counted from the first, stay as they are; null: all layers are deleted and stored
   * again.
   */
  readonly layersKept: number | null;
}

const NO_COMMITS: NewCommits = { commits: [], walk: null };

export async function planRepository(
  context: PlanContext,
  change: RepositoryChange,
  { head: before, layers: stored }: Base,
): Promise<RepositoryPlan> {
  const revision = change.revision ?? before?.revision ?? -1;
  const wanted = await wantedTips(context.stored, change, before);
  const storageBucketId =
    change.storageBucketId === undefined ? (before?.storageBucketId ?? null) : change.storageBucketId;
  const shrinkEpoch = before?.shrinkEpoch ?? 0;
  // The row does not say which epochs dropped objects.
  const layers = change.layers.reduce(changeLayers, { layers: stored, shrinkEpoch, keptSinceEpoch: null });
  const place = { account: uuid<AccountId>(change.accountId), storageBucketId };
  const committed = { repository: change.id, place, revision, ...layers };
  const layersKept = change.returned === null && layers.shrinkEpoch === shrinkEpoch ? stored.length : null;
  const after: Head = {
    accountId: change.accountId,
    initialDefaultBranch: change.initialDefaultBranch ?? before?.initialDefaultBranch ?? null,
    defaultBranch: change.defaultBranch ?? before?.defaultBranch ?? null,
    revision,
    storageBucketId,
    shrinkEpoch: layers.shrinkEpoch,
    orderedTip: wanted.tip,
    orderedCommits: before?.orderedCommits ?? 0,
    incomplete: false,
  };
  const oldTip = before?.orderedTip ?? null;
  const plan = { change, before, committed, layersKept };
  if (wanted.tips.length === 0 && (wanted.tip === oldTip || wanted.tip === null)) {
    const order: OrderChange = wanted.tip === oldTip ? { kind: 'keep' } : { kind: 'replace', kept: 0, ids: [] };
    return { ...plan, order, after: withOrderLength(after, order), commits: NO_COMMITS };
  }
  if (!context.patient && storageBucketId !== null && context.slowBuckets.get(storageBucketId) === true) {
    throw faultOf(change, new TooMuchWork('Its bucket took too long a moment ago'), false);
  }
  try {
    return await withReader(context.objects, committed, context.bounds.spanMs, async (reader) => {
      const { commits, order } = await readGit(context, reader, { change, before, wanted });
      return { ...plan, commits, order, after: withOrderLength(after, order) };
    });
  } catch (error) {
    if (storageBucketId !== null && error instanceof TooMuchWork) context.slowBuckets.set(storageBucketId, true);
    const areMissing = error instanceof MissingCommits || isMissing(error);
    if (!areMissing || !(await isSuperseded(context.events, change.id, revision))) {
      throw faultOf(change, error, context.patient);
    }
    const incomplete = { ...after, orderedTip: oldTip, incomplete: true };
    return { ...plan, order: { kind: 'keep' }, commits: NO_COMMITS, after: incomplete };
  }
}

/** Wraps an error that concerns this repository only in a `StreamFault`; returns any other error as it is. */
export function faultOf({ id, accountId, revision }: RepositoryChange, error: unknown, patient: boolean): unknown {
  const stream = revision === null ? streamName('account', accountId) : streamName('repository', id);
  const { message } = error instanceof Error ? error : { message: '' };
  if (error instanceof TooMuchWork) {
    return patient
      ? new StreamFault(stream, 'on-request', message, { cause: error, beyondBounds: true })
      : new StreamFault(stream, 'soon', message, { cause: error });
  }
  if (error instanceof MissingCommits) return new StreamFault(stream, 'later', message, { cause: error });
  if (error instanceof GitFault) {
    const options = { cause: error, beyondBounds: isBeyondBounds(error.cause) };
    return new StreamFault(stream, mayPass(error) ? 'later' : 'on-request', message, options);
  }
  return error;
}

function withOrderLength(after: Head, order: OrderChange): Head {
  return order.kind === 'keep' ? after : { ...after, orderedCommits: order.kept + order.ids.length };
}

interface Wanted {
  /** The default branch's tip after the batch. */
  readonly tip: ObjectId | null;
  /**
   * The commits that branches and tags pointed to at any time in the batch; if the repository is incomplete, all of
   * them.
   */
  readonly tips: readonly ObjectId[];
  /** The tips that refs still point to at the end of the batch. */
  readonly required: ReadonlySet<ObjectId>;
}

async function wantedTips(stored: StoredHistory, change: RepositoryChange, before: Head | null): Promise<Wanted> {
  // Everything stored is deleted, and the repository's own stream has not yet said what it holds.
  if (change.returned === 'restored') return { tip: null, tips: [], required: new Set() };
  const initial = change.initialDefaultBranch ?? before?.initialDefaultBranch ?? null;
  const branch = change.defaultBranch ?? before?.defaultBranch ?? initial ?? FALLBACK_DEFAULT_BRANCH;
  const ref = `refs/heads/${branch}`;
  const isIncomplete = before?.incomplete === true;
  const storedRefs = isIncomplete ? await stored.refs(change.id, null) : new Map<string, RefValue>();
  const values = new Map<string, RefValue | null>([...storedRefs, ...change.refs]);
  const required = new Set<ObjectId>();
  for (const [name, value] of values) {
    if (value !== null && isListed(name)) required.add(value.peeled ?? value.id);
  }
  const tips = isIncomplete ? [...new Set([...change.tips, ...required])] : [...change.tips];
  const moved = values.get(ref);
  if (moved !== undefined) return { tip: moved?.id ?? null, tips, required };
  const sameBranch = before !== null && branch === branchOf(before);
  if (sameBranch && !isIncomplete) return { tip: before.orderedTip, tips, required };
  const found = await stored.refs(change.id, ref);
  return { tip: found.get(ref)?.id ?? null, tips, required };
}

function branchOf(head: Head): string {
  return head.defaultBranch ?? head.initialDefaultBranch ?? FALLBACK_DEFAULT_BRANCH;
}

async function readGit(
  { stored, bounds, memory }: PlanContext,
  reader: HistoryReader,
  about: { readonly change: RepositoryChange; readonly before: Head | null; readonly wanted: Wanted },
): Promise<{ readonly commits: NewCommits; readonly order: OrderChange }> {
  const { change, before, wanted } = about;
  // The previous tip of a branch has a row: in the usual push no other commit must be looked up.
  const withRow = before === null || before.incomplete ? new Set<ObjectId>() : change.previousTips;
  const known = async (ids: readonly ObjectId[]): Promise<ReadonlySet<ObjectId>> => {
    const unsure = ids.filter((id) => !withRow.has(id));
    const found = await stored.known(change.id, unsure);
    return unsure.length === ids.length ? found : new Set([...found, ...ids.filter((id) => withRow.has(id))]);
  };
  const commits = await findNewCommits({
    reader,
    known,
    tips: wanted.tips,
    required: wanted.required,
    commitsMax: bounds.newCommits,
    memory: memory.share(),
    storedTips: async () => {
      const refs = await stored.refs(change.id, null);
      const tips = [...refs].flatMap(([name, value]) => (isListed(name) ? [value.peeled ?? value.id] : []));
      return [...(await known(tips))];
    },
  });
  const order = await orderChange({
    reader,
    oldTip: before?.orderedTip ?? null,
    oldCommits: before?.orderedCommits ?? 0,
    newTip: wanted.tip,
    newCommits: commits.commits.map(orderCommit),
    stored: boundedOrder(stored.order(change.id, before?.orderedCommits ?? 0), bounds.memoryBytes),
    commitsMax: bounds.orderedCommits,
  });
  return { commits, order };
}

/** Returns whether the repository's stream has events after a revision: then a later event says what exists now. */
async function isSuperseded(
  events: Pick<EventStore, 'readStream'>,
  repository: RepositoryId,
  revision: number,
): Promise<boolean> {
  const stream = streamName('repository', repository);
  const [last] = await events.readStream(stream, { direction: 'backwards', limit: 1 });
  return last !== undefined && last.revision > revision;
}
