/** Secrets of access tokens, and the checksum by which a scanner recognises one. */
import assert from 'node:assert/strict';
import { crc32 as nodeCrc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { newTokenSecret } from '../../../adapters/node/token-secret.ts';
import { idInSecret } from '../../../core/access-token/exchanged-secret.ts';
import { checksumOf, isSecretForm } from '../../../core/access-token/secret.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** CRC-32 (IEEE 802.3) bit by bit. */
function crc32(text: string): number {
  let crc = 0xffffffff;
  for (const byte of Buffer.from(text)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return (crc ^ 0xffffffff) >>> 0;
}

function valueOf(digits: string): number {
  return [...digits].reduce((value, digit) => value * 62 + BASE62.indexOf(digit), 0);
}

describe("A secret's checksum", () => {
  test('is CRC-32 in base62, padded to six digits', () => {
    // The check value of CRC-32/ISO-HDLC is 0xcbf43926.
    assert.equal(crc32('123456789'), 0xcbf43926);
    assert.equal(checksumOf(nodeCrc32, '123456789'), '3jZRME');
    assert.equal(checksumOf(nodeCrc32, ''), '000000');
    fc.assert(
      fc.property(fc.string(), (text) => {
        const digits = checksumOf(nodeCrc32, text);
        assert.match(digits, /^[0-9A-Za-z]{6}$/);
        assert.equal(valueOf(digits), crc32(text));
      }),
    );
  });
});

test('a text has the form of a secret only with its own checksum', () => {
  for (let n = 0; n < 100; n += 1) {
    const secret = newTokenSecret();
    assert.equal(isSecretForm(nodeCrc32, secret), true);
    for (const at of [7, 46, 47, 52]) {
      const other = secret.charAt(at) === 'a' ? 'b' : 'a';
      assert.equal(isSecretForm(nodeCrc32, `${secret.slice(0, at)}${other}${secret.slice(at + 1)}`), false);
    }
  }
});

describe('A new secret', () => {
  test('is `strata_`, 40 digits and their checksum', () => {
    for (let n = 0; n < 200; n += 1) {
      const [, digits = '', checksum] = /^strata_([0-9A-Za-z]{40})([0-9A-Za-z]{6})$/.exec(newTokenSecret()) ?? [];
      assert.equal(checksum, checksumOf(nodeCrc32, digits));
    }
  });

  test('never looks like that of an exchanged token, for which each request would look first', () => {
    for (let n = 0; n < 5_000; n += 1) assert.equal(idInSecret(newTokenSecret()), null);
  });

  test('is drawn from all digits with equal probability', () => {
    const secrets = Array.from({ length: 2_000 }, () => newTokenSecret().slice('strata_'.length, -6));
    assert.equal(new Set(secrets).size, secrets.length);
    const counts = new Map<string, number>();
    for (const digit of secrets.join('')) counts.set(digit, (counts.get(digit) ?? 0) + 1);
    const expected = (secrets.length * 40) / BASE62.length;
    const chiSquare = BASE62.split('').reduce(
      (sum, digit) => sum + ((counts.get(digit) ?? 0) - expected) ** 2 / expected,
      0,
    );
    // 61 degrees of freedom: one run in ten million exceeds this.
    assert.ok(chiSquare < 135, `chi square ${chiSquare}`);
  });
});
