/** The contract of core/ports/passkey-challenges.ts, run on every adapter. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { plusMs, timestamp } from '../../core/kernel/ids.ts';
import { PASSKEY_CHALLENGE_SPAN_MS, PASSKEY_CHALLENGES_MAX } from '../../core/kernel/limits.ts';
import type { PasskeyChallenge, PasskeyChallenges } from '../../core/ports/passkey-challenges.ts';
import type { Ending } from '../support/cleanup.ts';
import { newAccount } from '../support/events.ts';

const NOW = timestamp('2026-11-21T10:00:00.000Z');
const END = plusMs(NOW, PASSKEY_CHALLENGE_SPAN_MS);
const TIMES = { now: NOW, expiresAt: END };

export function passkeyChallengesContract(name: string, open: (context: Ending) => Promise<PasskeyChallenges>): void {
  const sign = (challenge: string, account = newAccount()): PasskeyChallenge => ({
    ...{ account, purpose: 'sign-in', challenge },
  });

  describe(`the challenges of passkeys on ${name}`, () => {
    // The attack: one signature, stolen or raced, is answered to the same challenge on two nodes.
    test('are taken once, also when 20 requests race', async (context) => {
      const challenges = await open(context);
      const one = sign('one');
      await challenges.put(one, TIMES);
      const taken = await Promise.all(Array.from({ length: 20 }, () => challenges.take(one, NOW)));
      assert.equal(taken.filter(Boolean).length, 1);
      assert.equal(await challenges.take(one, NOW), false);
    });

    // The attack: a challenge of another account, or of another form, is answered.
    test('are taken only for the account and the purpose that they were made for', async (context) => {
      const challenges = await open(context);
      const one = sign('one');
      await challenges.put(one, TIMES);
      assert.equal(await challenges.take({ ...one, account: newAccount() }, NOW), false);
      assert.equal(await challenges.take({ ...one, purpose: 'enrolment' }, NOW), false);
      assert.equal(await challenges.take({ ...one, challenge: 'two' }, NOW), false);
      assert.equal(await challenges.take(one, NOW), true);
    });

    test('are forgotten with an erased account, and those of others are not', async (context) => {
      const challenges = await open(context);
      const [own, other] = [sign('own'), sign('other')];
      await challenges.put(own, TIMES);
      await challenges.put(other, TIMES);
      await challenges.forgetAccount(own.account);
      assert.equal(await challenges.take(own, NOW), false);
      assert.equal(await challenges.take(other, NOW), true);
    });

    test('are taken until their time is over', async (context) => {
      const challenges = await open(context);
      const [early, late] = [sign('early'), sign('late')];
      await challenges.put(early, TIMES);
      await challenges.put(late, TIMES);
      assert.equal(await challenges.take(early, plusMs(END, -1)), true);
      assert.equal(await challenges.take(late, END), false);
    });

    // The attack: a page that is loaded again and again fills the table.
    test('are as many as the limit allows for an account: one more replaces the oldest', async (context) => {
      const challenges = await open(context);
      const account = newAccount();
      const other = sign('other');
      await challenges.put(other, TIMES);
      for (let n = 0; n <= PASSKEY_CHALLENGES_MAX; n += 1) {
        const at = { now: plusMs(NOW, n), expiresAt: plusMs(END, n) };
        await challenges.put(sign(String(n), account), at);
      }
      assert.equal(await challenges.take(sign('0', account), NOW), false);
      for (let n = 1; n <= PASSKEY_CHALLENGES_MAX; n += 1)
        assert.equal(await challenges.take(sign(String(n), account), NOW), true, String(n));
      assert.equal(await challenges.take(other, NOW), true);
    });
  });
}
