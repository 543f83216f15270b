/** The sums of bytes sent, by account and minute: no byte is lost or counted twice. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { uuids } from '../../../adapters/node/ids.ts';
import { readEvent } from '../../../core/kernel/decider.ts';
import { LOG_START, streamName } from '../../../core/kernel/envelope.ts';
import { type AccessTokenId, type AccountId, type RepositoryId, timestamp, uuid } from '../../../core/kernel/ids.ts';
import { NEWEST_FORMS } from '../../../core/ports/running-processes.ts';
import { VaultError } from '../../../core/ports/vault.ts';
import { type Reader, type RefusedReadReason, transferEventKinds, transferStream } from '../../../core/usage/events.ts';
import {
  createTransferMeter,
  type MeterContext,
  TRANSFER_ADDRESS_REFS_MAX,
  TRANSFER_ADDRESSES_MAX,
  TRANSFER_REFUSED_READS_MAX,
  type TransferRead,
} from '../../../core/usage/meter.ts';
import { createTestClock } from '../../support/test-clock.ts';
import { gate, settle, watchLog } from '../../support/watched-log.ts';

const ada: AccountId = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000a');
const bob: AccountId = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000b');
const token: Reader = { kind: 'token', id: '0190f3e2-7c1a-7b4e-9a35-0000000000f1' };
const person: Reader = { kind: 'user', id: ada };
const repository: RepositoryId = uuid('0190f3e2-7c1a-7b4e-9a35-0000000000f2');
const other: RepositoryId = uuid('0190f3e2-7c1a-7b4e-9a35-0000000000f3');

function started() {
  const log = watchLog();
  const clock = createTestClock(timestamp('2026-11-30T23:59:50.000Z'));
  const faults: unknown[] = [];
  const vault = { answer: async (address: string): Promise<string | null> => `ref of ${address}`, asked: 0 };
  const context: MeterContext = {
    ...{ events: log, clock, ids: uuids, written: NEWEST_FORMS, onFault: (cause: unknown) => faults.push(cause) },
    sourceAddressRef: async (_account, address) => {
      vault.asked += 1;
      return vault.answer(address);
    },
  };
  const meter = createTransferMeter(context, 'node1');
  const send = (sentBytes: number, more: Partial<Omit<TransferRead, 'sentBytes'>> = {}) =>
    meter.add({ account: ada, reader: token, repository, sentBytes, address: '192.0.2.1', ...more });
  const refuse = (receivedBytes: number, more: { readonly reader?: Reader } = {}) =>
    meter.addRefused({ account: ada, reader: token, repository, receivedBytes, address: '192.0.2.1', ...more });
  const recordedOf = async (account: AccountId) => {
    const all = await log.readAll(LOG_START, 1_000);
    const events = all.filter((event) => event.accountId === account);
    return events.map((event) => ({ ...readEvent(transferEventKinds, event).data, occurredAt: event.occurredAt }));
  };
  /** Returns the bytes in each of the account's streams, by the part of the stream's name after the account. */
  const streamsOf = async (account: AccountId) => {
    const byStream = new Map<string, number[]>();
    for (const event of await log.readAll(LOG_START, 1_000)) {
      const name = event.stream.replace(`transfer-${account}-`, '');
      byStream.set(name, [...(byStream.get(name) ?? []), readEvent(transferEventKinds, event).data.sent_bytes]);
    }
    return Object.fromEntries(byStream);
  };
  const sums = async (account: AccountId) => (await recordedOf(account)).map(({ sent_bytes }) => sent_bytes);
  const addressesOf = async (account: AccountId) =>
    (await recordedOf(account)).map(({ by_reader }) => by_reader.map(({ address_refs }) => address_refs));
  return { log, clock, vault, faults, context, meter, send, refuse, recordedOf, addressesOf, streamsOf, sums };
}

describe('The transfer of an account', () => {
  test('is one event a minute, with its sums by reader and repository', async () => {
    const { meter, send, recordedOf } = started();
    send(10);
    send(5);
    send(7, { repository: other });
    send(3, { reader: person });
    assert.equal(meter.unflushedBytes(ada), 25);
    await meter.flush();
    const refs = ['ref of 192.0.2.1'];
    assert.deepEqual(await recordedOf(ada), [
      {
        minute: '2026-11-30T23:59:00.000Z',
        ...{ sent_bytes: 25, received_bytes: 0 },
        by_reader: [
          { reader: token, repository_id: repository, reads: 2, sent_bytes: 15, received_bytes: 0, address_refs: refs },
          { reader: token, repository_id: other, reads: 1, sent_bytes: 7, received_bytes: 0, address_refs: refs },
          { reader: person, repository_id: repository, reads: 1, sent_bytes: 3, received_bytes: 0, address_refs: refs },
        ],
        refused_reads: [],
        occurredAt: '2026-11-30T23:59:50.000Z',
      },
    ]);
    assert.equal(meter.unflushedBytes(ada), 0);
  });

  test('has the bytes of refused pushes beside those of reads, which alone count as sent', async () => {
    const { meter, send, refuse, recordedOf } = started();
    send(10);
    refuse(70);
    refuse(7);
    refuse(200, { reader: person });
    assert.equal(meter.unflushedBytes(ada), 10);
    await meter.flush();
    const [recorded] = await recordedOf(ada);
    assert.deepEqual([recorded?.sent_bytes, recorded?.received_bytes], [10, 277]);
    assert.deepEqual(
      recorded?.by_reader.map(({ reader, reads, sent_bytes, received_bytes }) => [
        reader,
        reads,
        sent_bytes,
        received_bytes,
      ]),
      [
        [token, 1, 10, 77],
        [person, 0, 0, 200],
      ],
    );
  });

  test('has the refused reads of its tokens by their reason, and names as many tokens as the limit', async () => {
    const { meter, send, recordedOf } = started();
    const id = uuid<AccessTokenId>(token.id);
    const refuseRead = (one: AccessTokenId, reason: RefusedReadReason): void =>
      meter.addRefusedRead({ account: ada, token: one, reason });
    for (const reason of ['scope-missing', 'grant-missing', 'scope-missing'] as const) refuseRead(id, reason);
    for (let n = 0; n < TRANSFER_REFUSED_READS_MAX; n += 1) refuseRead(uuids.next<AccessTokenId>(), 'token-revoked');
    send(10);
    assert.equal(meter.unflushedBytes(ada), 10);
    await meter.flush();
    const [recorded] = await recordedOf(ada);
    assert.equal(recorded?.sent_bytes, 10);
    const refused = recorded?.refused_reads ?? [];
    assert.deepEqual(refused.slice(0, 2), [
      { token_id: id, reason: 'scope-missing', count: 2 },
      { token_id: id, reason: 'grant-missing', count: 1 },
    ]);
    assert.equal(refused.length, TRANSFER_REFUSED_READS_MAX + 1);
    assert.deepEqual(refused.at(-1), { token_id: null, reason: 'token-revoked', count: 2 });
  });

  // The attack: somebody sends all tokens that an account ever had, and asks for what none of them may read.
  test('is one event a minute of bounded length, however many reads of however many tokens were refused', async () => {
    const { meter, recordedOf } = started();
    const reasons: readonly RefusedReadReason[] = ['scope-missing', 'repository-not-found', 'token-expired'];
    const tokens = Array.from({ length: 1_000 }, () => uuids.next<AccessTokenId>());
    for (const reason of reasons) {
      for (const one of tokens)
        for (let n = 0; n < 3; n += 1) meter.addRefusedRead({ account: ada, token: one, reason });
    }
    await meter.flush();
    const recorded = await recordedOf(ada);
    assert.deepEqual(
      recorded.map(({ refused_reads }) => refused_reads.length),
      [TRANSFER_REFUSED_READS_MAX + reasons.length],
    );
    const sum = recorded[0]?.refused_reads.reduce((total, { count }) => total + count, 0);
    assert.equal(sum, 3 * reasons.length * tokens.length);
  });
  test('is an event also where nothing but refused reads happened', async () => {
    const { meter, recordedOf } = started();
    meter.addRefusedRead({ account: ada, token: uuid<AccessTokenId>(token.id), reason: 'rate-exceeded' });
    await meter.flush();
    await meter.flush();
    assert.deepEqual(
      (await recordedOf(ada)).map(({ sent_bytes, by_reader, refused_reads }) => [sent_bytes, by_reader, refused_reads]),
      [[0, [], [{ token_id: token.id, reason: 'rate-exceeded', count: 1 }]]],
    );
  });

  test('is written without refused pushes while an older process may read it', async () => {
    const { log, context, clock } = started();
    const meter = createTransferMeter({ ...context, written: { versionOf: () => 3 } }, 'node1');
    const read = { account: ada, repository, address: '192.0.2.1' };
    meter.add({ ...read, reader: token, sentBytes: 10 });
    meter.addRefused({ ...read, reader: token, receivedBytes: 70 });
    meter.addRefused({ ...read, reader: person, receivedBytes: 200 });
    await meter.flush();
    const [event] = await log.readAll(LOG_START, 10);
    const sum = { reader: token, repository_id: repository, reads: 1, sent_bytes: 10 };
    const by_reader = [{ ...sum, address_refs: ['ref of 192.0.2.1'] }];
    const minute = `${clock.now().slice(0, 16)}:00.000Z`;
    assert.deepEqual([event?.version, event?.data], [3, { minute, sent_bytes: 10, by_reader }]);
  });

  test('counts in the minute, and so the month, in which it was sent, not in that of the flush', async () => {
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

  test('is separate from that of others, and makes no event if nothing was sent', async () => {
    const { log, meter, send, sums } = started();
    await meter.flush();
    assert.equal(log.counts.appends, 0);
    send(1);
    send(2, { account: bob });
    await meter.flush();
    await meter.flush();
    assert.deepEqual([await sums(ada), await sums(bob), log.counts.appends], [[1], [2], 2]);
  });

  test('is in one stream for each day', async () => {
    const { meter, send, sums, streamsOf } = started();
    for (const bytes of [1, 2, 3]) {
      send(bytes);
      await meter.flush();
    }
    assert.deepEqual(await sums(ada), [1, 2, 3]);
    assert.equal(meter.flushes(), 3);
    assert.deepEqual(await streamsOf(ada), { 'node1-20261130': [1, 2, 3] });
  });

  test('starts a stream for each day on which it is appended, so that a day can be pruned whole', async () => {
    const { clock, meter, send, streamsOf } = started();
    send(1);
    await meter.flush();
    send(2);
    clock.advance(20_000);
    send(3);
    await meter.flush();
    send(4);
    await meter.flush();
    assert.deepEqual(await streamsOf(ada), { 'node1-20261130': [1], 'node1-20261201': [2, 3, 4] });
  });

  test('keeps its stream when an append is retried after midnight', async () => {
    const { log, clock, meter, send, streamsOf } = started();
    send(1);
    log.on.appended = () => {
      throw new Error('the answer was lost');
    };
    await assert.rejects(meter.flush());
    log.on.appended = undefined;
    clock.advance(20_000);
    await meter.flush();
    send(2);
    await meter.flush();
    assert.deepEqual(await streamsOf(ada), { 'node1-20261130': [1], 'node1-20261201': [2] });
    assert.equal(meter.unflushedBytes(ada), 0);
  });

  test('does not return to an earlier day, even if the clock goes back', async () => {
    const { clock, meter, send, streamsOf } = started();
    clock.advance(20_000);
    send(1);
    await meter.flush();
    clock.set(timestamp('2026-11-30T12:00:00.000Z'));
    send(2);
    await meter.flush();
    assert.deepEqual(await streamsOf(ada), { 'node1-20261201': [1, 2] });
  });

  test('continues the stream of an earlier process with the same name', async () => {
    const { context, meter, send, sums } = started();
    send(1);
    await meter.flush();
    const again = createTransferMeter(context, 'node1');
    again.add({ account: ada, reader: token, repository, sentBytes: 2, address: '' });
    await again.flush();
    assert.deepEqual(await sums(ada), [1, 2]);
  });

  test('is never earlier than the event before it, even if the clock goes back', async () => {
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

  test('names at most a thousand pairs, and counts the bytes of all', async () => {
    const { meter, send, recordedOf } = started();
    for (let n = 0; n < 1_001; n += 1) send(1, { repository: uuids.next<RepositoryId>() });
    await meter.flush();
    const [recorded] = await recordedOf(ada);
    assert.deepEqual([recorded?.by_reader.length, recorded?.sent_bytes], [1_000, 1_001]);
  });
});

describe('The addresses of an account’s readers', () => {
  test('are named once by each reader and repository, and a read without one counts', async () => {
    const { vault, meter, send, addressesOf, sums } = started();
    for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.1', '']) send(1, { address });
    send(1, { repository: other, address: '192.0.2.2' });
    await meter.flush();
    assert.deepEqual(await addressesOf(ada), [[['ref of 192.0.2.1', 'ref of 192.0.2.2'], ['ref of 192.0.2.2']]]);
    assert.deepEqual([await sums(ada), vault.asked], [[5], 2]);
  });

  // The attack: each request comes from another address of a large network, and each address is a record of the vault.
  test('are fifty in a minute at most, and named a thousand times', async () => {
    const { vault, meter, send, addressesOf, sums } = started();
    const count = async () => (await addressesOf(ada)).map((refs) => refs.flat().length);
    for (let n = 0; n <= TRANSFER_ADDRESSES_MAX; n += 1) send(1, { address: `2001:db8::${n}` });
    await meter.flush();
    assert.deepEqual([await count(), vault.asked], [[TRANSFER_ADDRESSES_MAX], TRANSFER_ADDRESSES_MAX]);
    const repositories = Array.from({ length: 21 }, () => uuids.next<RepositoryId>());
    for (const one of repositories) {
      for (let n = 0; n < TRANSFER_ADDRESSES_MAX; n += 1) send(1, { repository: one, address: `2001:db8::${n}` });
    }
    await meter.flush();
    assert.deepEqual((await count())[1], TRANSFER_ADDRESS_REFS_MAX);
    assert.deepEqual(await sums(ada), [TRANSFER_ADDRESSES_MAX + 1, 21 * TRANSFER_ADDRESSES_MAX]);
  });

  test('wait out an outage of the vault with the bytes, and reads of that time are in a later event', async () => {
    const { log, vault, meter, send, addressesOf, sums } = started();
    send(1);
    const { answer } = vault;
    vault.answer = async () => Promise.reject(new VaultError('vault-unavailable', 'down'));
    await assert.rejects(meter.flush());
    send(2, { address: '192.0.2.2' });
    assert.deepEqual([meter.unflushedBytes(ada), log.counts.appends], [3, 0]);
    vault.answer = answer;
    await meter.flush();
    assert.equal(meter.unflushedBytes(ada), 2);
    await meter.flush();
    assert.deepEqual(await addressesOf(ada), [[['ref of 192.0.2.1']], [['ref of 192.0.2.2']]]);
    assert.deepEqual([await sums(ada), meter.unflushedBytes(ada)], [[1, 2], 0]);
  });

  test('are left out when their record cannot be written or the account is erased, and the bytes count', async () => {
    const { vault, faults, meter, send, addressesOf, sums } = started();
    const tampered = new VaultError('record-tampered', 'changed');
    vault.answer = async (address) => (address === 'a' ? Promise.reject(tampered) : address === 'b' ? null : address);
    for (const address of ['a', 'b', 'c']) send(1, { address });
    await meter.flush();
    assert.deepEqual([await addressesOf(ada), await sums(ada), faults], [[[['c']]], [3], [tampered]]);
  });
});

describe('Transfer events', () => {
  test('of version 1, with sums by token and one stream for all days, can still be read', () => {
    const by_token = [{ token_id: token.id, repository_id: repository, reads: 2, sent_bytes: 15 }];
    const { data } = readEvent(transferEventKinds, {
      stream: streamName('transfer', `${ada}-node1`),
      revision: 0,
      type: 'TransferRecorded',
      version: 1,
      data: { minute: '2026-11-30T23:59:00.000Z', sent_bytes: 15, by_token },
    });
    const counts = { reads: 2, sent_bytes: 15, received_bytes: 0 };
    assert.deepEqual(data, {
      minute: '2026-11-30T23:59:00.000Z',
      sent_bytes: 15,
      received_bytes: 0,
      by_reader: [{ reader: token, repository_id: repository, ...counts, address_refs: [] }],
      refused_reads: [],
    });
  });

  test('are in streams named by account, node and day', () => {
    assert.equal(transferStream(ada, 'node1', timestamp('2026-11-30T23:59:59.999Z')), `transfer-${ada}-node1-20261130`);
  });
});

describe('A flush that fails', () => {
  test('loses nothing: the sums count as unflushed and are appended by the next', async () => {
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

  test('for one account does not delay the others', async () => {
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

describe('Concurrent flushes', () => {
  test('run one after another, and bytes sent in between are in the next', async () => {
    const { log, meter, send, sums } = started();
    send(1);
    const append = gate();
    log.on.append = () => append.passed;
    const first = meter.flush();
    await settle();
    send(2);
    assert.equal(meter.unflushedBytes(ada), 3, 'bytes that are being appended count');
    const second = meter.flush();
    append.open();
    await Promise.all([first, second]);
    assert.deepEqual(await sums(ada), [1, 2]);
  });
});
