/** What an account's log says of rotations of the master key, once it is signed again. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { digest } from '../../../../adapters/node/digest.ts';
import { decideAccount } from '../../../../core/account/decide.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import { streamName } from '../../../../core/kernel/envelope.ts';
import { type AccountId, plusMs } from '../../../../core/kernel/ids.ts';
import { NEWEST_FORMS, type WrittenForms } from '../../../../core/ports/running-processes.ts';
import { execute } from '../../../../core/runtime/execute.ts';
import { recordRotations } from '../../../../core/use-cases/auditing/record-rotations.ts';
import { newAccount } from '../../../support/accounts.ts';
import { createMemoryAccountLog } from '../../../support/memory/account-log.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryLayerStore } from '../../../support/memory/layer-store.ts';
import { createMemoryCheckpoints, createMemoryLogKeys } from '../../../support/memory/log-keys.ts';
import { CAUSE, startNode } from '../../../support/node.ts';

async function started(context: TestContext) {
  const events = createMemoryEventStore();
  const readModels = createMemoryAccountLog({ events, digest });
  const rotated = new Map<AccountId, string[]>();
  const rotations = { rotationsOf: async (account: AccountId) => rotated.get(account) ?? [] };
  const [store, logKeys] = [createMemoryLayerStore(), createMemoryLogKeys()];
  const forms: { written: WrittenForms } = { written: NEWEST_FORMS };
  const open = async () => {
    const node = await startNode(events);
    context.onTestFinished(() => node.entities.close());
    const written: WrittenForms = { versionOf: (type) => forms.written.versionOf(type) };
    const record = (account: AccountId) => recordRotations({ ...node, written, rotations, readModels }, account);
    const { clock } = node;
    const checkpoints = createMemoryCheckpoints({ readModels, digest, clock, store, logKeys, recordActs: record });
    return { node, record, sign: async (account: AccountId) => checkpoints.sign(account, await events.head()) };
  };
  const recorded = async (account: AccountId) => {
    const page = await events.readStream(streamName('account', account), { direction: 'forwards', limit: 100 });
    return page.filter(({ type }) => type === 'MasterKeyRotated');
  };
  const first = await open();
  return { ...first, another: open, rotated, forms, recorded, account: await newAccount(first.node, 'ada') };
}

describe('A rotation of the master key', () => {
  test('is in the log of each account that it touched, below the next checkpoint, once', async (context) => {
    const { sign, rotated, recorded, account } = await started(context);
    const before = await sign(account);
    assert.deepEqual(await recorded(account), []);
    rotated.set(account, ['first', 'second']);
    const after = await sign(account);
    const events = await recorded(account);
    assert.deepEqual(
      events.map(({ data, actor, isRecord }) => [data['key_id'], actor, isRecord]),
      ['first', 'second'].map((keyId) => [keyId, { kind: 'admin', id: 'master-key rotate' }, true]),
    );
    assert.equal(after.size, before.size + 2);
    assert.equal((await sign(account)).size, after.size);
    rotated.set(account, ['first', 'second', 'third']);
    assert.equal((await sign(account)).size, after.size + 1);
    assert.equal((await recorded(account)).length, 3);
  });

  // The attack: two nodes sign at the same moment, and the log would say it twice.
  test('is recorded once by nodes that sign at the same time', async (context) => {
    const { record, another, rotated, recorded, account } = await started(context);
    const others = [await another(), await another()];
    rotated.set(account, ['key']);
    await Promise.all([record(account), ...others.map((node) => node.record(account))]);
    assert.equal((await recorded(account)).length, 1);
  });

  test('is recorded of a closed account too, which may be opened again', async (context) => {
    const { node, sign, rotated, recorded, account } = await started(context);
    const eraseAt = plusMs(node.clock.now(), 1_000);
    await execute(node, accounts, account, { account, cause: CAUSE }, (state) =>
      decideAccount(state, { type: 'CloseAccount', eraseAt }),
    );
    rotated.set(account, ['key']);
    await sign(account);
    assert.equal((await recorded(account)).length, 1);
  });

  test('is not recorded of an erased account, which has no data key, and its log is signed', async (context) => {
    const { node, sign, rotated, recorded, account } = await started(context);
    await execute(node, accounts, account, { account, cause: CAUSE }, (state) =>
      decideAccount(state, { type: 'EraseAccount' }),
    );
    rotated.set(account, ['key']);
    await sign(account);
    assert.deepEqual(await recorded(account), []);
  });

  test('waits while a process may run that does not know the event, and the log is signed all the same', async (context) => {
    const { sign, rotated, recorded, forms, account } = await started(context);
    rotated.set(account, ['key']);
    forms.written = { versionOf: (type) => (type === 'MasterKeyRotated' ? 0 : NEWEST_FORMS.versionOf(type)) };
    const before = await sign(account);
    assert.deepEqual(await recorded(account), []);
    forms.written = NEWEST_FORMS;
    assert.equal((await sign(account)).size, before.size + 1);
  });
});
