/** A read model with a log that it was not built from: it is never served, and a rebuild replaces it. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { LOG_START, type RecordedEvent, streamName } from '../../../core/kernel/envelope.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { appendSome, counting, counts, setUp } from '../../support/counting-model.ts';
import { asNew, newEvent } from '../../support/events.ts';
import { withoutStreams } from '../../support/pruned-log.ts';
import { Appender, createMemoryEventStore, newUuid, startRunner, until, WAIT_MS } from '../../support/read-models.ts';

/** Builds a model from a log of some events, and closes its runner. */
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

describe('a read model with another log', () => {
  test('halts if the same events have other positions, and is correct after a rebuild', async (context) => {
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

  test('halts even if it wants operational events only, but does not halt after these were pruned', async (context) => {
    const { pool, store, append } = await setUp(context);
    const models = [counting({ categories: ['webhookDelivery'] })];
    const delivery = streamName('webhookDelivery', newUuid());
    await append.account('ada');
    await append.append(delivery, newUuid(), 'WebhookDeliveryFailed', {});
    const first = await startRunner(context, { events: store, database: pool, models });
    await first.runner.waitFor(append.last, WAIT_MS);
    await first.runner.close();
    const pruned = withoutStreams(store, new Set([delivery]));
    const second = await startRunner(context, { events: pruned, database: pool, models });
    await append.account('bob');
    await append.append(streamName('webhookDelivery', newUuid()), newUuid(), 'WebhookDeliveryFailed', {});
    await second.runner.waitFor(append.last, WAIT_MS);
    assert.equal(Object.keys(await counts(pool)).length, 2);
    await second.runner.close();
    const other = createMemoryEventStore();
    for (let n = 0; n < 10; n += 1) await new Appender(other).account(`eve${n}`);
    const { log } = await startRunner(context, { events: other, database: pool, models });
    await until(() => log.lines.some(({ message }) => message.includes('halted')));
  });

  test('that is shorter is refused by verification and replaced by a rebuild', async (context) => {
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

  test('continues if an older program wrote its checkpoint without a position', async (context) => {
    const { pool, expected, events } = await builtModel(context);
    await pool.query('ALTER TABLE read_models.checkpoints DROP COLUMN event_position');
    const same = createMemoryEventStore();
    await appendAll(same, events);
    const { runner } = await startRunner(context, { events: same, database: pool, models: [counting()] });
    await runner.waitFor(await same.head(), WAIT_MS);
    assert.deepEqual(await counts(pool), expected);
  });
});
