/** Events that arrive one by one and are returned in whole appends. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createAppendAssembler, type LogEntry } from '../../../adapters/eventstoredb/log-entries.ts';
import type { LogPosition, RecordedEvent } from '../../../core/kernel/envelope.ts';
import { placedEvents } from '../../support/events.ts';

const entryOf = (event: RecordedEvent): LogEntry => ({ position: event.position, event, sizeBytes: 1 });
const system: LogEntry = { position: 100n as LogPosition, event: null, sizeBytes: 0 };

/** How many entries the assembler returned after each. */
function returnedAfterEach(entries: readonly LogEntry[]): number[] {
  const appends = createAppendAssembler();
  return entries.map((one) => appends.add(one).length);
}

describe('events that EventStoreDB sends one by one', () => {
  test('are returned with the last one of their append', () => {
    assert.deepEqual(returnedAfterEach(placedEvents(1, 3, 1, 2).map(entryOf)), [1, 0, 0, 3, 1, 0, 2]);
  });

  test('are returned at the end of their append when they begin inside it', () => {
    assert.deepEqual(returnedAfterEach(placedEvents(3, 1).slice(1).map(entryOf)), [0, 2, 1]);
  });

  test('are returned when the log no longer holds the rest of their append', () => {
    const [first, second, third, next] = placedEvents(3, 1).map(entryOf);
    assert.ok(first !== undefined && second !== undefined && third !== undefined && next !== undefined);
    assert.deepEqual(returnedAfterEach([first, second, next]), [0, 0, 3]);
    assert.deepEqual(returnedAfterEach([first, third]), [0, 2]);
    assert.deepEqual(returnedAfterEach([first, system]), [0, 2]);
    assert.deepEqual(returnedAfterEach([first, ...placedEvents(2).map(entryOf)]), [0, 1, 2]);
  });
});
