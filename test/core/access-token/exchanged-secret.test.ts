/** The id in the secret of an exchanged token. */
import assert from 'node:assert/strict';
import { crc32 } from 'node:zlib';
import { describe, test } from 'vitest';
import { uuids } from '../../../adapters/node/ids.ts';
import { newExchangedSecret, newTokenSecret } from '../../../adapters/node/token-secret.ts';
import { digitsOfId, idInSecret } from '../../../core/access-token/exchanged-secret.ts';
import { isSecretForm } from '../../../core/access-token/secret.ts';
import { type AccessTokenId, uuid } from '../../../core/kernel/ids.ts';

describe('The secret of an exchanged token', () => {
  const namespace = uuid('0d0f9c4e-2f5a-5b6e-8a41-7c2d9e6b3f18');

  test('has the form of every secret, and leads to its id', () => {
    for (let n = 0; n < 200; n += 1) {
      const id = uuids.derive<AccessTokenId>(namespace, String(n));
      const secret = newExchangedSecret(id);
      assert.ok(isSecretForm(crc32, secret), secret);
      assert.equal(idInSecret(secret), id);
      assert.notEqual(newExchangedSecret(id), secret, 'the rest is random');
    }
    for (const id of ['00000000-0000-5000-8000-000000000000', 'ffffffff-ffff-5fff-bfff-ffffffffffff']) {
      const digits = digitsOfId(uuid<AccessTokenId>(id));
      assert.equal(digits.length, 22);
      assert.equal(idInSecret(`strata_${digits}${'0'.repeat(24)}`), id);
    }
  });

  test('is hardly ever taken for one of a token that was created', () => {
    let taken = 0;
    for (let n = 0; n < 5_000; n += 1) taken += idInSecret(newTokenSecret()) === null ? 0 : 1;
    assert.ok(taken < 50, `${taken} of 5000; one in 512 is expected`);
    assert.equal(idInSecret(`strata_${'z'.repeat(46)}`), null, 'larger than any id');
    for (const id of ['6f1c1f3e-4c5b-4d0e-9a35-2b8f5f0f7a11', '6f1c1f3e-4c5b-5d0e-ca35-2b8f5f0f7a11']) {
      const digits = digitsOfId(uuid<AccessTokenId>(id));
      assert.equal(idInSecret(`strata_${digits}${'0'.repeat(24)}`), null, 'an id of another version or variant');
    }
  });
});
