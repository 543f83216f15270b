/** Codes and secrets of device logins. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { newDeviceSecret, newUserCode } from '../../../adapters/node/device-codes.ts';

test('a user code is four letters without vowels, and four digits', () => {
  const codes = Array.from({ length: 2_000 }, newUserCode);
  assert.ok(codes.every((code) => /^[B-DF-HJ-NP-TV-XZ]{4}-\d{4}$/.test(code)));
  assert.ok(new Set(codes).size >= 1_998);
  assert.equal(new Set(codes.join('').replaceAll('-', '')).size, 30, 'every letter and digit comes up');
});

test('a device secret needs no escaping in a query, and no two are equal', () => {
  const secrets = Array.from({ length: 1_000 }, newDeviceSecret);
  assert.ok(secrets.every((secret) => secret.length === 43 && encodeURIComponent(secret) === secret));
  assert.equal(new Set(secrets).size, 1_000);
});
