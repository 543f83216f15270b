/**
 * Works out, before the transaction, what a batch means for one repository: reads Git and the stored rows.
 *
 * Must stay true: nothing is written here. Objects that are missing because a later event replaced them do not
 * stop the model: the repository is marked incomplete until that event comes.
 */
import { AppendList } from '../../core/kernel/append-list.ts';
import { streamName } from '../../core/kernel/envelope.ts';
import type { ObjectId, RepositoryId } from '../../core/kernel/ids.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { CommittedObjects, Layer, ObjectDatabase } from '../../core/ports/object-database.ts';
import { FALLBACK_DEFAULT_BRANCH } from '../../core/repository/state.ts';
import { StreamFault } from '../runner/faults.ts';
import { orderCommit } from './entry.ts';
import { isListed, type RefValue, type RepositoryChange } from './fold.ts';
import { GitFault, type HistoryReader, isMissing, mayPass, withReader } from './git-reading.ts';
import { findNewCommits, MissingCommits, type NewCommits, TooManyCommits } from './new-commits.ts';
import { type OrderChange, orderChange } from './order.ts';
import type { Head, StoredHistory } from './stored.ts';

export interface PlanContext {
  readonly objects: Pick<ObjectDatabase, 'open'>;
  readonly events: Pick<EventStore, 'readStream'>;
  readonly stored: StoredHistory;
  /** What is longer is not read while other repositories wait; null: everything is. */
  readonly bounds: { readonly newCommits: number; readonly orderedCommits: number } | null;
}

/** What is stored of a repository before the batch. */
export interface Base {
  readonly head: Head | null;
  readonly layers: AppendList<Layer>;
}

export const NO_BASE: Base = { head: null, layers: AppendList.from([]) };

export interface RepositoryPlan {
  readonly change: RepositoryChange;
  readonly before: Head | null;
  readonly after: Head;
  readonly commits: NewCommits;
  readonly order: OrderChange;
  readonly committed: CommittedObjects & { readonly layers: AppendList<Layer> };
}

const NO_COMMITS: NewCommits = { commits: [], walk: null };

export async function planRepository(
  context: PlanContext,
  change: RepositoryChange,
  { head: before, layers }: Base,
): Promise<RepositoryPlan> {
  const revision = change.revision ?? before?.revision ?? -1;
  const wanted = await wantedTips(context.stored, change, before);
  const committed = committedObjects(change, layers, revision);
  const after: Head = {
    accountId: change.accountId,
    initialDefaultBranch: change.initialDefaultBranch ?? before?.initialDefaultBranch ?? null,
    defaultBranch: change.defaultBranch ?? before?.defaultBranch ?? null,
    revision,
    orderedTip: wanted.tip,
    orderedCommits: before?.orderedCommits ?? 0,
    incomplete: false,
  };
  const oldTip = before?.orderedTip ?? null;
  const plan = { change, before, committed };
  if (wanted.tips.length === 0 && (wanted.tip === oldTip || wanted.tip === null)) {
    const order: OrderChange = wanted.tip === oldTip ? { kind: 'keep' } : { kind: 'replace', kept: 0, ids: [] };
    return { ...plan, order, after: counted(after, order), commits: NO_COMMITS };
  }
  try {
    return await withReader(context.objects, committed, async (reader) => {
      const { commits, order } = await readGit(context, reader, { change, before, wanted });
      return { ...plan, commits, order, after: counted(after, order) };
    });
  } catch (error) {
    const gone = error instanceof MissingCommits || isMissing(error);
    if (!gone || !(await isSuperseded(context.events, change.id, revision))) throw faultOf(change, error);
    const standing = { orderedTip: oldTip, incomplete: true };
    return { ...plan, order: { kind: 'keep' }, commits: NO_COMMITS, after: { ...after, ...standing } };
  }
}

/** What concerns this repository alone, said to be so. */
function faultOf({ id, accountId, revision }: RepositoryChange, error: unknown): unknown {
  const stream = revision === null ? streamName('account', accountId) : streamName('repository', id);
  const cause = { cause: error };
  if (error instanceof TooManyCommits) return new StreamFault(stream, 'soon', error.message, cause);
  if (error instanceof MissingCommits) return new StreamFault(stream, 'later', error.message, cause);
  if (error instanceof GitFault)
    return new StreamFault(stream, mayPass(error) ? 'later' : 'asked', error.message, cause);
  return error;
}

function counted(after: Head, order: OrderChange): Head {
  return order.kind === 'keep' ? after : { ...after, orderedCommits: order.kept + order.ids.length };
}

interface Wanted {
  /** The default branch's tip after the batch. */
  readonly tip: ObjectId | null;
  /** Where listed refs point to at any time in the batch; for an incomplete repository, all of them. */
  readonly tips: readonly ObjectId[];
  /** Those that refs still point to at its end. */
  readonly required: ReadonlySet<ObjectId>;
}

async function wantedTips(stored: StoredHistory, change: RepositoryChange, before: Head | null): Promise<Wanted> {
  const initial = change.initialDefaultBranch ?? before?.initialDefaultBranch ?? null;
  const branch = change.defaultBranch ?? before?.defaultBranch ?? initial ?? FALLBACK_DEFAULT_BRANCH;
  const ref = `refs/heads/${branch}`;
  const isIncomplete = before?.incomplete === true;
  const standing = isIncomplete ? await stored.refs(change.id, null) : new Map<string, RefValue>();
  const values = new Map<string, RefValue | null>([...standing, ...change.refs]);
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

function committedObjects(
  change: RepositoryChange,
  before: AppendList<Layer>,
  revision: number,
): RepositoryPlan['committed'] {
  let layers = before;
  for (const layer of change.layers) layers = layers.append(layer);
  // No event removes layers yet, so the shrink epoch never moves (architecture, invariant 3).
  return { repository: change.id, revision, shrinkEpoch: 0, layers };
}

async function readGit(
  { stored, bounds }: PlanContext,
  reader: HistoryReader,
  about: { readonly change: RepositoryChange; readonly before: Head | null; readonly wanted: Wanted },
): Promise<{ readonly commits: NewCommits; readonly order: OrderChange }> {
  const { change, before, wanted } = about;
  // Where a branch stood before has its row: in the usual push that is all there is to ask.
  const standing = before === null || before.incomplete ? new Set<ObjectId>() : change.left;
  const known = async (ids: readonly ObjectId[]): Promise<ReadonlySet<ObjectId>> => {
    const asked = ids.filter((id) => !standing.has(id));
    const found = await stored.known(change.id, asked);
    return asked.length === ids.length ? found : new Set([...found, ...ids.filter((id) => standing.has(id))]);
  };
  const commits = await findNewCommits({
    ...{ reader, known, tips: wanted.tips, required: wanted.required, commitsMax: bounds?.newCommits ?? null },
    standing: async () => {
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
    brought: commits.commits.map(orderCommit),
    stored: stored.order(change.id, before?.orderedCommits ?? 0),
    commitsMax: bounds?.orderedCommits ?? null,
  });
  return { commits, order };
}

/** Whether the repository's stream goes on after a revision: then a later event says what is there now. */
async function isSuperseded(
  events: Pick<EventStore, 'readStream'>,
  repository: RepositoryId,
  revision: number,
): Promise<boolean> {
  const stream = streamName('repository', repository);
  const [last] = await events.readStream(stream, { direction: 'backwards', limit: 1 });
  return last !== undefined && last.revision > revision;
}
