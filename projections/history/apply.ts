/**
 * Folds repositories' streams into refs, commits and the default branch's order.
 *
 * Must stay true: Git is read before the transaction, but for histories too long to hold, which are read while
 * they are written; the number of statements does not grow with a push's refs or commits.
 */
import { LRUCache } from 'lru-cache';
import { AppendList } from '../../core/kernel/append-list.ts';
import type { RecordedEvent } from '../../core/kernel/envelope.ts';
import type { RepositoryId } from '../../core/kernel/ids.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { type Layer, type ObjectDatabase, ObjectDatabaseError } from '../../core/ports/object-database.ts';
import type { Applier, Projection, Queryable, TableOf, Write } from '../runner/projection.ts';
import { foldBatch } from './fold.ts';
import { GitFault } from './git-reading.ts';
import { MissingCommits } from './new-commits.ts';
import { planRepository, type RepositoryPlan } from './plan.ts';
import { StoredHistory } from './stored.ts';
import { historyTables } from './table.ts';
import { writeHistory } from './write.ts';

export interface HistoryOptions {
  readonly objects: Pick<ObjectDatabase, 'open'>;
  /** To tell objects that a later event replaced from those that are lost. */
  readonly events: Pick<EventStore, 'readStream'>;
}

/** Layers of repositories kept between batches, summed over all of them. */
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
    isTemporary,
    weight: ({ data }) => (Array.isArray(data['updates']) ? Math.max(1, data['updates'].length) : 1),
    open: (table) => new HistoryApplier(options, table),
  };
}

/** A storage that is away comes back; bytes that are wrong stay so. */
function isTemporary(error: unknown): boolean {
  if (error instanceof MissingCommits) return true;
  if (!(error instanceof GitFault)) return false;
  return !(error.cause instanceof ObjectDatabaseError && error.cause.code === 'layer-corrupt');
}

interface CachedLayers {
  readonly revision: number;
  readonly layers: AppendList<Layer>;
}

class HistoryApplier implements Applier {
  readonly #options: HistoryOptions;
  readonly #table: TableOf;
  readonly #layers = new LRUCache<RepositoryId, CachedLayers>({
    maxSize: CACHED_LAYERS_MAX,
    sizeCalculation: ({ layers }) => Math.max(1, layers.length),
  });

  constructor(options: HistoryOptions, table: TableOf) {
    this.#options = options;
    this.#table = table;
  }

  async prepare(events: readonly RecordedEvent[], database: Queryable): Promise<Write> {
    const changes = foldBatch(events);
    if (changes.size === 0) return async () => undefined;
    const stored = new StoredHistory(database, this.#table);
    const heads = await stored.heads([...changes.keys()]);
    const gone = [...changes.values()].filter((change) => change.gone).map(({ id }) => id);
    const staying = [...changes.values()].filter((change) => !change.gone);
    const context = {
      ...this.#options,
      stored,
      layersOf: (repository: RepositoryId, revision: number) => this.#layersOf(stored, repository, revision),
    };
    const plans: RepositoryPlan[] = [];
    for (let at = 0; at < staying.length; at += READ_AT_ONCE) {
      const some = staying.slice(at, at + READ_AT_ONCE);
      const planned = some.map((change) => planRepository(context, change, heads.get(change.id) ?? null));
      // All settle before one may throw, so that none goes on reading for a batch that was given up.
      for (const settled of await Promise.allSettled(planned)) {
        if (settled.status === 'rejected') throw settled.reason;
        plans.push(settled.value);
      }
    }
    return async (transaction) => {
      await writeHistory(transaction, this.#table, { gone, plans, objects: this.#options.objects });
      for (const id of gone) this.#layers.delete(id);
      for (const { change, after, committed } of plans) this.#keep(change.id, after.revision, committed.layers);
    };
  }

  async #layersOf(stored: StoredHistory, repository: RepositoryId, revision: number): Promise<AppendList<Layer>> {
    const cached = this.#layers.get(repository);
    if (cached !== undefined && cached.revision === revision) return cached.layers;
    return AppendList.from(revision < 0 ? [] : await stored.layers(repository));
  }

  #keep(repository: RepositoryId, revision: number, layers: AppendList<Layer>): void {
    this.#layers.set(repository, { revision, layers });
  }
}
