/** Names of streams. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { categoryOf, entityIdOf, streamName } from '../../../core/kernel/envelope.ts';

describe("A stream's name", () => {
  test('is split at its first dash', () => {
    const stream = streamName('transfer', '0190f3e2-7c1a-7b4e-9a35-2b8f5f0f7a11-node1');
    assert.equal(categoryOf(stream), 'transfer');
    assert.equal(entityIdOf(stream), '0190f3e2-7c1a-7b4e-9a35-2b8f5f0f7a11-node1');
  });

  test('has a category of letters and an id', () => {
    for (const [category, id] of [
      ['', 'a'],
      ['two-parts', 'a'],
      ['v1', 'a'],
      ['account', ''],
    ] as const) {
      assert.throws(() => streamName(category, id), TypeError);
    }
  });
});
