/** How large the payloads of one push may be. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { WEBHOOK_PAYLOAD_BYTES_MAX } from '../../../../core/kernel/limits.ts';
import { payloadShare, WEBHOOK_PUSH_PAYLOADS_BYTES_MAX } from '../../../../core/use-cases/webhooks/notify-webhooks.ts';

describe('The payloads of a push', () => {
  test('have their whole size while all of them fit together, and equal shares with one more', () => {
    const fitting = WEBHOOK_PUSH_PAYLOADS_BYTES_MAX / WEBHOOK_PAYLOAD_BYTES_MAX;
    assert.equal(payloadShare(1), WEBHOOK_PAYLOAD_BYTES_MAX);
    assert.equal(payloadShare(fitting), WEBHOOK_PAYLOAD_BYTES_MAX);
    const share = payloadShare(fitting + 1);
    assert.ok(share < WEBHOOK_PAYLOAD_BYTES_MAX);
    const together = (fitting + 1) * share;
    assert.ok(together <= WEBHOOK_PUSH_PAYLOADS_BYTES_MAX);
    assert.ok(together > WEBHOOK_PUSH_PAYLOADS_BYTES_MAX - (fitting + 1), 'no byte of a share is lost');
  });
});
