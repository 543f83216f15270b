/** Password hashes: their form, which passwords they accept, and hashes of other implementations. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { describe, test } from 'vitest';
import { findArgon2id } from '../../../adapters/node/argon2id.ts';
import { uuids } from '../../../adapters/node/ids.ts';
import {
  createPasswordHasher,
  PASSWORD_WAIT_MS,
  PASSWORDS_WAITING_MAX,
} from '../../../adapters/node/password-hasher.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import type { PasswordTurn } from '../../../core/ports/password-hasher.ts';

const TURN: PasswordTurn = { kind: 'stranger', address: '192.0.2.1' };
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
    const hasher = createPasswordHasher({ argon2id });

    test('is a PHC string of argon2id with 19 MiB, two passes, one lane and a new salt', async () => {
      const hashes = await Promise.all([hasher.hash('correct horse', TURN), hasher.hash('correct horse', TURN)]);
      for (const hash of hashes) {
        assert.match(hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
      }
      assert.notEqual(hashes[0], hashes[1]);
    });

    test('accepts only its own password', async () => {
      const hash = await hasher.hash('correct horse', TURN);
      const verdicts = ['correct horse', 'correct horsf', 'Correct horse', 'correct horse ', ''].map((password) =>
        hasher.verify(password, hash, TURN),
      );
      assert.deepEqual(await Promise.all(verdicts), [true, false, false, false, false]);
    });

    test('of nobody accepts no password, and costs as much as any other', async () => {
      let runs = 0;
      const counting = createPasswordHasher({
        argon2id: async (parameters) => {
          runs += 1;
          assert.deepEqual([parameters.memoryKiB, parameters.passes, parameters.tagLengthBytes], [19_456, 2, 32]);
          return Buffer.alloc(32);
        },
      });
      // Even the tag of that hash, which the stand-in computes for every password, does not match.
      assert.equal(await counting.verify('correct horse', null, TURN), false);
      assert.equal(runs, 1);
      assert.equal(await hasher.verify('', null, TURN), false);
    });

    test('accepts the password in composed and in decomposed letters', async () => {
      const hash = await hasher.hash('gr\u00f6\u00dfe of letters', TURN);
      assert.equal(await hasher.verify('gro\u0308\u00dfe of letters', hash, TURN), true);
    });

    test('of the reference implementation is verified by its own parameters', async () => {
      for (const [password, reference] of REFERENCES) {
        assert.equal(await hasher.verify(password, reference, TURN), true, reference);
        assert.equal(await hasher.verify(`${password}e`, reference, TURN), false, reference);
      }
    });

    test('is verified by every other implementation', async () => {
      const hash = await hasher.hash('correct horse', TURN);
      for (const other of Object.values(KINDS)) {
        assert.equal(await createPasswordHasher({ argon2id: other }).verify('correct horse', hash, TURN), true);
        assert.equal(await createPasswordHasher({ argon2id: other }).verify('correct horsf', hash, TURN), false);
      }
    });

    test('of another form is an error, and not a wrong password', async () => {
      for (const hash of [
        '',
        'plain',
        '$argon2i$v=19$m=256,t=2,p=1$c29tc2FsdA$nf65',
        '$2b$10$abcdefghijklmnopqrstuv',
      ]) {
        await assert.rejects(hasher.verify('password', hash, TURN), TypeError);
      }
      await hasher.verify('password', await hasher.hash('password', TURN), TURN);
    });
  });

test('a bounded number of passwords is hashed at the same time, a bounded number waits, and one more is refused without being begun', async () => {
  const running: (() => void)[] = [];
  let begun = 0;
  const argon2id = async (): Promise<Buffer> => {
    begun += 1;
    await new Promise<void>((resolve) => running.push(resolve));
    return Buffer.alloc(32);
  };
  const hasher = createPasswordHasher({ argon2id, concurrentMax: 2 });
  const taken = Array.from({ length: PASSWORDS_WAITING_MAX + 2 }, () => hasher.verify('correct horse', null, TURN));
  await assert.rejects(hasher.verify('correct horse', null, TURN), { code: 'password-hasher-busy' });
  await assert.rejects(hasher.hash('correct horse', TURN), { code: 'password-hasher-busy' });
  assert.throws(() => hasher.expectRoom(TURN), { code: 'password-hasher-busy' });
  assert.equal(begun, 2);
  while (begun < taken.length || running.length > 0) {
    running.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(taken);
  hasher.expectRoom(TURN);
  const next = hasher.verify('correct horse', null, TURN);
  await new Promise((resolve) => setImmediate(resolve));
  running.shift()?.();
  assert.equal(await next, false);
});

describe('A flood of wrong passwords', () => {
  /** One password at a time, each until `finish`. */
  function started() {
    const finish: (() => void)[] = [];
    let now = 0;
    const argon2id = async (): Promise<Buffer> => {
      await new Promise<void>((resolve) => finish.push(resolve));
      return Buffer.alloc(32);
    };
    const hasher = createPasswordHasher({ argon2id, concurrentMax: 1, monotonicMs: () => now });
    const order: string[] = [];
    const busy: string[] = [];
    const compare = (name: string, turn: PasswordTurn, hash: string | null = null): void => {
      hasher.verify('wrong horse', hash, turn).then(
        () => order.push(name),
        () => busy.push(name),
      );
    };
    const from = (address: string): PasswordTurn => ({ kind: 'stranger', address });
    const next = async (): Promise<void> => {
      await new Promise((resolve) => setImmediate(resolve));
      finish.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    };
    const wait = (ms: number): void => void (now += ms);
    return { compare, from, next, order, busy, wait };
  }
  const known: PasswordTurn = { kind: 'known', account: uuids.next<AccountId>() };

  test('from one address lets somebody at another address have the next turn, and a known browser immediately', async () => {
    const { compare, from, next, order, busy } = started();
    for (let n = 0; n <= PASSWORDS_WAITING_MAX; n += 1) compare('flood', from('203.0.113.7'));
    compare('stranger', from('192.0.2.1'));
    compare('known', known);
    for (let n = 0; n < 3; n += 1) await next();
    assert.deepEqual(order, ['flood', 'known', 'stranger']);
    assert.deepEqual(busy, ['flood'], 'the last of those who tried most gives way');
  });

  test('from a thousand addresses that all had their turn lets a new address go before them', async () => {
    const { compare, from, next, order } = started();
    for (let n = 0; n < 1_000; n += 1) {
      compare('flood', from(`203.0.${n % 250}.${Math.floor(n / 250)}`));
      await next();
    }
    order.length = 0;
    for (let n = 0; n <= PASSWORDS_WAITING_MAX; n += 1) compare('flood', from(`203.0.${n}.0`));
    compare('stranger', from('192.0.2.1'));
    for (let n = 0; n < 2; n += 1) await next();
    assert.deepEqual(order, ['flood', 'stranger']);
  });

  test('from ever new addresses lets somebody who was refused and comes again go before them', async () => {
    const { compare, from, next, order, busy, wait } = started();
    let n = 0;
    const flood = (): void => compare('flood', from(`203.${Math.floor(n / 200)}.${n++ % 200}.7`));
    for (let waiting = 0; waiting <= PASSWORDS_WAITING_MAX; waiting += 1) flood();
    wait(1);
    compare('stranger', from('192.0.2.1'));
    await next();
    assert.deepEqual([order, busy], [['flood'], ['stranger']], 'there is no room yet');
    // All that waited give up, and others from new addresses fill the room.
    wait(PASSWORD_WAIT_MS);
    for (let waiting = 0; waiting < PASSWORDS_WAITING_MAX; waiting += 1) flood();
    await next();
    for (let waiting = 0; waiting < PASSWORDS_WAITING_MAX; waiting += 1) flood();
    compare('stranger', from('192.0.2.1'));
    order.length = 0;
    for (let turn = 0; turn < 2; turn += 1) await next();
    assert.deepEqual(order, ['flood', 'stranger']);
  });

  test('from new addresses leaves the place to somebody whose neighbours signed in with the right password', async () => {
    const { compare, from, next, order } = started();
    // The stand-in computes this tag for every password.
    const right = `$argon2id$v=19$m=19456,t=2,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`;
    for (let n = 0; n < 9; n += 1) {
      compare('neighbour', from(`192.0.2.${n}`), right);
      await next();
    }
    order.length = 0;
    compare('running', from('198.51.100.1'));
    compare('stranger', from('192.0.2.1'));
    for (let n = 0; n < 9; n += 1) compare('flood', from(`203.0.${n}.7`));
    for (let n = 0; n < 2; n += 1) await next();
    assert.deepEqual(order, ['running', 'stranger']);
  });

  test('from every network of one customer counts as eight networks at most', async () => {
    const { compare, from, next, order } = started();
    compare('first', from('2001:db8:9::1'));
    for (let n = 0; n < 64; n += 1) compare('customer', from(`2001:db8:7:${n.toString(16)}::1`));
    for (let n = 0; n < 8; n += 1) compare('stranger', from('192.0.2.1'));
    for (let n = 0; n < 1 + 5 * 9; n += 1) await next();
    assert.equal(order.filter((name) => name === 'stranger').length, 5);
  });

  test('in known browsers leaves every fourth turn to strangers, and the next to another account', async () => {
    const { compare, from, next, order } = started();
    const other: PasswordTurn = { kind: 'known', account: uuids.next<AccountId>() };
    for (let n = 0; n < 10; n += 1) compare('flood', known);
    compare('other', other);
    compare('stranger', from('192.0.2.1'));
    for (let n = 0; n < 5; n += 1) await next();
    assert.deepEqual(order, ['flood', 'other', 'flood', 'stranger', 'flood']);
  });

  test('is answered that the service is busy when its turn has not come in time', async () => {
    const { compare, from, next, order, busy, wait } = started();
    compare('running', from('192.0.2.1'));
    compare('late', from('192.0.2.2'));
    wait(PASSWORD_WAIT_MS);
    compare('in time', from('192.0.2.3'));
    await next();
    assert.deepEqual([order, busy], [['running'], []], 'one that has waited exactly as long as it may goes on');
    wait(1);
    compare('last', from('192.0.2.4'));
    wait(PASSWORD_WAIT_MS);
    await next();
    assert.deepEqual([order, busy], [['running', 'late'], ['in time']]);
  });
});

test('a Node without argon2 verifies the hashes of one that has it', async () => {
  // As Node was before 24.7: a module that imports the name cannot run there.
  const remove = "import crypto from 'node:crypto'; delete crypto.argon2; syncBuiltinESMExports();";
  const preload = `import { syncBuiltinESMExports } from 'node:module'; ${remove}`;
  const module = JSON.stringify(pathToFileURL(HASHER).href);
  const hash = await createPasswordHasher().hash('correct horse', TURN);
  const script = `
    import * as crypto from 'node:crypto';
    import { createPasswordHasher } from ${module};
    const hasher = createPasswordHasher();
    const turn = ${JSON.stringify(TURN)};
    console.log(crypto.argon2, await hasher.verify('correct horse', ${JSON.stringify(hash)}, turn), await hasher.hash('x', turn));`;
  const args = ['--import', `data:text/javascript,${encodeURIComponent(preload)}`, '--input-type=module', '-e', script];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  assert.match(stdout, /^undefined true \$argon2id\$v=19\$m=19456,t=2,p=1\$/);
});
