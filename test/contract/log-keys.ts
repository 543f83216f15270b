/** The contract of the store of core/ports/log-keys.ts, run on every adapter. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { LogKey, LogKeys } from '../../core/ports/log-keys.ts';
import type { Ending } from '../support/cleanup.ts';

export function logKey(generation: number, name = 'strata.example'): LogKey {
  return { generation, name, publicKey: '1f'.repeat(32), privateKey: `secret of ${generation}`, revokes: null };
}

export function logKeysContract(adapter: string, open: (context: Ending) => Promise<LogKeys>): void {
  describe(`log keys on ${adapter}`, () => {
    test('come back as they were added, the oldest first', async (context) => {
      const store = await open(context);
      assert.deepEqual(await store.list(), []);
      for (const generation of [2, 1, 3]) assert.equal(await store.add(logKey(generation)), true);
      assert.deepEqual(await store.list(), [logKey(1), logKey(2), logKey(3)]);
    });

    test('come back with the key that they revoke', async (context) => {
      const store = await open(context);
      const keys = [logKey(1), { ...logKey(2), revokes: 1 }];
      for (const key of keys) await store.add(key);
      assert.deepEqual(await store.list(), keys);
    });

    test('hold one key of a generation, though 20 nodes add theirs at the same time', async (context) => {
      const store = await open(context);
      const keys = Array.from({ length: 20 }, (_, node) => logKey(1, `node-${node}`));
      const added = await Promise.all(keys.map((key) => store.add(key)));
      assert.equal(added.filter(Boolean).length, 1);
      assert.deepEqual(await store.list(), [keys[added.indexOf(true)]]);
    });
  });
}
