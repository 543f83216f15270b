/** The daily sums of operational events: each event is in exactly one of them, whichever process dies. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { uuids } from '../../../../adapters/node/ids.ts';
import { readEvent } from '../../../../core/kernel/decider.ts';
import { LOG_START, streamName } from '../../../../core/kernel/envelope.ts';
import { type AccountId, timestamp } from '../../../../core/kernel/ids.ts';
import type { JsonObject } from '../../../../core/kernel/json.ts';
import type { EventStore } from '../../../../core/ports/event-store.ts';
import { NEWEST_FORMS } from '../../../../core/ports/running-processes.ts';
import { USAGE_READERS_MAX, USAGE_REFUSED_READS_MAX, USAGE_SIGN_INS_MAX } from '../../../../core/usage/daily-sums.ts';
import { detailsOf, type UsageRecorded, usageEventKinds } from '../../../../core/usage/events.ts';
import { recordUsage } from '../../../../core/use-cases/metering/record-usage.ts';
import { createMemoryPolicyMarks } from '../../../support/memory/delivery-store.ts';
import { Appender, newUuid } from '../../../support/read-models.ts';
import { createTestClock } from '../../../support/test-clock.ts';
import { watchLog } from '../../../support/watched-log.ts';

const NEVER = new AbortController().signal;
const FIRST = timestamp('2026-11-21T10:00:00.000Z');
const DAY_MS = 24 * 60 * 60_000;

async function started() {
  const log = watchLog();
  const append = new Appender(log);
  const clock = createTestClock(FIRST);
  const context = {
    events: log as EventStore,
    clock,
    ids: uuids,
    written: NEWEST_FORMS,
    marks: createMemoryPolicyMarks(),
  };
  const account = await append.account('ada');
  const reader = { kind: 'token', id: newUuid() };
  const repository_id = newUuid();
  const read = (sent_bytes: number, one: JsonObject = reader): JsonObject => ({
    ...{ reader: one, repository_id, reads: 1, sent_bytes, received_bytes: 0 },
  });
  const transfer = (
    minute: string,
    by_reader: readonly JsonObject[],
    node = 'node',
    refused_reads: readonly JsonObject[] = [],
  ) =>
    append.append(streamName('transfer', `${account}-${node}`), account, 'TransferRecorded', {
      ...{ minute, by_reader, refused_reads },
      sent_bytes: by_reader.reduce((sum, one) => sum + Number(one['sent_bytes']), 0),
      received_bytes: by_reader.reduce((sum, one) => sum + Number(one['received_bytes']), 0),
    });
  const run = () => recordUsage(context, NEVER);
  const nextDay = async () => {
    clock.advance(DAY_MS);
    append.now = clock.now();
    await run();
  };
  const recordedOf = async (of: AccountId = account, events: EventStore = log): Promise<UsageRecorded['data'][]> => {
    const page = await events.readStream(streamName('usage', of), { direction: 'forwards', limit: 1_000 });
    return page.map((event) => readEvent(usageEventKinds, event).data);
  };
  const sentBytes = async (events?: EventStore) =>
    (await recordedOf(account, events)).flatMap(({ transfer: days }) => days.map(({ sent_bytes }) => sent_bytes));
  return {
    log,
    append,
    clock,
    context,
    account,
    reader,
    repository_id,
    read,
    transfer,
    run,
    nextDay,
    recordedOf,
    sentBytes,
  };
}

describe('The daily sums of an account', () => {
  test('hold what was appended before today, by the day on which it was sent, and name its last event', async () => {
    const { log, append, account, read, transfer, run, nextDay, recordedOf } = await started();
    await transfer('2026-11-20T23:59:00.000Z', [read(5)]);
    await transfer('2026-11-21T10:00:00.000Z', [read(7)]);
    const person = { kind: 'user', id: account };
    await transfer('2026-11-21T10:01:00.000Z', [read(20), { ...read(1, person), received_bytes: 30 }]);
    await transfer('2026-11-21T10:02:00.000Z', [{ ...read(0, person), reads: 0, received_bytes: 4 }]);
    const delivery = streamName('webhookDelivery', newUuid());
    await append.append(delivery, account, 'WebhookDeliveryAttempted', {});
    const signIn = streamName('signIn', `${account}-20261121`);
    await append.append(signIn, account, 'SignInFailed', {
      ...{ factor: 'password', reason: 'password-wrong', user_agent_ref: null },
    });
    await append.append(signIn, account, 'SignedOut', { session_id: 'x' });
    const last = (await log.readAll(LOG_START, 100)).at(-1);
    await run();
    assert.deepEqual(await recordedOf(), [], 'today is not over');
    await nextDay();
    await run();
    assert.deepEqual(await recordedOf(), [
      {
        day: '2026-11-21',
        through: { event_id: last?.id, position: String(last?.position) },
        transfer: [
          { day: '2026-11-20', sent_bytes: 5, received_bytes: 0, by_reader: [read(5)] },
          {
            day: '2026-11-21',
            sent_bytes: 28,
            received_bytes: 34,
            by_reader: [
              { ...read(27), reads: 2 },
              { ...read(1, person), received_bytes: 34 },
            ],
          },
        ],
        ...{ webhook_attempts: 1, sign_in_failures: 1 },
        details: {
          ...{ sign_ins: [], source_address_refs: [], user_agent_refs: [], more_sign_ins: 0, refused_reads: [] },
          failures: [{ factor: 'password', reason: 'password-wrong', count: 1 }],
        },
      },
    ]);
    assert.equal((await log.readAll(LOG_START, 100)).at(-1)?.isRecord, true);
  });

  test('name who signed in and from where, and count what failed by its reason', async () => {
    const { append, account, nextDay, recordedOf } = await started();
    const stream = streamName('signIn', `${account}-20261121`);
    const [address, agent] = ['a'.repeat(64), 'b'.repeat(64)];
    append.sourceAddressRef = address;
    await append.append(stream, account, 'SignedIn', { factors: ['password', 'totp'], user_agent_ref: agent });
    for (const [factor, reason] of [
      ['password', 'password-wrong'],
      ['totp', 'mfa-code-wrong'],
      ['password', 'password-wrong'],
      ['totp', 'mfa-code-used'],
    ]) {
      await append.append(stream, account, 'SignInFailed', {
        factor: `${factor}`,
        reason: `${reason}`,
        user_agent_ref: agent,
      });
    }
    append.written = { versionOf: (type) => (type === 'SignInFailed' ? 1 : NEWEST_FORMS.versionOf(type)) };
    await append.append(stream, account, 'SignInFailed', { factor: 'totp', reason: 'lost', user_agent_ref: agent });
    append.sourceAddressRef = null;
    await nextDay();
    const [recorded] = await recordedOf();
    assert.equal(recorded?.sign_in_failures, 5);
    assert.deepEqual(recorded === undefined ? null : detailsOf(recorded), {
      sign_ins: [{ at: FIRST, factors: ['password', 'totp'], source_address_ref: address, user_agent_ref: agent }],
      ...{ source_address_refs: [address], user_agent_refs: [agent] },
      more_sign_ins: 0,
      failures: [
        { factor: 'password', reason: 'password-wrong', count: 2 },
        { factor: 'totp', reason: 'mfa-code-wrong', count: 1 },
        { factor: 'totp', reason: 'mfa-code-used', count: 1 },
        { factor: 'totp', reason: null, count: 1 },
      ],
      refused_reads: [],
    });
  });

  // The attack: who knows the password signs in very often, or tokens are refused all the time.
  test('name this many sign-ins and refused tokens and no more, and count the rest', async () => {
    const { append, account, transfer, nextDay, recordedOf } = await started();
    const stream = streamName('signIn', `${account}-20261121`);
    for (let n = 0; n < USAGE_SIGN_INS_MAX + 2; n += 1) {
      await append.append(stream, account, 'SignedIn', { factors: ['password'], user_agent_ref: null });
    }
    const refused = (count: number) =>
      Array.from({ length: USAGE_REFUSED_READS_MAX + 1 }, () => ({
        ...{ token_id: newUuid(), reason: 'scope-missing', count },
      }));
    const [first] = refused(1);
    assert.ok(first !== undefined);
    await transfer('2026-11-21T10:00:00.000Z', [], 'node', [first, ...refused(2)]);
    await transfer('2026-11-21T10:01:00.000Z', [], 'node', [
      { ...first, count: 5 },
      { ...first, token_id: null },
    ]);
    await nextDay();
    const [recorded] = await recordedOf();
    const details = recorded === undefined ? null : detailsOf(recorded);
    assert.deepEqual([details?.sign_ins.length, details?.more_sign_ins], [USAGE_SIGN_INS_MAX, 2]);
    assert.equal(details?.refused_reads.length, USAGE_REFUSED_READS_MAX + 1);
    assert.deepEqual(details?.refused_reads[0], { ...first, count: 6 });
    assert.deepEqual(details?.refused_reads.at(-1), { token_id: null, reason: 'scope-missing', count: 5 });
  });

  test('are written without these details while an older process may read them', async () => {
    const { log, append, account, context, clock } = await started();
    const stream = streamName('signIn', `${account}-20261121`);
    await append.append(stream, account, 'SignedIn', { factors: ['password'], user_agent_ref: null });
    clock.advance(DAY_MS);
    const written = { versionOf: (type: string) => (type === 'UsageRecorded' ? 2 : NEWEST_FORMS.versionOf(type)) };
    await recordUsage({ ...context, written }, NEVER);
    const event = (await log.readAll(LOG_START, 100)).at(-1);
    assert.deepEqual([event?.type, event?.version, event?.data['details']], ['UsageRecorded', 2, null]);
    assert.ok(event !== undefined);
    assert.equal(detailsOf(readEvent(usageEventKinds, event).data), null);
  });

  test('hold each event once, a day after the other, and there are none for days without events', async () => {
    const { read, transfer, nextDay, sentBytes, recordedOf } = await started();
    await transfer('2026-11-21T10:00:00.000Z', [read(1)]);
    await nextDay();
    await transfer('2026-11-22T10:00:00.000Z', [read(2)]);
    await nextDay();
    await nextDay();
    await transfer('2026-11-24T10:00:00.000Z', [read(4)]);
    await nextDay();
    assert.deepEqual(await sentBytes(), [1, 2, 4]);
    assert.deepEqual(
      (await recordedOf()).map(({ day }) => day),
      ['2026-11-21', '2026-11-22', '2026-11-24'],
    );
  });

  test('hold each event once when the process dies after any append, or before the mark is saved', async () => {
    const { log, append, read, transfer, nextDay, run, sentBytes, context } = await started();
    const bob = await append.account('bob');
    const ofBob = (bytes: number) =>
      append.append(streamName('transfer', `${bob}-node`), bob, 'TransferRecorded', {
        ...{ minute: FIRST, sent_bytes: bytes, received_bytes: 0, by_reader: [], refused_reads: [] },
      });
    await transfer('2026-11-21T10:00:00.000Z', [read(1)]);
    await ofBob(10);
    let left = 1;
    log.on.append = ({ stream }) => {
      if (stream.startsWith('usage-') && left-- === 0) throw new Error('The process died');
    };
    await assert.rejects(nextDay());
    await transfer('2026-11-22T10:00:00.000Z', [read(2)]);
    log.on.append = undefined;
    const { save } = context.marks;
    context.marks.save = async () => Promise.reject(new Error('The process died'));
    await assert.rejects(run());
    context.marks.save = save;
    await run();
    assert.deepEqual(await sentBytes(), [1]);
    await ofBob(20);
    await nextDay();
    assert.deepEqual(await sentBytes(), [1, 2]);
    const total = (await log.readStream(streamName('usage', bob), { direction: 'forwards', limit: 10 }))
      .flatMap((event) => readEvent(usageEventKinds, event).data.transfer)
      .reduce((sum, { sent_bytes }) => sum + sent_bytes, 0);
    assert.equal(total, 30);
  });

  test('hold each event once when two nodes sum at the same time', async () => {
    const { log, clock, read, transfer, context, sentBytes, nextDay } = await started();
    await transfer('2026-11-21T10:00:00.000Z', [read(1)]);
    clock.advance(DAY_MS);
    let isFirst = true;
    log.on.append = async () => {
      if (!isFirst) return;
      isFirst = false;
      await recordUsage(context, NEVER);
    };
    await recordUsage({ ...context, marks: createMemoryPolicyMarks() }, NEVER);
    log.on.append = undefined;
    assert.deepEqual(await sentBytes(), [1]);
    await nextDay();
    assert.deepEqual(await sentBytes(), [1]);
  });

  test('hold each event once in a log that was imported, where events have other positions and no mark', async () => {
    const { log, append, clock, read, transfer, run, context, sentBytes } = await started();
    await transfer('2026-11-21T10:00:00.000Z', [read(1)]);
    clock.advance(DAY_MS);
    append.now = clock.now();
    // Between the last summed event and the event that sums it.
    await transfer('2026-11-22T10:00:00.000Z', [read(2)]);
    await run();
    assert.deepEqual(await sentBytes(), [1]);
    const imported = watchLog();
    // Something else comes first, so that all positions differ.
    await new Appender(imported).account('eve');
    for (const { stream, revision, ...event } of await log.readAll(LOG_START, 1_000)) {
      await imported.append({ stream, expected: revision === 0 ? 'none' : revision - 1, events: [event] });
    }
    clock.advance(DAY_MS);
    const there = { ...context, events: imported, marks: createMemoryPolicyMarks() };
    await recordUsage(there, NEVER);
    await recordUsage(there, NEVER);
    assert.deepEqual(await sentBytes(imported), [1, 2]);
  });

  test('name this many readers and no more, whose bytes count all the same', async () => {
    const { read, transfer, nextDay, recordedOf } = await started();
    const readers = Array.from({ length: USAGE_READERS_MAX + 1 }, () => read(1, { kind: 'token', id: newUuid() }));
    await transfer('2026-11-21T10:00:00.000Z', readers.slice(0, USAGE_READERS_MAX));
    await nextDay();
    await transfer('2026-11-22T10:00:00.000Z', readers);
    await nextDay();
    assert.deepEqual(
      (await recordedOf()).map(({ transfer: [day] }) => [day?.sent_bytes, day?.by_reader.length]),
      [
        [USAGE_READERS_MAX, USAGE_READERS_MAX],
        [USAGE_READERS_MAX + 1, USAGE_READERS_MAX],
      ],
    );
  });

  test('come in two events where one stretch of the log names more readers than memory has room for', async () => {
    const { read, transfer, clock, context, recordedOf } = await started();
    const readers = Array.from({ length: 9 }, () => read(1, { kind: 'token', id: newUuid() }));
    // The rest of the page is summed with them.
    for (let count = 0; count < 150; count += 1) await transfer('2026-11-21T10:00:00.000Z', readers);
    clock.advance(DAY_MS);
    // The account itself counts as one.
    const bytesWith = async (sumsAtOnceMax: number): Promise<readonly (number | undefined)[]> => {
      const before = (await recordedOf()).length;
      await recordUsage(context, NEVER, sumsAtOnceMax);
      return (await recordedOf()).slice(before).map(({ transfer: [day] }) => day?.sent_bytes);
    };
    const chunks = await bytesWith(10);
    assert.equal(chunks.length, 2);
    assert.equal(
      chunks.reduce((sum: number, bytes) => sum + (bytes ?? 0), 0),
      150 * 9,
    );
    for (let count = 0; count < 150; count += 1) await transfer('2026-11-22T10:00:00.000Z', readers);
    clock.advance(DAY_MS);
    assert.deepEqual(await bytesWith(11), [150 * 9], 'below the bound there is one');
  });
});
