/** How far a policy has read the log, and what proves that the log is still the same. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { LOG_START, type LogPosition, type StreamName } from '../../../core/kernel/envelope.ts';
import type { ReadMark } from '../../../core/ports/read-mark.ts';
import { lastRecordOf, markAfter, provenMark } from '../../../core/runtime/read-mark.ts';
import { newEvent, newStream } from '../../support/events.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { withoutStreams } from '../../support/pruned-log.ts';

const PRUNED = newStream('webhookDelivery');

/** Makes a log of events, `r` for a record and `o` for an operational one, and returns it with the mark at its end. */
async function logOf(kinds: string, operational: StreamName = PRUNED) {
  const log = createMemoryEventStore();
  const record = newStream();
  const revisions = new Map<StreamName, number>();
  for (const kind of kinds) {
    const stream = kind === 'r' ? record : operational;
    const before = revisions.get(stream) ?? -1;
    const events = [newEvent({ isRecord: kind === 'r' })];
    await log.append({ stream, expected: before < 0 ? 'none' : before, events });
    revisions.set(stream, before + 1);
  }
  const all = await log.readAll(LOG_START, 100);
  const mark = markAfter(null, await log.head(), lastRecordOf(all));
  return { log, all, mark };
}

function assertMark(mark: ReadMark | null): asserts mark is ReadMark {
  assert.ok(mark !== null);
}

describe('A mark of the log', () => {
  test('holds the position of the last event that was read, and the last record event up to it', async () => {
    const { mark } = await logOf('orroo');
    assertMark(mark);
    assert.deepEqual([mark.position, mark.record.position], [5n, 3n]);
    const later = markAfter(mark, 9n as LogPosition, null);
    assert.deepEqual([later?.position, later?.record], [9n, mark.record]);
  });

  test('is null until a record event was read', async () => {
    assert.equal((await logOf('oo')).mark, null);
  });

  test('is proven even if the operational events are pruned', async () => {
    const { log, mark } = await logOf('oroo');
    assertMark(mark);
    assert.deepEqual(await provenMark(withoutStreams(log, new Set([PRUNED])), mark), mark);
  });

  test('goes back to its record event if the log has lost only operational ones', async () => {
    const { log, all, mark } = await logOf('oroo');
    assertMark(mark);
    const shorter = createMemoryEventStore();
    const revisions = new Map<StreamName, number>();
    for (const event of all.slice(0, 3)) {
      const before = revisions.get(event.stream) ?? -1;
      await shorter.append({ stream: event.stream, expected: before < 0 ? 'none' : before, events: [event] });
      revisions.set(event.stream, before + 1);
    }
    assert.deepEqual(await provenMark(shorter, mark), { position: 2n, record: mark.record });
    assert.deepEqual(await provenMark(log, mark), mark);
  });

  test('is not proven in another log, nor if its record event has another position', async () => {
    const { all, mark } = await logOf('oroo');
    assertMark(mark);
    assert.equal(await provenMark((await logOf('oroo')).log, mark), null);
    const moved = createMemoryEventStore();
    const [, record] = all;
    assert.ok(record !== undefined);
    await moved.append({ stream: record.stream, expected: 'none', events: [record] });
    assert.equal(await provenMark(moved, mark), null);
  });

  test('of an older version, which names an operational event, is proven until it is replaced', async () => {
    const { log, all } = await logOf('ro');
    const [, last] = all;
    assert.ok(last !== undefined);
    const { position, stream, revision, id } = last;
    const old = { position, record: { position, stream, revision, eventId: id } };
    assert.deepEqual(await provenMark(log, old), old);
  });
});
