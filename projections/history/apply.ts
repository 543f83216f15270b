/**
 * Folds repositories' streams into refs, commits and the default branch's order.
 *
 * Must stay true: Git is read before the transaction, but for histories too long to hold, which are read while
 * they are written; the number of statements does not grow with a push's refs or commits.
 */
import { LRUCache } from 'lru-cache';
import { AppendList } from '../../core/kernel/append-list.ts';
import { type RecordedEvent, streamName } from '../../core/kernel/envelope.ts';
import type { RepositoryId } from '../../core/kernel/ids.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { ObjectDatabase } from '../../core/ports/object-database.ts';
import { StreamFault } from '../runner/faults.ts';
import type { Applier, PrepareMode, Projection, Queryable, TableOf, Write } from '../runner/projection.ts';
import { foldBatch, type RepositoryChange } from './fold.ts';
import { type Base, NO_BASE, planRepository, type RepositoryPlan } from './plan.ts';
import { StoredHistory } from './stored.ts';
import { historyTables } from './table.ts';
import { historyWrite } from './write.ts';

export interface HistoryOptions {
  readonly objects: Pick<ObjectDatabase, 'open'>;
  /** To tell objects that a later event replaced from those that are lost. */
  readonly events: Pick<EventStore, 'readStream'>;
  /** What one repository may take while the others wait; the default is about a second's work. */
  readonly bounds?: { readonly newCommits: number; readonly orderedCommits: number };
}

/** Reading and writing a commit takes about 50 us, ordering one about 10. */
const BOUNDS = { newCommits: 10_000, orderedCommits: 100_000 };
/** Repositories kept between batches, each with its layers. */
const CACHED_LAYERS_MAX = 100_000;
/** Repositories whose Git data is read at a time. */
const READ_AT_ONCE = 4;

export function createHistoryProjection(options: HistoryOptions): Projection {
  return {
    name: 'history',
    version: 1,
    categories: ['account', 'repository'],
    tables: historyTables,
    onPoison: 'park',
    weight: ({ data }) => (Array.isArray(data['updates']) ? Math.max(1, data['updates'].length) : 1),
    open: (table) => new HistoryApplier(options, table),
  };
}

class HistoryApplier implements Applier {
  readonly #options: HistoryOptions;
  readonly #table: TableOf;
  readonly #bases = new LRUCache<RepositoryId, Base>({
    maxSize: CACHED_LAYERS_MAX,
    sizeCalculation: ({ layers }) => 1 + layers.length,
  });

  constructor(options: HistoryOptions, table: TableOf) {
    this.#options = options;
    this.#table = table;
  }

  async prepare(events: readonly RecordedEvent[], database: Queryable, { patient }: PrepareMode): Promise<Write> {
    const changes = foldBatch(events);
    if (changes.size === 0) return { lists: [] };
    const stored = new StoredHistory(database, this.#table);
    const gone = [...changes.values()].filter((change) => change.gone !== null);
    const staying = [...changes.values()].filter((change) => change.gone === null);
    const bounds = patient ? null : (this.#options.bounds ?? BOUNDS);
    if (bounds !== null) await refuseLongRemovals(stored, gone, bounds.orderedCommits);
    const ids = staying.map(({ id }) => id);
    const bases = await this.#basesOf(stored, ids);
    const context = { ...this.#options, stored, bounds };
    const plans: RepositoryPlan[] = [];
    for (let at = 0; at < staying.length; at += READ_AT_ONCE) {
      const some = staying.slice(at, at + READ_AT_ONCE);
      const planned = some.map((change) => planRepository(context, change, bases.get(change.id) ?? NO_BASE));
      // All settle before one may throw, so that none goes on reading for a batch that was given up.
      for (const settled of await Promise.allSettled(planned)) {
        if (settled.status === 'rejected') throw settled.reason;
        plans.push(settled.value);
      }
    }
    const write = historyWrite(this.#table, { gone, plans, objects: this.#options.objects });
    const committed = (): void => {
      for (const { id } of gone) this.#bases.delete(id);
      for (const {
        change,
        after,
        committed: { layers },
      } of plans)
        this.#bases.set(change.id, { head: after, layers });
    };
    return { ...write, committed };
  }

  /** What is stored of each repository, from memory where it was written or read before. */
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

/** Taking a great history away would hold up everybody, too. */
async function refuseLongRemovals(
  stored: StoredHistory,
  gone: readonly RepositoryChange[],
  commitsMax: number,
): Promise<void> {
  const closed = gone.filter((change) => change.gone === 'closed').map(({ id }) => id);
  if (closed.length === 0) return;
  for (const [id, { orderedCommits }] of await stored.heads(closed)) {
    if (orderedCommits <= commitsMax) continue;
    throw new StreamFault(streamName('repository', id), 'soon', `More than ${commitsMax} commits to remove`);
  }
}
