/**
 * The embedded workflow engine for tests: timers and leader election on a real PostgreSQL, with the test's log and
 * clock.
 */
import type { TestContext } from 'vitest';
import { pause } from '../../adapters/node/pause.ts';
import { createPostgresLead } from '../../adapters/postgres/lead.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { type CarriedOutWorkflow, onStreams, type Timers } from '../../core/ports/workflows.ts';
import { createTimersProjection } from '../../projections/workflow-timers/apply.ts';
import { createTimers } from '../../projections/workflow-timers/queries.ts';
import { startEmbeddedEngine } from '../../workflows/embedded/engine.ts';
import type { OpenWorkflows, Worker } from '../contract/workflows.ts';
import { cleanUp } from './cleanup.ts';
import { killable } from './killable-steps.ts';
import { keepLog } from './log.ts';
import { createMemoryEventStore } from './memory/event-store.ts';
import { testDatabase } from './postgres.ts';
import { startRunner, until } from './read-models.ts';
import { createTestClock } from './test-clock.ts';

/** Opens an empty database, an empty log and workers that run one workflow. */
export async function openEmbedded(context: TestContext): Promise<OpenWorkflows> {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const events = createMemoryEventStore();
  const clock = createTestClock();
  const newPool = () => {
    const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
    cleanUp(context, async () => {
      if (!pool.ended) await pool.end();
    });
    return pool;
  };
  const observer = newPool();
  let timers: Timers | null = null;
  let name = '';

  async function start(workflows: readonly CarriedOutWorkflow[]): Promise<Worker> {
    const pool = newPool();
    const projection = createTimersProjection(onStreams(workflows.map(({ workflow }) => workflow)));
    const { runner } = await startRunner(context, { events, database: pool, models: [projection] });
    const own = createTimers({ database: pool, projection, runner });
    timers = own;
    name = workflows[0]?.workflow.name ?? '';
    const dead = new AbortController();
    const stop = startEmbeddedEngine({
      workflows: workflows.map((carriedOut) => killable(carriedOut, dead.signal)),
      ...{ events, timers: own, clock, alarm: clock },
      lead: createPostgresLead({ pool, pause, log: keepLog(), intervalMs: 20 }),
      onFault: () => undefined,
    });
    const end = async (): Promise<void> => {
      dead.abort();
      await stop();
    };
    cleanUp(context, end);
    return { stop, kill: end };
  }

  async function caughtUp(): Promise<Timers> {
    if (timers === null) throw new TypeError('No worker was started');
    await timers.caughtUp(await events.head());
    return timers;
  }

  return {
    events,
    clock,
    start,
    clockFollowed: async () => undefined,
    waitsUntil: async (at) => {
      await until(async () => {
        const first = await (await caughtUp()).earliest(name, 1);
        return first[0]?.dueAt === at && clock.awaited().includes(at);
      });
    },
    waitsForNothing: async () => {
      await until(async () => (await (await caughtUp()).earliest(name, 1)).length === 0);
      await until(() => clock.awaited().length === 0);
    },
    crashServer: async () => {
      await observer.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()`,
      );
    },
  };
}
