/** When a run of the daily signing counts as failed. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { type AccountId, uuid } from '../../../../core/kernel/ids.ts';
import { signDaily } from '../../../../core/use-cases/auditing/sign-logs-daily.ts';
import { keepLog } from '../../../support/log.ts';
import { createMemoryLayerStore } from '../../../support/memory/layer-store.ts';

const ACCOUNTS = ['0197b2a0-0000-7000-8000-000000000001', '0197b2a0-0000-7000-8000-000000000002'].map((id) =>
  uuid<AccountId>(id),
);

test('A run that cannot sign one log signs the others, and fails', async () => {
  const signed: AccountId[] = [];
  const sign = async (account: AccountId): Promise<void> => {
    if (account === ACCOUNTS[0]) throw new Error('away');
    signed.push(account);
  };
  const checkpoints = { sign };
  const readModels = { accountLogs: async () => ACCOUNTS.map((account) => ({ account, size: 1 })) };
  const log = keepLog();
  const run = signDaily({ readModels, checkpoints, store: createMemoryLayerStore(), log }, { aborted: false });
  await assert.rejects(run, /The logs of 1 accounts were not signed/);
  assert.deepEqual(signed, [ACCOUNTS[1]]);
});
