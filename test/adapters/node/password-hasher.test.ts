/** Password hashes: their form, what they accept, and hashes made elsewhere. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createPasswordHasher } from '../../../adapters/node/password-hasher.ts';

const hasher = createPasswordHasher();

describe('A password hash', () => {
  test('is a PHC string of argon2id with 19 MiB, two passes and one lane, its salt fresh', async () => {
    const hashes = await Promise.all([hasher.hash('correct horse'), hasher.hash('correct horse')]);
    for (const hash of hashes) {
      assert.match(hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
    }
    assert.notEqual(hashes[0], hashes[1]);
  });

  test('is of its own password alone', async () => {
    const hash = await hasher.hash('correct horse');
    const verdicts = ['correct horse', 'correct horsf', 'Correct horse', 'correct horse ', ''].map((password) =>
      hasher.verify(password, hash),
    );
    assert.deepEqual(await Promise.all(verdicts), [true, false, false, false, false]);
  });

  test('is of a password however its letters are composed', async () => {
    const hash = await hasher.hash('gr\u00f6\u00dfe of letters');
    assert.equal(await hasher.verify('gro\u0308\u00dfe of letters', hash), true);
  });

  test('of the reference implementation is verified by its own parameters', async () => {
    // phc-winner-argon2, src/test.c: password "password", salt "somesalt".
    const reference = '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4';
    assert.equal(await hasher.verify('password', reference), true);
    assert.equal(await hasher.verify('passwore', reference), false);
  });

  test('of another form is an error, not a refusal', async () => {
    for (const hash of ['', 'plain', '$argon2i$v=19$m=256,t=2,p=1$c29tc2FsdA$nf65', '$2b$10$abcdefghijklmnopqrstuv']) {
      await assert.rejects(hasher.verify('password', hash), TypeError);
    }
    await hasher.verify('password', await hasher.hash('password'));
  });
});
