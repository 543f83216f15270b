/** Numbers of JSON that JavaScript rounds. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { inexactMembers } from '../../../adapters/jose/exact-numbers.ts';

const isExact = (number: string): boolean => !inexactMembers(`{"n":${number}}`).has('n');

describe('a number in JSON', () => {
  test('is exact if it is held as it is written, in any form', () => {
    for (const number of [
      ...['0', '0.0', '0e400', '1', '-1', '10', '1.0', '1.50', '1e2', '1E+2', '100e-2', '0.1', '-0.25', '1e21'],
      ...['9007199254740991', '-9007199254740991', '9007199254740992', '9007199254740994', '1e308', '5e-324'],
      ...['0.30000000000000004', '1700000000.123'],
    ]) {
      assert.ok(isExact(number), number);
    }
  });

  test('is not exact if it is rounded, or is zero with a sign', () => {
    for (const number of [
      ...['9007199254740993', '-9007199254740993', '9007199254740993.0', '9007199254740993e0', '90071992547409930e-1'],
      ...['12345678901234567890', '1e400', '-1e400', '1e-400', '-0', '-0.0', '-0e5', '1.00000000000000001'],
      ...['0.1000000000000000055', '0.99999999999999999', `1${'0'.repeat(400)}`, '1e99999999999999999999'],
    ]) {
      assert.ok(!isExact(number), number);
    }
  });

  test('is exact in the form in which JavaScript writes it, but for a zero with a sign', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        assert.equal(isExact(Object.is(value, -0) ? '-0' : JSON.stringify(value)), !Object.is(value, -0));
      }),
    );
  });

  test('counts for the object that it is a member of', () => {
    const text = '{"a":{"b":1e400},"c":[1e400],"b":1,"__proto__":-0,"":-0,"d":"1e400","e":1e400,"e":2}';
    assert.deepEqual([...inexactMembers(text)].sort(), ['', '__proto__']);
  });

  // The attack: 12 KiB of digits for which a careless pattern takes seconds.
  test('is compared in no time', () => {
    const begun = performance.now();
    for (const number of [`0.${'0'.repeat(12_000)}1`, `1${'0'.repeat(12_000)}1`, `1.${'0'.repeat(12_000)}`])
      isExact(number);
    assert.ok(performance.now() - begun < 200);
  });
});
