/** The contract of core/ports/notified-pushes.ts. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import type { NotifiedPushesStore } from '../../core/ports/notified-pushes.ts';
import type { Ending } from '../support/cleanup.ts';
import { newUuid } from '../support/read-models.ts';

const at = (position: bigint) => position as LogPosition;

export function notifiedPushesContract(adapter: string, open: (context: Ending) => Promise<NotifiedPushesStore>): void {
  describe(`The pushes that webhooks were notified of, ${adapter}`, () => {
    test('are not known before the first was saved', async (context) => {
      const store = await open(context);
      assert.equal(await store.reachedFor(newUuid()), null);
    });

    test('are known of each account, whose oldest undone push holds up nobody else', async (context) => {
      const store = await open(context);
      const [ada, bob, later] = [newUuid<AccountId>(), newUuid<AccountId>(), newUuid<AccountId>()];
      const reached = at(9_007_199_254_740_993n);
      const undone = new Map([
        [ada, at(7n)],
        [later, at(reached + 5n)],
      ]);
      await store.save({ reached, undone });
      assert.deepEqual(await Promise.all([ada, bob, later].map((one) => store.reachedFor(one))), [
        6n,
        reached,
        reached,
      ]);
      await store.save({ reached: at(10n), undone: new Map() });
      assert.equal(await store.reachedFor(ada), 10n);
    });
  });
}
