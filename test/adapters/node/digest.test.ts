/** Hashes and times of the machine, in the forms that the core needs. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { systemClock } from '../../../adapters/node/clock.ts';
import { digest } from '../../../adapters/node/digest.ts';
import { timestamp } from '../../../core/kernel/ids.ts';

describe('A digest', () => {
  test('is the SHA-256 of the UTF-8 of a text', () => {
    // FIPS 180-4, examples.
    assert.equal(digest.sha256('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    assert.equal(digest.sha256(''), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
    assert.equal(digest.sha256('é'), '4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c');
  });

  test('is compared in full', () => {
    assert.equal(digest.equal('abc', 'abc'), true);
    for (const other of ['abd', 'ab', 'abcd', '']) assert.equal(digest.equal('abc', other), false);
  });
});

describe("The machine's clock", () => {
  test('returns the time as a Timestamp, and a monotonic count of milliseconds', () => {
    const now = systemClock.now();
    assert.equal(timestamp(now), now);
    const before = systemClock.monotonicMs();
    assert.ok(systemClock.monotonicMs() >= before);
  });
});
