/** Attacks on sign-in that measure time, against the real hashes of passwords. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createPasswordHasher } from '../../adapters/node/password-hasher.ts';
import { eraseAccount } from '../../core/use-cases/erasing/erase-account.ts';
import { signIn } from '../../core/use-cases/signing-in/sign-in.ts';
import { accepted, codeOf, newAccount } from '../support/accounts.ts';
import { createMemoryEventStore } from '../support/memory/event-store.ts';
import { CAUSE, startNode } from '../support/node.ts';

const ROUNDS_MIN = 8;
/** On a busy machine more tries are needed; an account may fail 100 times. */
const ROUNDS_MAX = 40;
const SPREAD_MAX = 1.5;

test('an attacker who measures how long a refusal takes does not learn which accounts exist', async () => {
  const node = { ...(await startNode(createMemoryEventStore())), passwords: createPasswordHasher() };
  await newAccount(node, 'ada');
  accepted(await eraseAccount(node, CAUSE, await newAccount(node, 'gone')));
  const logins = ['ada', 'ada@example.org', 'nobody', 'nobody@example.org', 'gone'];
  const fastest = new Map(logins.map((login) => [login, Number.POSITIVE_INFINITY]));
  const spread = (): number => Math.max(...fastest.values()) / Math.min(...fastest.values());
  for (let round = 0; round < ROUNDS_MIN || (round < ROUNDS_MAX && spread() >= SPREAD_MAX); round += 1) {
    for (const login of logins) {
      const origin = { requestId: 'request-1', address: `192.0.2.${round}`, userAgent: null };
      const start = performance.now();
      const refused = await signIn(node, origin, { login, password: 'wrong password', knownBrowser: () => null });
      const took = performance.now() - start;
      assert.equal(codeOf(refused), 'sign-in-failed');
      // The fastest of several tries shows the work itself, whatever else the machine does.
      fastest.set(login, Math.min(fastest.get(login) ?? took, took));
    }
  }
  await node.background.settled();
  const times = [...fastest.values()];
  const text = [...fastest].map(([login, ms]) => `${login} ${ms.toFixed(1)} ms`).join(', ');
  assert.ok(Math.min(...times) > 5, `each refusal costs a comparison: ${text}`);
  assert.ok(spread() < SPREAD_MAX, text);
});
