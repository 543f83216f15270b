/** Password hashes: their form, which passwords they accept, and hashes of other implementations. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { describe, test } from 'vitest';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { findArgon2id } from '../../../adapters/node/argon2id.ts';
import { createPasswordHasher } from '../../../adapters/node/password-hasher.ts';
import { PASSWORDS_WAITING_MAX } from '../../../core/kernel/limits.ts';

const HASHER = path.join(import.meta.dirname, '../../../adapters/node/password-hasher.ts');
/** Where Node has no argon2, a package makes the same hashes. */
const KINDS = { 'of node:crypto': findArgon2id(), 'of the package': findArgon2id({}) };
/** phc-winner-argon2, src/test.c: of version 0x13. */
const REFERENCES = [
  ['password', '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4'],
  ['password', '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'],
  ['password', '$argon2id$v=19$m=65536,t=1,p=1$c29tZXNhbHQ$9qWtwbpyPd3vm1rB1GThgPzZ3/ydHL92zKL+15XZypg'],
  ['differentpassword', '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$C4TWUs9rDEvq7w3+J4umqA32aWKB1+DSiRuBfYxFj94'],
  ['password', '$argon2id$v=19$m=65536,t=2,p=1$ZGlmZnNhbHQ$vfMrBczELrFdWP0ZsfhWsRPaHppYdP3MVEMIVlqoFBw'],
] as const;

for (const [kind, argon2id] of Object.entries(KINDS))
  describe(`A password hash ${kind}`, () => {
    const hasher = createPasswordHasher(argon2id);

    test('is a PHC string of argon2id with 19 MiB, two passes, one lane and a new salt', async () => {
      const hashes = await Promise.all([hasher.hash('correct horse'), hasher.hash('correct horse')]);
      for (const hash of hashes) {
        assert.match(hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
      }
      assert.notEqual(hashes[0], hashes[1]);
    });

    test('accepts only its own password', async () => {
      const hash = await hasher.hash('correct horse');
      const verdicts = ['correct horse', 'correct horsf', 'Correct horse', 'correct horse ', ''].map((password) =>
        hasher.verify(password, hash),
      );
      assert.deepEqual(await Promise.all(verdicts), [true, false, false, false, false]);
    });

    test('of nobody accepts no password, and costs as much as any other', async () => {
      let runs = 0;
      const counting = createPasswordHasher(async (parameters) => {
        runs += 1;
        assert.deepEqual([parameters.memoryKiB, parameters.passes, parameters.tagLengthBytes], [19_456, 2, 32]);
        return Buffer.alloc(32);
      });
      // Even the tag of that hash, which the stand-in computes for every password, is none.
      assert.equal(await counting.verify('correct horse', null), false);
      assert.equal(runs, 1);
      assert.equal(await hasher.verify('', null), false);
    });

    test('accepts the password in composed and in decomposed letters', async () => {
      const hash = await hasher.hash('gr\u00f6\u00dfe of letters');
      assert.equal(await hasher.verify('gro\u0308\u00dfe of letters', hash), true);
    });

    test('of the reference implementation is verified by its own parameters', async () => {
      for (const [password, reference] of REFERENCES) {
        assert.equal(await hasher.verify(password, reference), true, reference);
        assert.equal(await hasher.verify(`${password}e`, reference), false, reference);
      }
    });

    test('is verified by every other implementation', async () => {
      const hash = await hasher.hash('correct horse');
      for (const other of Object.values(KINDS)) {
        assert.equal(await createPasswordHasher(other).verify('correct horse', hash), true);
        assert.equal(await createPasswordHasher(other).verify('correct horsf', hash), false);
      }
    });

    test('of another form is an error, and not a wrong password', async () => {
      for (const hash of [
        '',
        'plain',
        '$argon2i$v=19$m=256,t=2,p=1$c29tc2FsdA$nf65',
        '$2b$10$abcdefghijklmnopqrstuv',
      ]) {
        await assert.rejects(hasher.verify('password', hash), TypeError);
      }
      await hasher.verify('password', await hasher.hash('password'));
    });
  });

test('a bounded number of passwords is hashed at once, a bounded number waits, and one more is refused without being begun', async () => {
  const running: (() => void)[] = [];
  let begun = 0;
  const hasher = createPasswordHasher(async () => {
    begun += 1;
    await new Promise<void>((resolve) => running.push(resolve));
    return Buffer.alloc(32);
  }, 2);
  const taken = Array.from({ length: PASSWORDS_WAITING_MAX + 2 }, () => hasher.verify('correct horse', null));
  await assert.rejects(hasher.verify('correct horse', null), { code: 'password-hasher-busy' });
  await assert.rejects(hasher.hash('correct horse'), { code: 'password-hasher-busy' });
  assert.throws(() => hasher.expectRoom(), { code: 'password-hasher-busy' });
  assert.equal(begun, 2);
  while (begun < taken.length || running.length > 0) {
    running.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(taken);
  hasher.expectRoom();
  const next = hasher.verify('correct horse', null);
  await new Promise((resolve) => setImmediate(resolve));
  running.shift()?.();
  assert.equal(await next, false);
});

test('a Node without argon2 verifies the hashes of one that has it', async () => {
  // As Node was before 24.7: a module that imports the name cannot run there.
  const remove = "import crypto from 'node:crypto'; delete crypto.argon2; syncBuiltinESMExports();";
  const preload = `import { syncBuiltinESMExports } from 'node:module'; ${remove}`;
  const module = JSON.stringify(pathToFileURL(HASHER).href);
  const hash = await createPasswordHasher().hash('correct horse');
  const script = `
    import * as crypto from 'node:crypto';
    import { createPasswordHasher } from ${module};
    const hasher = createPasswordHasher();
    console.log(crypto.argon2, await hasher.verify('correct horse', ${JSON.stringify(hash)}), await hasher.hash('x'));`;
  const args = ['--import', `data:text/javascript,${encodeURIComponent(preload)}`, '--input-type=module', '-e', script];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  assert.match(stdout, /^undefined true \$argon2id\$v=19\$m=19456,t=2,p=1\$/);
});
