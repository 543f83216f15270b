/** How many deliveries of an account may be pending, and with how many left its pushes are expanded again. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import {
  createPendingRoom,
  PENDING_BOUNDS,
  WEBHOOK_PENDING_DELIVERIES_MAX,
  WEBHOOK_PENDING_DELIVERIES_RESUMED,
} from '../../../../core/use-cases/webhooks/pending-delivery-limit.ts';
import { newAccount } from '../../../support/events.ts';

/** Room for the deliveries of accounts, where the read model has this many. */
function roomWith(model: { pending: number }) {
  const pendingOfAccount = async (_: unknown, limit: number): Promise<number> => Math.min(model.pending, limit);
  return createPendingRoom({ deliveriesCaughtUp: async () => undefined, pendingOfAccount }, PENDING_BOUNDS);
}

describe('Pending deliveries of an account', () => {
  test('may be as many as the limit, and not one more, as the read model or the room itself counts', async () => {
    const account = newAccount();
    const room = roomWith({ pending: WEBHOOK_PENDING_DELIVERIES_MAX - 2 });
    assert.equal(await room.hasRoom(account, 2), true);
    assert.equal(await room.hasRoom(account, 3), false);
    room.requested(account, 1, LOG_START);
    assert.equal(await room.hasRoom(account, 2), true, 'it reads again, and the model has no more');
    const full = roomWith({ pending: WEBHOOK_PENDING_DELIVERIES_MAX });
    assert.equal(await full.hasRoom(account, 1), false);
  });

  test('let pushes be expanded again when as many are left as the second limit, and not one earlier', async () => {
    const model = { pending: WEBHOOK_PENDING_DELIVERIES_RESUMED + 1 };
    const room = roomWith(model);
    assert.equal(await room.mayResume(newAccount()), false);
    model.pending -= 1;
    assert.equal(await room.mayResume(newAccount()), true);
  });
});
