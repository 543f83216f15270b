/**
 * Gauges that are read when the metrics are made: entities in memory, parked streams, pending and overdue work.
 *
 * Invariants: gauges that show the same answer of the database ask for it once.
 */
import type { GitObjectDatabase } from '../../adapters/git/object-database.ts';
import type { PoolFigures } from '../../adapters/postgres/pool.ts';
import { msBetween, type Timestamp } from '../../core/kernel/ids.ts';
import { type CacheLooks, type CacheSize, type CacheUnit, shownCaches } from '../../core/kernel/shown-caches.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { DueDeliveries } from '../../core/ports/due-deliveries.ts';
import type { OverdueTimers } from '../../core/ports/workflows.ts';
import type { Entities } from '../../core/runtime/entities.ts';
import type { ReadLeases } from '../../core/runtime/read-leases.ts';
import type { ModelFigures } from '../../projections/runner/parking.ts';
import type { NodeClock } from './event-log.ts';
import type { Metrics } from './metrics.ts';
import { createModelLags, type ModelLag } from './model-lag.ts';

export interface GaugesOptions {
  readonly metrics: Pick<Metrics, 'gauge' | 'gauges' | 'gaugesOf' | 'total' | 'totalsOf'>;
  readonly clock: Pick<Clock, 'now' | 'monotonicMs'>;
  readonly entities: Pick<Entities, 'residents' | 'appliedPosition'>;
  readonly objects: Pick<GitObjectDatabase, 'answerFigures' | 'memoryGroupBytesMax'>;
  readonly deliveries: Pick<DueDeliveries, 'backlog'>;
  /** Those of streams and those of rows. */
  readonly timers: readonly OverdueTimers[];
  readonly leases: Pick<ReadLeases, 'figures'>;
  /** Null for a log that does not tell its own time. */
  readonly nodeClock: Pick<NodeClock, 'secondsAhead'> | null;
  /** The pools of connections to PostgreSQL, by name. */
  readonly pools: () => Readonly<Record<string, PoolFigures>>;
  readonly models: {
    readonly names: readonly string[];
    readonly figures: () => Promise<readonly ModelFigures[]>;
    /** Whether positions of the log are numbers of events: without gaps. */
    readonly positionsCount: boolean;
  };
}

export function registerGauges(options: GaugesOptions): void {
  const { metrics, clock, entities, objects, deliveries, timers, leases } = options;
  const ageSeconds = (oldestAt: Timestamp | null): number =>
    oldestAt === null ? 0 : msBetween(oldestAt, clock.now()) / 1_000;
  const overdue = atOnce(() => Promise.all(timers.map((some) => some.overdue(clock.now()))));
  const backlog = atOnce(() => deliveries.backlog());
  metrics.gauge('strata_entities', 'Entities in memory', () => entities.residents().count);
  metrics.gauge('strata_entities_bytes', 'Bytes of entities', () => entities.residents().sizeBytes);
  metrics.gauge('strata_read_lease_held', 'Whether this node answers from memory without asking the log, 0 or 1', () =>
    leases.figures().held ? 1 : 0,
  );
  metrics.gauge(
    'strata_read_lease_waits',
    'Times that an event waited for other nodes to hear of it, since the start',
    () => leases.figures().waits,
  );
  metrics.gauge(
    'strata_read_lease_waited_seconds',
    'For how long events waited for other nodes to hear of them, in all since the start',
    () => leases.figures().waitedMs / 1_000,
  );
  metrics.gauge(
    'strata_git_memory_group_bytes_max',
    'What all git processes may take together by a control group, 0 without one',
    () => objects.memoryGroupBytesMax,
  );
  registerCaches(metrics);
  const answers = objects.answerFigures;
  metrics.gauge('strata_git_answers_kept_bytes', 'Disk of kept answers of git', () => answers().keptBytes);
  metrics.gauge(
    'strata_git_answers_growing_bytes',
    'Disk reserved for answers of git that are being made',
    () => answers().growingBytes,
  );
  metrics.total('strata_git_answers_made_bytes_total', 'Bytes that git made for answers', () => answers().madeBytes);
  metrics.total(
    'strata_git_answers_evicted_bytes_total',
    'Bytes of kept answers of git that were removed to make room',
    () => answers().evictedBytes,
  );
  registerClock(options);
  registerPools(metrics, options.pools);
  registerModels(options);
  metrics.gauge('strata_webhook_deliveries_pending', 'Webhook deliveries that have not ended', async () => {
    return (await backlog()).pending;
  });
  metrics.gauge(
    'strata_webhook_oldest_pending_seconds',
    'Age of the oldest webhook delivery that has not ended, 0 without any',
    async () => {
      return ageSeconds((await backlog()).oldestAt);
    },
  );
  metrics.gauge('strata_workflow_overdue', 'Steps of workflows that should have been carried out by now', async () => {
    return (await overdue()).reduce((sum, { count }) => sum + count, 0);
  });
  metrics.gauge(
    'strata_workflow_oldest_overdue_seconds',
    'How late the oldest overdue step of a workflow is, 0 without any',
    async () => {
      return Math.max(...(await overdue()).map(({ oldestAt }) => ageSeconds(oldestAt)));
    },
  );
}

/** All caches of the process: what each takes, its bound, and how often it had what was looked for. */
function registerCaches(metrics: Pick<Metrics, 'gaugesOf' | 'totalsOf'>): void {
  const sizes = (unit: CacheUnit, size: keyof CacheSize) => () =>
    [...shownCaches()].flatMap(([name, cache]) => (cache.unit === unit ? [[name, cache[size]] as const] : []));
  const looks = (which: keyof CacheLooks) => () =>
    [...shownCaches()].map(([name, cache]) => [name, cache[which]] as const);
  metrics.gaugesOf(
    'strata_kept_bytes',
    'Memory of what is kept in case it is asked for again, by cache',
    'cache',
    sizes('memory', 'taken'),
  );
  metrics.gaugesOf('strata_kept_bytes_max', 'The bound of that memory, by cache', 'cache', sizes('memory', 'max'));
  metrics.gaugesOf(
    'strata_kept_disk_bytes',
    'Disk of what is kept in case it is asked for again, by cache',
    'cache',
    sizes('disk', 'taken'),
  );
  metrics.gaugesOf('strata_kept_disk_bytes_max', 'The bound of that disk, by cache', 'cache', sizes('disk', 'max'));
  metrics.gaugesOf(
    'strata_kept_entries',
    'Entries, or parts of entries, of caches that are bounded by a number, by cache',
    'cache',
    sizes('entries', 'taken'),
  );
  metrics.gaugesOf('strata_kept_entries_max', 'The bound of that number, by cache', 'cache', sizes('entries', 'max'));
  metrics.totalsOf(
    'strata_kept_hits_total',
    'Looks into a cache that found what they looked for, by cache',
    'cache',
    looks('hits'),
  );
  metrics.totalsOf(
    'strata_kept_misses_total',
    'Looks into a cache that did not find it, by cache',
    'cache',
    looks('misses'),
  );
}

function registerModels({ metrics, clock, entities, models }: GaugesOptions): void {
  const lags = createModelLags(clock.monotonicMs);
  const figures = atOnce(async () => {
    // Before the models are read, so that a model which has just applied a new event is not shown as behind.
    const head = entities.appliedPosition();
    const found = await models.figures();
    const seen = found.map(({ name, position }) =>
      position === null ? [] : ([[name, lags.see(name, position, head)]] as const),
    );
    return {
      parkedStreams: found.reduce((sum, { waitingStreams }) => sum + waitingStreams, 0),
      lags: new Map(seen.flat()),
    };
  });
  const reads = (figure: keyof ModelLag): Readonly<Record<string, () => Promise<number>>> =>
    Object.fromEntries(
      models.names.map((name) => [name, async () => (await figures()).lags.get(name)?.[figure] ?? Number.NaN]),
    );
  metrics.gauge('strata_log_position', 'Position of the log up to which this node knows it', () =>
    Number(entities.appliedPosition()),
  );
  metrics.gauge('strata_projection_parked_streams', 'Streams set aside until an operator replays them', async () => {
    return (await figures()).parkedStreams;
  });
  if (models.positionsCount) {
    metrics.gauges(
      'strata_projection_lag_events',
      'Events of the log that a model has not applied, by model; only with the log in PostgreSQL',
      'model',
      reads('positions'),
    );
  }
  metrics.gauges(
    'strata_projection_lag_seconds',
    'For how long a model has lacked an event, since the first scrape that saw the event; by model',
    'model',
    reads('seconds'),
  );
}

function registerClock({ metrics, nodeClock }: GaugesOptions): void {
  if (nodeClock === null) return;
  metrics.gauge(
    'strata_clock_difference_seconds',
    "By how much PostgreSQL's clock is ahead of this node's at least, negative if it is behind; only with the log in PostgreSQL",
    () => nodeClock.secondsAhead(),
  );
}

/** The pools are known when this is called. */
function registerPools(metrics: Pick<Metrics, 'gauges'>, pools: GaugesOptions['pools']): void {
  const names = Object.keys(pools());
  const reads = (figure: keyof PoolFigures): Readonly<Record<string, () => number>> =>
    Object.fromEntries(names.map((name) => [name, () => pools()[name]?.[figure] ?? Number.NaN]));
  metrics.gauges(
    'strata_database_connections_in_use',
    'Connections to PostgreSQL that work, or are lent to work, by pool',
    'pool',
    reads('inUse'),
  );
  metrics.gauges(
    'strata_database_connections_max',
    'How many connections to PostgreSQL a pool may open',
    'pool',
    reads('connectionsMax'),
  );
  metrics.gauges('strata_database_waiting', 'Calls that wait for a connection of a pool', 'pool', reads('waiting'));
}

/** All who call it while it runs share one call. */
function atOnce<Value>(read: () => Promise<Value>): () => Promise<Value> {
  let running: Promise<Value> | null = null;
  return () => {
    running ??= read().finally(() => {
      running = null;
    });
    return running;
  };
}
