/** The contracts of core/ports/webhook-budgets.ts and core/ports/waiting-pushes.ts, on every store. */
import assert from 'node:assert/strict';
import { type TestContext, describe, test } from 'vitest';
import { uuids } from '../../adapters/node/ids.ts';
import { type LogPosition, streamName } from '../../core/kernel/envelope.ts';
import { type AccountId, type EventId, timestamp } from '../../core/kernel/ids.ts';
import type { WaitingPushes } from '../../core/ports/waiting-pushes.ts';
import type { WebhookBudgets } from '../../core/ports/webhook-budgets.ts';

export interface BudgetStores {
  readonly budgets: WebhookBudgets;
  readonly waiting: WaitingPushes;
}

const TEN = timestamp('2026-11-21T10:00:00.000Z');
const ELEVEN = timestamp('2026-11-21T11:00:00.000Z');
const TWELVE = timestamp('2026-11-21T12:00:00.000Z');
const HOURS = [TEN, ELEVEN, TWELVE];

/** Declares the suite; `open` is called for each test. */
export function webhookBudgetsContract(store: string, open: (context: TestContext) => Promise<BudgetStores>): void {
  describe(`budgets of webhook deliveries on ${store}`, () => {
    test('are taken from the earliest hours with room, up to the bound of each and not one more', async (context) => {
      const { budgets } = await open(context);
      const account = uuids.next<AccountId>();
      const take = (count: number) => budgets.take(account, { hours: HOURS, count, perHour: 5 });
      assert.deepEqual(await take(4), [{ hour: TEN, first: 0, count: 4 }]);
      assert.deepEqual(await take(1), [{ hour: TEN, first: 4, count: 1 }]);
      assert.deepEqual(await take(6), [
        { hour: ELEVEN, first: 0, count: 5 },
        { hour: TWELVE, first: 0, count: 1 },
      ]);
      assert.equal(await take(5), null, 'takes nothing');
      assert.deepEqual(await take(4), [{ hour: TWELVE, first: 1, count: 4 }]);
      assert.equal(await take(1), null);
    });

    test('are of each account, and forgotten with their hour', async (context) => {
      const { budgets } = await open(context);
      const [one, other] = [uuids.next<AccountId>(), uuids.next<AccountId>()];
      const wanted = { hours: [TEN, ELEVEN], count: 1, perHour: 1 };
      for (const account of [one, other]) assert.deepEqual(await budgets.take(account, wanted), [part(TEN)]);
      await budgets.removeBefore(ELEVEN);
      assert.deepEqual(await budgets.take(one, wanted), [part(TEN)]);
    });

    test('are never exceeded, however many take at once', async (context) => {
      const { budgets } = await open(context);
      const account = uuids.next<AccountId>();
      const taken = await Promise.all(
        Array.from({ length: 20 }, () => budgets.take(account, { hours: HOURS, count: 3, perHour: 10 })),
      );
      const numbers = taken.flatMap((parts) =>
        (parts ?? []).flatMap(({ hour, first, count }) =>
          Array.from({ length: count }, (_, index) => `${hour} ${first + index}`),
        ),
      );
      assert.deepEqual([numbers.length, new Set(numbers).size], [30, 30]);
      assert.equal(taken.filter((parts) => parts === null).length, 10);
    });

    test('that are lowered meanwhile leave full hours as they are', async (context) => {
      const { budgets } = await open(context);
      const account = uuids.next<AccountId>();
      await budgets.take(account, { hours: HOURS, count: 12, perHour: 10 });
      assert.deepEqual(await budgets.take(account, { hours: HOURS, count: 2, perHour: 3 }), [
        { hour: ELEVEN, first: 2, count: 1 },
        { hour: TWELVE, first: 0, count: 1 },
      ]);
    });
  });

  describe(`pushes that wait for room on ${store}`, () => {
    test('are kept in the order of the log, with how far each came, until they are removed', async (context) => {
      const { waiting } = await open(context);
      const [account, other] = [uuids.next<AccountId>(), uuids.next<AccountId>()];
      const [second, first, foreign] = [newPush(account, 20n), newPush(account, 10n), newPush(other, 5n)];
      for (const push of [second, first, foreign]) await waiting.put(push);
      assert.deepEqual(await waiting.earliest(account, 10), [first, second]);
      assert.deepEqual(await waiting.earliest(account, 1), [first]);
      await waiting.put({ ...first, refsDone: 7 });
      await waiting.put(first);
      await waiting.remove(second.id);
      await waiting.remove(second.id);
      assert.deepEqual(await waiting.earliest(account, 10), [{ ...first, refsDone: 7 }]);
      assert.deepEqual((await waiting.accounts()).toSorted(), [account, other].toSorted());
      await waiting.forgetAccount(account);
      assert.deepEqual(await waiting.accounts(), [other]);
      assert.deepEqual(await waiting.earliest(other, 10), [foreign]);
    });
  });
}

const part = (hour: typeof TEN) => ({ hour, first: 0, count: 1 });

function newPush(account: AccountId, position: bigint) {
  const stream = streamName('repository', uuids.next());
  return { id: uuids.next<EventId>(), account, stream, revision: 3, position: position as LogPosition, refsDone: 0 };
}
