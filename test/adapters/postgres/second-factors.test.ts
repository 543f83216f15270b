/** Second factors that race on two nodes, over the log, the vault and the challenges of one PostgreSQL. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'vitest';
import { createPostgresPasskeyChallenges } from '../../../adapters/postgres/passkey-challenges.ts';
import { createPool } from '../../../adapters/postgres/pool.ts';
import { createPostgresVault } from '../../../adapters/postgres/vault.ts';
import { createPostgresVaultReferences } from '../../../adapters/postgres/vault-references.ts';
import { deleteMfaToken, listMfaTokens } from '../../../core/use-cases/signing-in/mfa-tokens.ts';
import { promptForPasskey, usePasskey } from '../../../core/use-cases/signing-in/passkeys.ts';
import { beginTotpEnrolment, useTotpCode } from '../../../core/use-cases/signing-in/totp.ts';
import { sweepVault } from '../../../core/use-cases/sweeping/sweep-vault.ts';
import { accepted, codesOf, newAccount } from '../../support/accounts.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { keepLog } from '../../support/log.ts';
import { enrolPasskey, enrolTotp, type MfaNode, mfaParts, ORIGIN, owner } from '../../support/mfa.ts';
import { startNode } from '../../support/node.ts';
import { createSoftwareAuthenticator } from '../../support/software-authenticator.ts';
import { createTestClock } from '../../support/test-clock.ts';
import { codeAt } from '../../support/totp-app.ts';
import { openDatabase, openStore } from './open-store.ts';

async function twoNodes(context: Ending) {
  const connectionString = await openDatabase(context);
  const masterKey = randomBytes(32);
  const clock = createTestClock();
  const start = async (): Promise<MfaNode> => {
    const { store } = openStore(context, connectionString);
    const pool = createPool({ connectionString, log: keepLog() });
    cleanUp(context, () => pool.end());
    const node = await startNode(store, { vault: createPostgresVault({ pool, masterKey }), clock });
    cleanUp(context, () => node.entities.close());
    return { ...node, ...mfaParts(createPostgresPasskeyChallenges(pool)) };
  };
  const pool = createPool({ connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  return { one: await start(), two: await start(), pool };
}

// The attack: a code or a signature, taken from the person, is sent to two nodes at the same moment.
test('a code and a signature each sign in once when they race on two nodes', async (context) => {
  const { one, two } = await twoNodes(context);
  const ada = await newAccount(one, 'ada');
  const { seed } = await enrolTotp(one, ada);
  const uncounted = createSoftwareAuthenticator({ origin: ORIGIN, counts: false });
  await enrolPasskey(one, ada, 'Key', uncounted);
  await two.entities.barrier();
  const code = codeAt(seed, one.clock.now());
  const race = <Result extends object>(use: (node: MfaNode) => Promise<Result>) =>
    Promise.all(Array.from({ length: 10 }, (_, n) => use(n % 2 === 0 ? one : two)));
  assert.deepEqual(codesOf(await race((node) => useTotpCode(node, owner(ada), code))), {
    ...{ created: 1, 'mfa-code-used': 9 },
  });
  const prompt = await promptForPasskey(two, ada);
  assert.ok(prompt !== null);
  const answer = uncounted.get(prompt.options);
  assert.deepEqual(codesOf(await race((node) => usePasskey(node, owner(ada), answer))), {
    ...{ created: 1, 'mfa-passkey-challenge-over': 9 },
  });
});

test('the sweep of the vault keeps the records of MFA tokens, and finishes a removal that was cut short', async (context) => {
  const { one, pool } = await twoNodes(context);
  const ada = await newAccount(one, 'ada');
  const [phone, tablet] = [await enrolTotp(one, ada, 'Phone'), await enrolTotp(one, ada, 'Tablet')];
  const dying: MfaNode = { ...one, failpoint: () => Promise.reject(new Error('died')) };
  await assert.rejects(beginTotpEnrolment(dying, owner(ada), 'never begun'), /died/);
  await assert.rejects(deleteMfaToken(dying, owner(ada), tablet.id), /died/);
  const seeds = async () => {
    const { rows } = await pool.query<{ ref: string }>("SELECT ref FROM vault_records WHERE field = 'totp-seed'");
    return rows.map(({ ref }) => ref).sort();
  };
  assert.equal((await seeds()).length, 3);
  await pool.query("UPDATE vault_records SET put_at = put_at - interval '25 hours'");
  const references = createPostgresVaultReferences(pool);
  await sweepVault({ ...one, references, log: keepLog(), onSwept: () => {} }, new AbortController().signal);
  const kept = (await listMfaTokens(one, ada)).map((token) => (token.kind === 'totp' ? token.seedRef : ''));
  assert.deepEqual(await seeds(), kept);
  one.clock.advance(30_000);
  accepted(await useTotpCode(one, owner(ada), codeAt(phone.seed, one.clock.now())));
});
