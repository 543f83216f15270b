/** One-time codes against RFC 6238, and against an app that was written apart. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createOneTimeCodes } from '../../../adapters/otp/one-time-codes.ts';
import { plusMs, timestamp } from '../../../core/kernel/ids.ts';
import { codeAt, stepAt } from '../../support/totp-app.ts';

const codes = createOneTimeCodes({ issuer: 'Strata (git.example.org)' });
const NOW = timestamp('2026-11-21T10:00:15.000Z');
/** `12345678901234567890`, the key of RFC 6238, appendix B. */
const RFC_SEED = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ';

describe('One-time codes', () => {
  test('are those of RFC 6238, cut to six digits', () => {
    for (const [at, code, step] of [
      ['1970-01-01T00:00:59.000Z', '287082', 1],
      ['2005-03-18T01:58:29.000Z', '081804', 37_037_036],
      ['2009-02-13T23:31:30.000Z', '005924', 41_152_263],
      ['2033-05-18T03:33:20.000Z', '279037', 66_666_666],
    ] as const) {
      assert.equal(codes.stepOf(RFC_SEED, code, timestamp(at)), step);
      assert.equal(codeAt(RFC_SEED, timestamp(at)), code);
    }
  });

  test('are accepted one step early or late, with the step that they belong to, and no further', () => {
    const seed = codes.newSeed();
    for (const later of [-1, 0, 1])
      assert.equal(codes.stepOf(seed, codeAt(seed, NOW, later), NOW), stepAt(NOW) + later, String(later));
    for (const later of [-2, 2]) assert.equal(codes.stepOf(seed, codeAt(seed, NOW, later), NOW), null, String(later));
    assert.equal(codes.stepOf(seed, codeAt(seed, NOW), plusMs(NOW, 60_000)), null);
  });

  test('of one key do not work for another', () => {
    const [mine, theirs] = [codes.newSeed(), codes.newSeed()];
    assert.notEqual(mine, theirs);
    assert.equal(codes.stepOf(mine, codeAt(theirs, NOW), NOW), null);
  });

  // The attack: text that the library's comparison throws for, and forms that it could read as a number.
  test('are six digits and nothing else', () => {
    const seed = codes.newSeed();
    const code = codeAt(seed, NOW);
    const wide = [...code].map((digit) => String.fromCodePoint(0xff10 + Number(digit))).join('');
    for (const text of ['', '12345', `${code}0`, ` ${code}`, `${code}\n`, wide, '12345é', '🔑🔑🔑', '0x1234', '-12345'])
      assert.equal(codes.stepOf(seed, text, NOW), null, JSON.stringify(text));
  });

  test('have keys of 160 bits, and addresses that an app reads, whatever the names hold', () => {
    const seed = codes.newSeed();
    assert.match(seed, /^[A-Z2-7]{32}$/);
    const url = new URL(codes.enrolmentUrl(seed, 'ada'));
    assert.equal(url.protocol, 'otpauth:');
    assert.equal(decodeURIComponent(url.pathname), '/Strata (git.example.org):ada');
    const { issuer, secret, algorithm, digits, period } = Object.fromEntries(url.searchParams);
    assert.deepEqual([issuer, secret, algorithm], ['Strata (git.example.org)', seed, 'SHA1']);
    assert.deepEqual([digits, period], ['6', '30']);
  });
});
