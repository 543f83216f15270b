/** A read model beside a log that it was not built from: never served, and replaced when it is rebuilt. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { LOG_START, type RecordedEvent, streamName } from '../../../core/kernel/envelope.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { appendSome, counting, counts, setUp } from '../../support/counting-model.ts';
import { asNew, newEvent } from '../../support/events.ts';
import { createMemoryEventStore, newUuid, startRunner, until, WAIT_MS } from '../../support/read-models.ts';

/** A model built from a log of some events, its runner gone. */
async function builtModel(context: TestContext) {
  const { pool, store, append } = await setUp(context);
  const expected = await appendSome(append, 3, 4);
  const { runner } = await startRunner(context, { events: store, database: pool, models: [counting()] });
  await runner.waitFor(append.last, WAIT_MS);
  await runner.close();
  return { pool, expected, events: await store.readAll(LOG_START, 1_000) };
}

async function appendAll(store: EventStore, events: readonly RecordedEvent[]): Promise<void> {
  for (const event of events) {
    const { stream, revision } = event;
    await store.append({ stream, expected: revision === 0 ? 'none' : revision - 1, events: [asNew(event)] });
  }
}

describe('a read model beside another log', () => {
  test('halts where the same events stand at other positions, and is right after a rebuild', async (context) => {
    const { pool, expected, events } = await builtModel(context);
    const moved = createMemoryEventStore();
    await moved.append({ stream: streamName('transfer', newUuid()), expected: 'none', events: [newEvent()] });
    await appendAll(moved, events);
    const { runner, log } = await startRunner(context, { events: moved, database: pool, models: [counting()] });
    await until(() => log.lines.some(({ message }) => message.includes('halted')));
    assert.match(JSON.stringify(log.lines), /built from another copy of this log/);
    await runner.rebuild(null);
    await runner.waitFor(await moved.head(), WAIT_MS);
    assert.deepEqual(await counts(pool), expected);
  });

  test('that is shorter is refused by a verification, and replaced by a rebuild', async (context) => {
    const { pool, events } = await builtModel(context);
    const shorter = createMemoryEventStore();
    await appendAll(shorter, events.slice(0, 5));
    const { runner, log } = await startRunner(context, { events: shorter, database: pool, models: [counting()] });
    await until(() => log.lines.some(({ message }) => message.includes('halted')));
    await assert.rejects(runner.verify(null), /ahead of the log/);
    await runner.rebuild(null);
    await runner.waitFor(await shorter.head(), WAIT_MS);
    const total = Object.values(await counts(pool)).reduce((sum, count) => sum + count, 0);
    assert.equal(total, 5);
  });

  test('is taken on when an older program wrote its checkpoint without a position', async (context) => {
    const { pool, expected, events } = await builtModel(context);
    await pool.query('ALTER TABLE read_models.checkpoints DROP COLUMN event_position');
    const same = createMemoryEventStore();
    await appendAll(same, events);
    const { runner } = await startRunner(context, { events: same, database: pool, models: [counting()] });
    await runner.waitFor(await same.head(), WAIT_MS);
    assert.deepEqual(await counts(pool), expected);
  });
});
