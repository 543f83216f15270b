/** The sweep of the vault over the log and the vault of PostgreSQL, as a server runs it. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'vitest';
import { createPostgresEventStore } from '../../../adapters/postgres/event-store.ts';
import { createPool } from '../../../adapters/postgres/pool.ts';
import { createPostgresVault } from '../../../adapters/postgres/vault.ts';
import { createPostgresVaultReferences } from '../../../adapters/postgres/vault-references.ts';
import { accounts } from '../../../core/account/evolve.ts';
import { eraseAccount } from '../../../core/use-cases/erasing/erase-account.ts';
import { sweepVault } from '../../../core/use-cases/sweeping/sweep-vault.ts';
import { newAccount as createdAccount } from '../../support/accounts.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { newAccount, newEvent, newStream } from '../../support/events.ts';
import { keepLog } from '../../support/log.ts';
import { CAUSE, startNode } from '../../support/node.ts';
import { openDatabase } from './open-store.ts';

test('the sweep of the vault removes what the log does not name and finishes an erasure, on PostgreSQL', async (t) => {
  const connectionString = await openDatabase(t);
  const pool = createPool({ connectionString, log: keepLog() });
  cleanUp(t, () => pool.end());
  const events = createPostgresEventStore({ connectionString, log: keepLog() });
  cleanUp(t, () => events.close());
  const vault = createPostgresVault({ pool, masterKey: randomBytes(32) });
  const node = await startNode(events, { vault });
  cleanUp(t, () => node.entities.close());
  const sweep = async (): Promise<string[]> => {
    const swept: string[] = [];
    const references = createPostgresVaultReferences(pool);
    const onSwept = ({ ref }: { ref: string }) => swept.push(ref);
    await sweepVault({ ...node, references, log: keepLog(), onSwept }, new AbortController().signal);
    return swept;
  };
  const recordsOf = async (account: string) =>
    (await pool.query('SELECT 1 FROM vault_records WHERE account_id = $1', [account])).rowCount;

  const ada = await createdAccount(node, 'ada');
  const deadAccount = newAccount();
  const orphan = await vault.put(deadAccount, 'email', 'dead@example.org');
  const address = await vault.put(ada, 'source-address', '192.0.2.1');
  assert.deepEqual(await sweep(), [], 'no record is old enough');
  await pool.query("UPDATE vault_records SET put_at = put_at - interval '25 hours'");
  const event = newEvent({ accountId: ada, sourceAddressRef: address });
  await events.append({ stream: newStream(), expected: 'none', events: [event] });
  assert.deepEqual(await sweep(), [orphan]);
  assert.equal(await recordsOf(ada), 3);
  const mark = await createPostgresVaultReferences(pool).readUpTo();
  assert.equal(mark?.position, await events.head());

  const failpoint = async (): Promise<void> => {
    throw new Error('killed');
  };
  await assert.rejects(eraseAccount({ ...node, failpoint }, CAUSE, ada), /killed/);
  assert.equal(await recordsOf(ada), 3);
  await Promise.all([sweep(), sweep()]);
  assert.equal(await recordsOf(ada), 0);
  await assert.rejects(vault.put(ada, 'email', 'ada@example.org'), { code: 'account-erased' });
  assert.equal((await node.entities.reload(accounts, ada)).state.status, 'erased');
});
