/** The contracts of core/ports/delivery-store.ts and core/ports/policy-marks.ts, run on every adapter. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { type AccountId, type EventId, timestamp, type WebhookDeliveryId } from '../../core/kernel/ids.ts';
import type { DeliveryStore, StoredPayload } from '../../core/ports/delivery-store.ts';
import type { PolicyMarks } from '../../core/ports/policy-marks.ts';
import type { ReadMark } from '../../core/ports/read-mark.ts';
import type { Ending } from '../support/cleanup.ts';
import { newAccount, newId, newStream } from '../support/events.ts';

export interface OpenDeliveryStore {
  readonly store: DeliveryStore;
  readonly marks: PolicyMarks;
}

const EARLIER = timestamp('2026-11-21T09:00:00.000Z');
const LATER = timestamp('2026-11-21T10:00:00.000Z');

export function deliveryStoreContract(name: string, open: (context: Ending) => Promise<OpenDeliveryStore>): void {
  const newDelivery = (): WebhookDeliveryId => newId() as string as WebhookDeliveryId;
  const payload = (account: AccountId, body: string, fields: Partial<StoredPayload> = {}): StoredPayload => ({
    ...{ eventId: newId(), account, body, sha256: `digest of ${body}`, storedAt: LATER },
    ...fields,
  });
  const answer = (
    account: AccountId,
    delivery: WebhookDeliveryId,
    attempt: number,
    body: string,
    storedAt = LATER,
  ) => ({
    ...{ account, delivery, series: 1, attempt, eventId: newId(), body: Buffer.from(body), storedAt },
  });
  const textOf = (bytes: Uint8Array | undefined): string | null =>
    bytes === undefined ? null : Buffer.from(bytes).toString('utf8');

  describe(`the delivery store on ${name}`, () => {
    test('keeps the first payload of an event, whatever is put later, and returns its digest', async (context) => {
      const { store } = await open(context);
      const account = newAccount();
      // A NUL and a lone surrogate, both escaped: texts of users may hold any character.
      const first = payload(account, '{"name":"\\ud800 \\u0000 ü"}');
      const other = payload(account, 'other');
      assert.deepEqual(await store.putPayloads([first, other]), [first.sha256, other.sha256]);
      const again = payload(account, 'another', { eventId: first.eventId });
      const third = payload(account, 'third');
      assert.deepEqual(await store.putPayloads([third, again]), [third.sha256, first.sha256]);
      const unknown: EventId = newId();
      const found = await store.payloads([first.eventId, unknown, third.eventId]);
      assert.equal(found.size, 2);
      assert.deepEqual([found.get(first.eventId), found.get(third.eventId)], [first.body, 'third']);
    });

    test('reports whether it is empty', async (context) => {
      const { store } = await open(context);
      const [ada, bob] = [newAccount(), newAccount()];
      assert.equal(await store.isEmpty(), true);
      await store.putPayloads([payload(ada, 'body')]);
      assert.equal(await store.isEmpty(), false);
      await store.putAnswer(answer(bob, newDelivery(), 1, 'answer'));
      await store.forgetAccount(ada);
      assert.equal(await store.isEmpty(), false);
      await store.forgetAccount(bob);
      assert.equal(await store.isEmpty(), true);
    });

    test('stores one of many payloads put concurrently for one event, and returns its digest', async (context) => {
      const { store } = await open(context);
      const account = newAccount();
      const eventId: EventId = newId();
      const puts = Array.from({ length: 10 }, (_, at) => store.putPayloads([payload(account, `${at}`, { eventId })]));
      const digests = new Set((await Promise.all(puts)).flat());
      assert.equal(digests.size, 1);
      const body = (await store.payloads([eventId])).get(eventId);
      assert.deepEqual([...digests], [`digest of ${body}`]);
    });

    test("keeps the answer of a delivery's last attempt alone, and none if that has none", async (context) => {
      const { store } = await open(context);
      const account = newAccount();
      const [one, two] = [newDelivery(), newDelivery()];
      const kept = async (delivery: WebhookDeliveryId, series: number, attempt: number) =>
        textOf((await store.answers([{ delivery, series, attempt }])).get(delivery));
      for (const attempt of [1, 2]) await store.putAnswer(answer(account, one, attempt, `answer ${attempt}`));
      assert.deepEqual([await kept(one, 1, 1), await kept(one, 1, 2)], [null, 'answer 2']);
      // A process that was slow stores its answer after that of the attempt that followed.
      await store.putAnswer(answer(account, one, 1, 'late'));
      assert.deepEqual([await kept(one, 1, 1), await kept(one, 1, 2)], [null, 'answer 2']);
      await store.putAnswer({ ...answer(account, one, 1, 'again'), series: 2 });
      assert.deepEqual([await kept(one, 1, 2), await kept(one, 2, 1)], [null, 'again']);
      await store.putAnswer(answer(account, two, 1, 'other'));
      await store.putAnswer({ ...answer(account, one, 2, ''), series: 2 });
      assert.deepEqual([await kept(one, 2, 1), await kept(one, 2, 2), await kept(two, 1, 1)], [null, null, 'other']);
    });

    test('counts what the bodies of each account take, and removes the ones that are named', async (context) => {
      const { store } = await open(context);
      const [ada, bob] = [newAccount(), newAccount()];
      const [old, young] = [payload(ada, 'old', { storedAt: EARLIER }), payload(ada, 'young')];
      await store.putPayloads([young, old, payload(bob, 'theirs')]);
      await store.putPayloads([payload(ada, 'never stored', { eventId: old.eventId })]);
      const [one, two] = [newDelivery(), newDelivery()];
      await store.putAnswer(answer(ada, one, 1, 'first'));
      const [second, third] = [answer(ada, one, 2, 'the second'), answer(ada, two, 1, 'third', EARLIER)];
      for (const put of [second, third]) await store.putAnswer(put);
      const beyond = async (payloadBytes: number, answerBytes: number) =>
        (await store.accountsBeyond({ payloadBytes, answerBytes })).filter(({ account }) => account === ada);
      const sums = { account: ada, payloadBytes: 2 * 256 + 8, answerBytes: 2 * 256 + 15 };
      assert.deepEqual(await beyond(sums.payloadBytes, sums.answerBytes), []);
      assert.deepEqual(await beyond(sums.payloadBytes - 1, sums.answerBytes), [sums]);
      assert.deepEqual(await beyond(sums.payloadBytes, sums.answerBytes - 1), [sums]);
      assert.deepEqual(await store.oldest(ada, 'payload', 0, 10), [
        { eventId: old.eventId, delivery: null, bytes: 259, storedAt: EARLIER },
        { eventId: young.eventId, delivery: null, bytes: 261, storedAt: LATER },
      ]);
      assert.deepEqual(await store.oldest(ada, 'answer', 0, 1), [
        { eventId: third.eventId, delivery: two, bytes: 261, storedAt: EARLIER },
      ]);
      assert.deepEqual(
        (await store.oldest(ada, 'answer', 1, 10)).map(({ delivery }) => delivery),
        [one],
      );
      assert.equal(await store.remove([old.eventId], [two, newDelivery()]), 2);
      assert.deepEqual(await beyond(0, 0), [{ account: ada, payloadBytes: 261, answerBytes: 266 }]);
      await store.forgetAccount(ada);
      assert.deepEqual(await beyond(-1, -1), []);
    });

    test('keeps the later answer of an attempt that was made twice, byte for byte', async (context) => {
      const { store } = await open(context);
      const account = newAccount();
      const [one, two] = [newDelivery(), newDelivery()];
      await store.putAnswer(answer(account, one, 1, 'first'));
      await store.putAnswer(answer(account, one, 1, 'again'));
      await store.putAnswer({ ...answer(account, two, 1, ''), body: Uint8Array.of(0, 255, 128) });
      const found = await store.answers([
        { delivery: one, series: 1, attempt: 1 },
        { delivery: two, series: 1, attempt: 1 },
        { delivery: newDelivery(), series: 1, attempt: 1 },
      ]);
      assert.equal(found.size, 2);
      assert.equal(textOf(found.get(one)), 'again');
      assert.deepEqual([...(found.get(two) ?? [])], [0, 255, 128]);
    });

    test('removes old bodies, a bounded number in one call, and all bodies of an account', async (context) => {
      const { store } = await open(context);
      const [ada, bob] = [newAccount(), newAccount()];
      const old = payload(ada, 'old', { storedAt: EARLIER });
      const older = payload(ada, 'older', { storedAt: EARLIER });
      const young = payload(ada, 'young');
      const theirs = payload(bob, 'theirs');
      await store.putPayloads([old, older, young, theirs]);
      const [mine, hers] = [newDelivery(), newDelivery()];
      await store.putAnswer(answer(ada, newDelivery(), 1, 'old', EARLIER));
      await store.putAnswer(answer(ada, mine, 2, 'young'));
      await store.putAnswer(answer(bob, hers, 1, 'theirs'));
      assert.equal(await store.removeBefore(LATER, 1), 2);
      assert.equal(await store.removeBefore(LATER, 1), 1);
      assert.equal(await store.removeBefore(LATER, 1), 0);
      const events = [old, older, young, theirs].map(({ eventId }) => eventId);
      assert.deepEqual([...(await store.payloads(events)).values()].toSorted(), ['theirs', 'young']);
      await store.forgetAccount(ada);
      assert.deepEqual([...(await store.payloads(events)).values()], ['theirs']);
      const left = await store.answers([
        { delivery: mine, series: 1, attempt: 2 },
        { delivery: hers, series: 1, attempt: 1 },
      ]);
      assert.deepEqual([...left.keys()], [hers]);
    });
  });

  describe(`policy marks on ${name}`, () => {
    test('are kept for each policy, and may move back', async (context) => {
      const { marks } = await open(context);
      const mark = (at: bigint): ReadMark => {
        const [position, recordAt] = [at, at - 1n] as [LogPosition, LogPosition];
        return { position, record: { position: recordAt, stream: newStream(), revision: 3, eventId: newId() } };
      };
      assert.equal(await marks.read('one'), null);
      const [first, second, other] = [mark(9n), mark(7n), mark(1n)];
      await marks.save('one', first);
      await marks.save('other', other);
      await marks.save('one', second);
      assert.deepEqual([await marks.read('one'), await marks.read('other')], [second, other]);
    });
  });
}
