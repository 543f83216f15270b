/** Keys and signatures of identity tokens. */
import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { describe, test } from 'vitest';
import { createTokenSigning } from '../../../adapters/jose/token-signing.ts';

const signing = createTokenSigning();
const keys = await signing.newKeys();

describe('The keys of identity tokens', () => {
  test('are one for each algorithm, with RSA of 2,048 bits and the curve P-256', () => {
    assert.deepEqual(
      keys.map(({ algorithm, privateKey }) => {
        const { kty, crv, n } = JSON.parse(privateKey);
        return [algorithm, kty, crv ?? Buffer.from(n, 'base64url').length * 8];
      }),
      [
        ['RS256', 'RSA', 2_048],
        ['ES256', 'EC', 'P-256'],
      ],
    );
  });

  // The attack: the public document holds a private member, and everybody signs.
  test('show nothing but their public half', () => {
    assert.deepEqual(
      keys.map((key) => Object.keys(signing.publicKey(key)).toSorted()),
      [
        ['alg', 'e', 'kid', 'kty', 'n', 'use'],
        ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'],
      ],
    );
    for (const key of keys) {
      const { d } = JSON.parse(key.privateKey);
      assert.ok(d.length > 40 && !JSON.stringify(signing.publicKey(key)).includes(d));
    }
  });

  test('sign tokens that others accept under the published key, and not after one byte has changed', async () => {
    const jwks = createLocalJWKSet({ keys: keys.map((key) => ({ kty: '', ...signing.publicKey(key) })) });
    for (const key of keys) {
      const token = await signing.sign(key, { iss: 'https://git.example.org', jti: 'one' });
      const { payload, protectedHeader } = await jwtVerify(token, jwks);
      assert.deepEqual(payload, { iss: 'https://git.example.org', jti: 'one' });
      assert.deepEqual(protectedHeader, { alg: key.algorithm, kid: key.id, typ: 'JWT' });
      const [head = '', body = '', signature = ''] = token.split('.');
      const forged = Buffer.from('{"iss":"https://git.example.org","jti":"two"}').toString('base64url');
      await assert.rejects(jwtVerify(`${head}.${forged}.${signature}`, jwks), /signature verification failed/);
      // The same, checked without the library that signed.
      const checked = verify(
        'sha256',
        Buffer.from(`${head}.${body}`),
        { key: createPublicKey({ key: signing.publicKey(key), format: 'jwk' }), dsaEncoding: 'ieee-p1363' },
        Buffer.from(signature, 'base64url'),
      );
      assert.ok(checked);
    }
  });
});
