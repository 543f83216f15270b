/** The contract of core/ports/refused-exchanges.ts, run on every adapter. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { uuids } from '../../adapters/node/ids.ts';
import { plusMs, type TrustRuleId, timestamp } from '../../core/kernel/ids.ts';
import { REFUSED_EXCHANGE_KEPT_MS, REFUSED_EXCHANGES_MAX } from '../../core/kernel/limits.ts';
import type { RefusedExchange, RefusedExchanges } from '../../core/ports/refused-exchanges.ts';
import type { Ending } from '../support/cleanup.ts';
import { newAccount } from '../support/events.ts';

const NOW = timestamp('2026-11-21T10:00:00.000Z');

export function refusedExchangesContract(name: string, open: (context: Ending) => Promise<RefusedExchanges>): void {
  const newRule = (): TrustRuleId => uuids.next<TrustRuleId>();
  const mismatch = (rule: TrustRuleId, found: string | null): RefusedExchange => ({
    ...{ rule, fault: 'claim-mismatch', claim: 'sub', found },
  });

  describe(`refused exchanges on ${name}`, () => {
    test('are listed newest first, equal ones as one with a count', async (context) => {
      const refused = await open(context);
      const [account, rule] = [newAccount(), newRule()];
      const expired: RefusedExchange = { rule, fault: 'expired', claim: null, found: null };
      await refused.note(account, [expired], NOW);
      await refused.note(account, [mismatch(rule, 'a')], plusMs(NOW, 1));
      await refused.note(account, [expired], plusMs(NOW, 2));
      await refused.note(account, [mismatch(rule, null)], plusMs(NOW, 3));
      await refused.note(account, [], plusMs(NOW, 4));
      assert.deepEqual(await refused.list(account, rule), [
        { ...mismatch(rule, null), times: 1, firstAt: plusMs(NOW, 3), lastAt: plusMs(NOW, 3) },
        { ...expired, times: 2, firstAt: NOW, lastAt: plusMs(NOW, 2) },
        { ...mismatch(rule, 'a'), times: 1, firstAt: plusMs(NOW, 1), lastAt: plusMs(NOW, 1) },
      ]);
      assert.deepEqual(await refused.list(newAccount(), rule), [], "another account's are not seen");
    });

    // The attack: a stranger sends tokens with endless different claims.
    test('of a rule are as many as the limit allows: the oldest give way', async (context) => {
      const refused = await open(context);
      const [account, rule, other] = [newAccount(), newRule(), newRule()];
      for (let n = 0; n < REFUSED_EXCHANGES_MAX; n += 1) {
        await refused.note(account, [mismatch(rule, String(n)), mismatch(other, 'same')], plusMs(NOW, n));
      }
      assert.equal((await refused.list(account, rule)).at(-1)?.found, '0', 'at the limit');
      await refused.note(account, [mismatch(rule, 'new')], plusMs(NOW, 1_000));
      const kept = await refused.list(account, rule);
      assert.deepEqual([kept.length, kept[0]?.found, kept.at(-1)?.found], [REFUSED_EXCHANGES_MAX, 'new', '1']);
      assert.equal((await refused.list(account, other))[0]?.times, REFUSED_EXCHANGES_MAX);
    });

    test('are bounded and counted exactly when 30 requests race', async (context) => {
      const refused = await open(context);
      const [account, rule] = [newAccount(), newRule()];
      await Promise.all(Array.from({ length: 30 }, (_, n) => refused.note(account, [mismatch(rule, String(n))], NOW)));
      assert.equal((await refused.list(account, rule)).length, REFUSED_EXCHANGES_MAX);
      const again = newRule();
      await Promise.all(Array.from({ length: 30 }, () => refused.note(account, [mismatch(again, 'x')], NOW)));
      assert.equal((await refused.list(account, again))[0]?.times, 30);
    });

    test('are removed with their rule, with their account, and when they are old', async (context) => {
      const refused = await open(context);
      const [account, rule, other] = [newAccount(), newRule(), newRule()];
      const note = () => refused.note(account, [mismatch(rule, 'a'), mismatch(other, 'a')], NOW);
      await note();
      await refused.remove(account, rule);
      assert.deepEqual(
        [(await refused.list(account, rule)).length, (await refused.list(account, other)).length],
        [0, 1],
      );
      await note();
      await refused.remove(account, null);
      assert.deepEqual(
        [(await refused.list(account, rule)).length, (await refused.list(account, other)).length],
        [0, 0],
      );
      await note();
      const stranger = newAccount();
      await refused.note(stranger, [mismatch(newRule(), 'a')], plusMs(NOW, REFUSED_EXCHANGE_KEPT_MS));
      assert.equal((await refused.list(account, rule)).length, 1);
      await refused.note(stranger, [mismatch(newRule(), 'a')], plusMs(NOW, REFUSED_EXCHANGE_KEPT_MS + 1));
      assert.equal((await refused.list(account, rule)).length, 0);
    });
  });
}
