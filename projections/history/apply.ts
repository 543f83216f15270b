/**
 * The read model of branches and commits: folds repositories' streams into refs, commits and the default branch's
 * order.
 *
 * It is the only read model that reads objects. The event of a push names refs and layers and holds no commit, so the
 * commits come from the layers, which never change: the model is built again from the log and the layers. Branches and
 * commits are a read model because clients ask for them most: one query answers a page, however long the history is,
 * and no repository has to be on the node's disk.
 *
 * Invariants: Git is read before the transaction, except for histories too long to hold in memory, which are read
 * while they are written. The number of statements does not grow with a push's refs or commits.
 */
import { LRUCache } from 'lru-cache';
import { AppendList } from '../../core/kernel/append-list.ts';
import { type RecordedEvent, streamName } from '../../core/kernel/envelope.ts';
import type { ObjectId, RepositoryId, Uuid } from '../../core/kernel/ids.ts';
import { BUCKET_BACKGROUND_REST_MS } from '../../core/kernel/limits.ts';
import { type CountedCache, countedCache } from '../../core/kernel/shown-caches.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { ObjectDatabase } from '../../core/ports/object-database.ts';
import { StreamFault } from '../runner/faults.ts';
import type { Applier, PrepareMode, Projection, Queryable, TableOf, Write } from '../runner/projection.ts';
import { foldBatch, type RepositoryChange, type RepositoryChanges } from './fold.ts';
import { type Base, NO_BASE, planRepository, type RepositoryPlan } from './plan.ts';
import { StoredHistory } from './stored.ts';
import { historyTables } from './table.ts';
import { MemoryBudget, PATIENT_BOUNDS, TURN_BOUNDS, type WorkBounds } from './work-bounds.ts';
import { historyWrite } from './write.ts';

export interface HistoryOptions {
  readonly objects: Pick<ObjectDatabase, 'open'>;
  /**
   * Tells objects that a later event replaced from lost ones, and supplies the stream of a repository that was
   * reopened.
   */
  readonly events: Pick<EventStore, 'readStream'>;
  /** Returns the event with the data that it keeps in other streams (the parts of a wide push). */
  readonly complete: (event: RecordedEvent) => Promise<RecordedEvent>;
  /** The limits of one repository's work while others wait (`turnBounds`) and beside the writer (`patientBounds`). */
  readonly turnBounds?: Partial<WorkBounds>;
  readonly patientBounds?: Partial<WorkBounds>;
}

/**
 * The size of the cache between batches: repositories and their layers, together. Internal: what is not kept is read
 * again.
 */
const CACHED_LAYERS_MAX = 100_000;
/** Buckets of users that took too long a moment ago. */
type SlowBuckets = CountedCache<Uuid, true>;
/** How many of them are remembered. Internal: a forgotten bucket is tried again. */
const SLOW_BUCKETS_MAX = 1_000;
/**
 * Small, because each event may be almost as large as an append may be. Internal: the rest is read in further pages.
 */
const PAGE_EVENTS_MAX = 100;
/** Repositories whose Git data is read concurrently. */
const READ_AT_ONCE = 4;

export function createHistoryProjection(options: HistoryOptions): Projection {
  /** Survives the appliers, which end with each fault. */
  const slowBuckets: SlowBuckets = countedCache(
    'slow_buckets',
    'entries',
    new LRUCache<Uuid, true>({ max: SLOW_BUCKETS_MAX, ttl: BUCKET_BACKGROUND_REST_MS }),
  );
  return {
    name: 'history',
    version: 4,
    categories: ['account', 'repository'],
    tables: historyTables,
    onPoison: 'park',
    weight: ({ data }) => (Array.isArray(data['updates']) ? Math.max(1, data['updates'].length) : 1),
    open: (table) => new HistoryApplier(options, table, slowBuckets),
  };
}

class HistoryApplier implements Applier {
  readonly #options: HistoryOptions;
  readonly #table: TableOf;
  readonly #slowBuckets: SlowBuckets;
  readonly #bases = countedCache(
    'history_bases',
    'entries',
    new LRUCache<RepositoryId, Base>({
      maxSize: CACHED_LAYERS_MAX,
      sizeCalculation: ({ layers }) => 1 + layers.length,
    }),
  );

  constructor(options: HistoryOptions, table: TableOf, slowBuckets: SlowBuckets) {
    this.#options = options;
    this.#slowBuckets = slowBuckets;
    this.#table = table;
  }

  async prepare(events: readonly RecordedEvent[], database: Queryable, { patient }: PrepareMode): Promise<Write> {
    const changes = foldBatch(events);
    if (changes.size === 0) return { lists: [] };
    const stored = new StoredHistory(database, this.#table);
    const removed = [...changes.values()].filter((change) => change.removed !== null);
    const { turnBounds, patientBounds } = this.#options;
    const bounds = patient ? { ...PATIENT_BOUNDS, ...patientBounds } : { ...TURN_BOUNDS, ...turnBounds };
    const staying: RepositoryChange[] = [];
    for (const change of changes.values()) {
      if (change.removed === null)
        staying.push(change.returned === 'reopened' ? await this.#wholeStream(change, patient) : change);
    }
    if (!patient) await refuseLongRemovals(stored, removed, bounds.orderedCommits);
    const ids = staying.map(({ id }) => id);
    const bases = await this.#basesOf(stored, ids);
    const memory = new MemoryBudget(bounds.memoryBytes);
    const context = { ...this.#options, stored, bounds, memory, patient, slowBuckets: this.#slowBuckets };
    const plans: RepositoryPlan[] = [];
    // For a repository that was removed before nothing is stored, and its expiries must not bring it back.
    const known = staying.filter(({ id, onlyExpires }) => !onlyExpires || bases.has(id));
    await stored.askKnown(new Map(known.map((change) => [change.id, unsureTips(change)])));
    for (let at = 0; at < known.length; at += READ_AT_ONCE) {
      const some = known.slice(at, at + READ_AT_ONCE);
      const planned = some.map((change) =>
        planRepository(context, change, baseOf(change, bases.get(change.id) ?? NO_BASE)),
      );
      // Waits until all have settled before throwing one's error, so that none reads on for a batch that has failed.
      for (const settled of await Promise.allSettled(planned)) {
        if (settled.status === 'rejected') throw settled.reason;
        plans.push(settled.value);
      }
    }
    const { spanMs } = bounds;
    const write = historyWrite(this.#table, { removed, plans, objects: this.#options.objects, spanMs });
    const committed = (): void => {
      for (const { id } of removed) this.#bases.delete(id);
      for (const {
        change,
        after,
        committed: { layers },
      } of plans)
        this.#bases.set(change.id, { head: after, layers });
    };
    return { ...write, committed };
  }

  /**
   * Folds the stream of a reopened repository from its start up to the change's revision. Only patient work does so,
   * because the stream may be long; otherwise throws a `StreamFault` that parks it for a replay beside the writer.
   */
  async #wholeStream(change: RepositoryChange, patient: boolean): Promise<RepositoryChange> {
    const { id, accountId, revision } = change;
    const stream = streamName('repository', id);
    if (!patient)
      throw new StreamFault(stream, 'soon', 'The repository was reopened: its stream is read from the start');
    const changes: RepositoryChanges = new Map();
    for (let from = 0; revision !== null && from <= revision; ) {
      const limit = Math.min(PAGE_EVENTS_MAX, revision - from + 1);
      // A page holds whole appends, so it may be longer than its limit.
      const page = await this.#options.events.readStream(stream, { direction: 'forwards', from, limit });
      if (page.length === 0) throw new TypeError(`${stream} ends before revision ${revision}`);
      for (const event of page) {
        if (event.revision <= revision) foldBatch([await this.#options.complete(event)], changes);
      }
      from += page.length;
    }
    const whole = changes.get(id);
    if (whole === undefined) throw new TypeError(`${stream} has no beginning`);
    const { initialDefaultBranch, storageBucketId } = change;
    return { ...whole, accountId, returned: 'reopened', initialDefaultBranch, storageBucketId };
  }

  /** Returns what is stored of each repository, from the cache if this applier wrote or read it before. */
  async #basesOf(stored: StoredHistory, ids: readonly RepositoryId[]): Promise<ReadonlyMap<RepositoryId, Base>> {
    const bases = new Map<RepositoryId, Base>();
    const unknown: RepositoryId[] = [];
    for (const id of ids) {
      const base = this.#bases.get(id);
      if (base === undefined) unknown.push(id);
      else bases.set(id, base);
    }
    if (unknown.length === 0) return bases;
    for (const [id, head] of await stored.heads(unknown)) {
      bases.set(id, { head, layers: AppendList.from(await stored.layers(id)) });
    }
    return bases;
  }
}

/** Returns the tips of which a plan asks whether they are known: the previous tip of a branch is. */
function unsureTips({ tips, previousTips }: RepositoryChange): readonly ObjectId[] {
  return [...tips].filter((id) => !previousTips.has(id));
}

/** Returns the base of a change. Of a repository that returned, only what its account's stream says is kept. */
function baseOf({ returned }: RepositoryChange, base: Base): Base {
  if (returned === null || base.head === null) return base;
  const nothing = { revision: -1, shrinkEpoch: 0, orderedTip: null, orderedCommits: 0, incomplete: false };
  return { ...NO_BASE, head: { ...base.head, ...nothing, defaultBranch: null } };
}

/** Throws for removals of large histories: they, too, would make every other stream wait. */
async function refuseLongRemovals(
  stored: StoredHistory,
  removed: readonly RepositoryChange[],
  commitsMax: number,
): Promise<void> {
  const closed = removed.filter((change) => change.removed === 'closed').map(({ id }) => id);
  if (closed.length === 0) return;
  for (const [id, { orderedCommits }] of await stored.heads(closed)) {
    if (orderedCommits <= commitsMax) continue;
    throw new StreamFault(streamName('repository', id), 'soon', `More than ${commitsMax} commits to remove`);
  }
}
