/** When signing keys sign, are public, and are replaced. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { PUBLIC_KEYS_CACHE_SECONDS } from '../../../../apps/api/handlers/identity.ts';
import { plusMs, type Timestamp, timestamp } from '../../../../core/kernel/ids.ts';
import type { SigningKeySet } from '../../../../core/ports/signing-keys.ts';
import { IDENTITY_TOKEN_SPAN_SECONDS } from '../../../../core/use-cases/issuing/identity-issuer.ts';
import {
  dueFrom,
  publicSets,
  SIGNING_KEYS_LEAD_MS,
  SIGNING_KEYS_OVERLAP_MS,
  SIGNING_KEYS_SPAN_MS,
  signingSet,
} from '../../../../core/use-cases/issuing/key-schedule.ts';
import { SIGNING_KEYS_SHORT_LEAD_MS } from '../../../../core/use-cases/issuing/rotate-signing-keys.ts';
import { SIGNING_KEYS_READ_INTERVAL_MS } from '../../../../core/use-cases/issuing/signing-key-ring.ts';

const NOW = timestamp('2026-11-21T10:00:00.000Z');
const set = (generation: number, signsFrom: Timestamp): SigningKeySet => ({ generation, signsFrom, keys: [] });
const generations = (sets: readonly SigningKeySet[]) => sets.map(({ generation }) => generation);

describe('The schedule of signing keys', () => {
  test('leaves no moment in which a token is signed by a key that a permitted copy of the public keys lacks', () => {
    const cacheMs = PUBLIC_KEYS_CACHE_SECONDS * 1_000;
    assert.ok(SIGNING_KEYS_SHORT_LEAD_MS > cacheMs + SIGNING_KEYS_READ_INTERVAL_MS);
    assert.ok(SIGNING_KEYS_LEAD_MS > SIGNING_KEYS_SHORT_LEAD_MS);
    const tokenMs = IDENTITY_TOKEN_SPAN_SECONDS * 1_000;
    assert.ok(SIGNING_KEYS_OVERLAP_MS > tokenMs + cacheMs + SIGNING_KEYS_READ_INTERVAL_MS);
  });

  test('begins with a set that signs immediately, also on a node whose clock is behind', () => {
    assert.equal(dueFrom([], NOW), NOW);
    const first = set(1, NOW);
    assert.equal(signingSet([], NOW), null);
    assert.equal(signingSet([first], NOW), first);
    assert.equal(signingSet([first], plusMs(NOW, -60_000)), first);
    assert.deepEqual(publicSets([first], plusMs(NOW, -60_000)), [first]);
  });

  test('asks for the next set a day before the newest has signed for 90 days, and not a millisecond earlier', () => {
    const sets = [set(1, NOW)];
    const end = plusMs(NOW, SIGNING_KEYS_SPAN_MS);
    const asks = plusMs(end, -SIGNING_KEYS_LEAD_MS);
    assert.equal(dueFrom(sets, plusMs(asks, -1)), null);
    assert.equal(dueFrom(sets, asks), end);
    // A service that nobody asked for a year still publishes a set for a day before it signs.
    const late = plusMs(end, 365 * 86_400_000);
    assert.equal(dueFrom(sets, late), plusMs(late, SIGNING_KEYS_LEAD_MS));
  });

  test('publishes a set before it signs, and the one before it until its last token has ended everywhere', () => {
    const begins = plusMs(NOW, SIGNING_KEYS_LEAD_MS);
    const sets = [set(1, plusMs(NOW, -SIGNING_KEYS_SPAN_MS)), set(2, begins)];
    const ends = plusMs(begins, SIGNING_KEYS_OVERLAP_MS);
    for (const [at, signing, open] of [
      [NOW, 1, [1, 2]],
      [plusMs(begins, -1), 1, [1, 2]],
      [begins, 2, [1, 2]],
      [plusMs(ends, -1), 2, [1, 2]],
      [ends, 2, [2]],
    ] as const) {
      assert.equal(signingSet(sets, at)?.generation, signing, at);
      assert.deepEqual(generations(publicSets(sets, at)), open, at);
    }
  });

  test('lets a set that an operator added overtake the scheduled one, which then never signs', () => {
    const soon = plusMs(NOW, SIGNING_KEYS_SHORT_LEAD_MS);
    const sets = [set(1, plusMs(NOW, -1)), set(2, plusMs(NOW, SIGNING_KEYS_LEAD_MS)), set(3, soon)];
    assert.equal(signingSet(sets, plusMs(soon, -1))?.generation, 1);
    assert.equal(signingSet(sets, soon)?.generation, 3);
    assert.deepEqual(generations(publicSets(sets, plusMs(soon, SIGNING_KEYS_OVERLAP_MS))), [3]);
    assert.equal(signingSet(sets, plusMs(NOW, 2 * SIGNING_KEYS_LEAD_MS))?.generation, 3);
  });
});
