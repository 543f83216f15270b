/** The sums of what was sent: by account and minute, none lost, none counted twice. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { uuids } from '../../../adapters/node/ids.ts';
import { readEvent } from '../../../core/kernel/decider.ts';
import { streamName } from '../../../core/kernel/envelope.ts';
import { type AccessTokenId, type AccountId, type RepositoryId, timestamp, uuid } from '../../../core/kernel/ids.ts';
import { transferEventKinds } from '../../../core/transfer/events.ts';
import { createTransferMeter } from '../../../core/use-cases/transfer-meter.ts';
import { createTestClock } from '../../support/test-clock.ts';
import { gate, settle, watchLog } from '../../support/watched-log.ts';

const ada: AccountId = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000a');
const bob: AccountId = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000b');
const token: AccessTokenId = uuid('0190f3e2-7c1a-7b4e-9a35-0000000000f1');
const repository: RepositoryId = uuid('0190f3e2-7c1a-7b4e-9a35-0000000000f2');
const other: RepositoryId = uuid('0190f3e2-7c1a-7b4e-9a35-0000000000f3');

function started() {
  const log = watchLog();
  const clock = createTestClock(timestamp('2026-11-30T23:59:50.000Z'));
  const meter = createTransferMeter({ events: log, clock, ids: uuids }, 'node1');
  const send = (sentBytes: number, more: { readonly account?: AccountId; readonly repository?: RepositoryId } = {}) =>
    meter.add({ account: ada, token, repository, sentBytes, ...more });
  const recordedOf = async (account: AccountId) => {
    const events = await log.readStream(streamName('transfer', `${account}-node1`), {
      direction: 'forwards',
      limit: 100,
    });
    return events.map((event) => ({ ...readEvent(transferEventKinds, event).data, occurredAt: event.occurredAt }));
  };
  const sums = async (account: AccountId) => (await recordedOf(account)).map(({ sent_bytes }) => sent_bytes);
  return { log, clock, meter, send, recordedOf, sums };
}

describe('The transfer of an account', () => {
  test('is one event a minute, with its sums by token and repository', async () => {
    const { meter, send, recordedOf } = started();
    send(10);
    send(5);
    send(7, { repository: other });
    assert.equal(meter.unflushedBytes(ada), 22);
    await meter.flush();
    assert.deepEqual(await recordedOf(ada), [
      {
        minute: '2026-11-30T23:59:00.000Z',
        sent_bytes: 22,
        by_token: [
          { token_id: token, repository_id: repository, reads: 2, sent_bytes: 15 },
          { token_id: token, repository_id: other, reads: 1, sent_bytes: 7 },
        ],
        occurredAt: '2026-11-30T23:59:50.000Z',
      },
    ]);
    assert.equal(meter.unflushedBytes(ada), 0);
  });

  test('counts in the minute, and so the month, it was sent in, not that of the flush', async () => {
    const { clock, meter, send, recordedOf } = started();
    send(10);
    clock.advance(20_000);
    send(1);
    await meter.flush();
    const minutes = (await recordedOf(ada)).map(({ minute, sent_bytes }) => [minute, sent_bytes]);
    assert.deepEqual(minutes, [
      ['2026-11-30T23:59:00.000Z', 10],
      ['2026-12-01T00:00:00.000Z', 1],
    ]);
  });

  test('is kept apart from that of others, and nothing sent is no event', async () => {
    const { log, meter, send, sums } = started();
    await meter.flush();
    assert.equal(log.counts.appends, 0);
    send(1);
    send(2, { account: bob });
    await meter.flush();
    await meter.flush();
    assert.deepEqual([await sums(ada), await sums(bob), log.counts.appends], [[1], [2], 2]);
  });

  test('goes on in one stream', async () => {
    const { meter, send, sums } = started();
    for (const bytes of [1, 2, 3]) {
      send(bytes);
      await meter.flush();
    }
    assert.deepEqual(await sums(ada), [1, 2, 3]);
    assert.equal(meter.flushes(), 3);
  });

  test('goes on where a process of the same name ended', async () => {
    const { log, clock, meter, send, sums } = started();
    send(1);
    await meter.flush();
    const again = createTransferMeter({ events: log, clock, ids: uuids }, 'node1');
    again.add({ account: ada, token, repository, sentBytes: 2 });
    await again.flush();
    assert.deepEqual(await sums(ada), [1, 2]);
  });

  test('never happens before what happened, whatever the clock says', async () => {
    const { clock, meter, send, recordedOf } = started();
    send(1);
    await meter.flush();
    clock.set(timestamp('2026-11-30T12:00:00.000Z'));
    send(2);
    await meter.flush();
    const [first, second] = await recordedOf(ada);
    assert.equal(second?.occurredAt, first?.occurredAt);
    assert.equal(second?.minute, '2026-11-30T12:00:00.000Z');
  });

  test('names at most a thousand pairs, and counts all', async () => {
    const { meter, send, recordedOf } = started();
    for (let n = 0; n < 1_001; n += 1) send(1, { repository: uuids.next<RepositoryId>() });
    await meter.flush();
    const [recorded] = await recordedOf(ada);
    assert.deepEqual([recorded?.by_token.length, recorded?.sent_bytes], [1_000, 1_001]);
  });
});

describe('A flush that fails', () => {
  test('loses nothing: the sums count as unflushed and come with the next', async () => {
    const { log, meter, send, sums } = started();
    send(10);
    log.on.append = () => {
      throw new Error('outage');
    };
    await assert.rejects(
      meter.flush(),
      (error: unknown) => error instanceof AggregateError && /outage/.test(String(error.errors)),
    );
    assert.equal(meter.unflushedBytes(ada), 10);
    send(5);
    await assert.rejects(meter.flush());
    assert.equal(meter.unflushedBytes(ada), 15);
    log.on.append = undefined;
    await meter.flush();
    await meter.flush();
    assert.deepEqual(await sums(ada), [10, 5]);
    assert.equal(meter.unflushedBytes(ada), 0);
  });

  test('after its append counts nothing twice', async () => {
    const { log, meter, send, sums } = started();
    send(10);
    log.on.appended = () => {
      throw new Error('the answer was lost');
    };
    await assert.rejects(meter.flush());
    assert.equal(meter.unflushedBytes(ada), 10, 'it is not known to be in the log');
    log.on.appended = undefined;
    send(5);
    await meter.flush();
    await meter.flush();
    assert.deepEqual(await sums(ada), [10, 5]);
  });

  test('for one account does not hold up the others', async () => {
    const { log, meter, send, sums } = started();
    send(1);
    send(2, { account: bob });
    log.on.append = ({ stream }) => {
      if (stream.includes(ada)) throw new Error('outage');
    };
    await assert.rejects(meter.flush());
    assert.deepEqual([await sums(ada), await sums(bob)], [[], [2]]);
  });
});

describe('Flushes at once', () => {
  test('follow each other, and what comes meanwhile is in the next', async () => {
    const { log, meter, send, sums } = started();
    send(1);
    const append = gate();
    log.on.append = () => append.passed;
    const first = meter.flush();
    await settle();
    send(2);
    assert.equal(meter.unflushedBytes(ada), 3, 'what is on its way counts');
    const second = meter.flush();
    append.open();
    await Promise.all([first, second]);
    assert.deepEqual(await sums(ada), [1, 2]);
  });
});
