/** The contract of the store of core/ports/signing-keys.ts, run on every adapter. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { timestamp } from '../../core/kernel/ids.ts';
import type { SigningKeySet, SigningKeys } from '../../core/ports/signing-keys.ts';
import type { Ending } from '../support/cleanup.ts';

const SIGNS_FROM = timestamp('2026-11-21T10:00:00.000Z');

export function keySet(generation: number, name = 'key'): SigningKeySet {
  const key = (algorithm: 'RS256' | 'ES256') => ({
    id: `${name}-${algorithm}`,
    algorithm,
    privateKey: JSON.stringify({ kty: 'x', d: `secret of ${name}` }),
  });
  return { generation, signsFrom: SIGNS_FROM, keys: [key('RS256'), key('ES256')] };
}

export function signingKeysContract(name: string, open: (context: Ending) => Promise<SigningKeys>): void {
  describe(`signing keys on ${name}`, () => {
    test('come back as they were added, the lowest generation first', async (context) => {
      const store = await open(context);
      assert.deepEqual(await store.list(), []);
      for (const generation of [2, 1, 3]) assert.equal(await store.add(keySet(generation)), true);
      assert.deepEqual(await store.list(), [keySet(1), keySet(2), keySet(3)]);
    });

    // The attack: two sets of one generation, so that one node signs with keys that another does not publish.
    test('hold one set of a generation, though 20 nodes add theirs at the same time', async (context) => {
      const store = await open(context);
      const sets = Array.from({ length: 20 }, (_, node) => keySet(1, `node-${node}`));
      const added = await Promise.all(sets.map((set) => store.add(set)));
      assert.equal(added.filter(Boolean).length, 1);
      assert.deepEqual(await store.list(), [sets[added.indexOf(true)]]);
    });

    test('are destroyed below a generation, also twice', async (context) => {
      const store = await open(context);
      for (const generation of [1, 2, 3]) await store.add(keySet(generation));
      await store.removeBelow(3);
      await store.removeBelow(3);
      assert.deepEqual(await store.list(), [keySet(3)]);
    });
  });
}
