/** The forms of entries. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { digest } from '../../../adapters/node/digest.ts';
import { entryHash, entryLine, entryOf, leafOf } from '../../../core/audit/entry.ts';
import { parseVaultRef } from '../../../core/kernel/vault-ref.ts';
import { placedEvents } from '../../support/events.ts';

const [event] = placedEvents(1);
assert.ok(event !== undefined);

test('an entry has twelve members, and its leaf all of them but the sequence', () => {
  const { sequence, ...rest } = entryOf(event, 7);
  assert.equal(sequence, 7);
  assert.deepEqual(rest, leafOf(event));
  assert.equal(Object.keys(rest).length, 11);
  assert.equal(entryHash(digest, event), entryHash(digest, { ...event }));
});

test('a line holds the entry, the hash of its leaf and its openings by their references', () => {
  const leaf = entryHash(digest, event);
  const ref = parseVaultRef('a'.repeat(64));
  assert.ok(ref !== null);
  const opening = { nonce: 'b'.repeat(64), value: 'x' };
  const expected = {
    entry: entryOf(event, 7),
    leaf: Buffer.from(leaf, 'hex').toString('base64'),
    openings: { [ref]: opening },
  };
  assert.deepEqual(entryLine(event, 7, leaf, new Map([[ref, opening]])), expected);
});
