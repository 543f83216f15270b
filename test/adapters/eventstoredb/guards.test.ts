/** Guards on EventStoreDB, which can append to one stream only: they are read before each attempt and expire soon. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { StreamName } from '../../../core/kernel/envelope.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { newEvent, newStream } from '../../support/events.ts';
import type { AppendFault } from '../../support/eventstoredb/faults.ts';
import { openLog } from '../../support/eventstoredb/open-log.ts';
import type { ProtocolServer } from '../../support/eventstoredb/protocol-server.ts';

async function newToken(store: EventStore): Promise<StreamName> {
  const token = newStream('accessToken');
  await store.append({ stream: token, expected: 'none', events: [newEvent()] });
  return token;
}

function guardedBy(token: StreamName) {
  const guards = [{ stream: token, revision: 0 }];
  return { stream: newStream(), expected: 'none', events: [newEvent()], guards } as const;
}

/** Revokes the token, as another node would, while the first attempt is with the server. Returns the attempts. */
function revokeMeanwhile(server: ProtocolServer, token: StreamName, fault: AppendFault): readonly string[] {
  const attempts: string[] = [];
  server.faults.append = (stream) => {
    attempts.push(stream);
    if (attempts.length > 1) return null;
    const event = { id: crypto.randomUUID(), type: 'Revoked', contentType: 'application/json' };
    server.log.append(token, 0, [{ ...event, data: Buffer.from('{}'), metadata: new Uint8Array() }]);
    return fault;
  };
  return attempts;
}

describe('a guarded append to EventStoreDB', () => {
  test('does not start on guards that were read more than two seconds ago', async (context) => {
    let nowMs = 0;
    const { server, store } = await openLog(context, { nowMs: () => nowMs });
    const token = await newToken(store);
    const tokenReads: number[] = [];
    server.faults.read = (_what, stream) => {
      if (stream !== token) return;
      tokenReads.push(nowMs);
      // The first read takes longer than guards are valid.
      nowMs += tokenReads.length === 1 ? 2_001 : 2_000;
    };
    const appends = server.counts.appends;
    assert.equal((await store.append(guardedBy(token))).outcome, 'appended');
    assert.equal(tokenReads.length, 2);
    assert.equal(server.counts.appends, appends + 1);
  });

  test('is not retried after a guard moved, and its outcome is unknown then', async (context) => {
    const { server, store } = await openLog(context);
    const token = await newToken(store);
    const attempts = revokeMeanwhile(server, token, 'stall');
    await assert.rejects(store.append(guardedBy(token)), { code: 'append-outcome-unknown' });
    assert.equal(attempts.length, 1);
  });

  test('is found when it was committed before a guard moved and its answer was lost', async (context) => {
    const { server, store } = await openLog(context);
    const token = await newToken(store);
    const attempts = revokeMeanwhile(server, token, 'lose-answer');
    const result = await store.append(guardedBy(token));
    assert.deepEqual([result.outcome, attempts.length], ['appended', 1]);
  });

  test('conflicts with a guard that had moved before it was sent', async (context) => {
    const { server, store } = await openLog(context);
    const token = await newToken(store);
    const appends = server.counts.appends;
    const guards = [{ stream: token, revision: 7 }];
    const result = await store.append({ stream: newStream(), expected: 'none', events: [newEvent()], guards });
    assert.deepEqual(result, { outcome: 'conflict', stream: token, actual: 0 });
    assert.equal(server.counts.appends, appends);
  });
});
