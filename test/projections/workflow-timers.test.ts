/** The figures that operators see of timers: how many are overdue, and since when. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createPool } from '../../adapters/postgres/pool.ts';
import { streamName } from '../../core/kernel/envelope.ts';
import { plusMs, type Timestamp, timestamp } from '../../core/kernel/ids.ts';
import type { Workflow } from '../../core/ports/workflows.ts';
import { createTimersProjection } from '../../projections/workflow-timers/apply.ts';
import { createTimers } from '../../projections/workflow-timers/queries.ts';
import { cleanUp } from '../support/cleanup.ts';
import { newEvent, newId } from '../support/events.ts';
import { keepLog } from '../support/log.ts';
import { createMemoryEventStore } from '../support/memory/event-store.ts';
import { testDatabase } from '../support/postgres.ts';
import { startRunner } from '../support/read-models.ts';

const NOW = timestamp('2026-11-21T10:00:00.000Z');

function waiting(name: string, category: string): Workflow<'wake'> {
  return {
    ...{ name, category, version: 1 },
    next: (_wait, { occurredAt }) => ({ step: 'wake', dueAt: plusMs(occurredAt, 8_000), memory: {} }),
  };
}

test('the overdue timers count the due steps of all workflows, and name the earliest due time', async (context) => {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  const events = createMemoryEventStore();
  const projection = createTimersProjection([waiting('alarm', 'alarm'), waiting('nap', 'nap')]);
  const { runner } = await startRunner(context, { events, database: pool, models: [projection] });
  const timers = createTimers({ database: pool, projection, runner });
  const begin = async (category: string, occurredAt: Timestamp): Promise<void> => {
    const stream = streamName(category, newId());
    await events.append({ stream, expected: 'none', events: [newEvent({ type: 'Begun', occurredAt })] });
  };
  await timers.caughtUp(await events.head());
  assert.deepEqual(await timers.overdue(NOW), { count: 0, oldestAt: null });

  await begin('alarm', plusMs(NOW, 1));
  await begin('nap', plusMs(NOW, -1_000));
  await begin('alarm', NOW);
  await timers.caughtUp(await events.head());
  assert.deepEqual(await timers.overdue(plusMs(NOW, 6_999)), { count: 0, oldestAt: null });
  assert.deepEqual(await timers.overdue(plusMs(NOW, 8_000)), { count: 2, oldestAt: plusMs(NOW, 7_000) });
  assert.deepEqual(await timers.overdue(plusMs(NOW, 8_001)), { count: 3, oldestAt: plusMs(NOW, 7_000) });
});
