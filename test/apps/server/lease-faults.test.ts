/** Which part the log names when read leases cannot be renewed. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createLeaseFaults } from '../../../apps/server/lease-faults.ts';
import { EventStoreError } from '../../../core/ports/event-store.ts';
import { keepLog } from '../../support/log.ts';

const ofLog = new EventStoreError('log-unavailable', 'It cannot be reached');
const ofTable = new Error('Connection terminated');

test('the part that is away is named, once a minute', () => {
  const log = keepLog();
  let nowMs = 0;
  const onFault = createLeaseFaults('EventStoreDB', log, () => nowMs);
  for (; nowMs < 60_000; nowMs += 500) onFault(ofLog);
  onFault(ofTable);
  onFault(ofLog);
  const said = log.lines.map(({ message }) => message.replace('Read leases wait for ', ''));
  assert.deepEqual(said, ['EventStoreDB', 'PostgreSQL', 'EventStoreDB']);
});

test('of a log in PostgreSQL PostgreSQL is named', () => {
  const log = keepLog();
  createLeaseFaults('PostgreSQL', log, () => 0)(ofLog);
  assert.deepEqual(
    log.lines.map(({ message }) => message),
    ['Read leases wait for PostgreSQL'],
  );
});
