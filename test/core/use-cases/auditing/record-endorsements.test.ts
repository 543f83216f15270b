/** Which key signs an account's log stands in it before that key signs. */
import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { describe, type TestContext, test } from 'vitest';
import { digest } from '../../../../adapters/node/digest.ts';
import { noteSigning } from '../../../../adapters/node/note-signing.ts';
import { decideAccount } from '../../../../core/account/decide.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import { signerOf } from '../../../../core/audit/checkpoint.ts';
import { streamName } from '../../../../core/kernel/envelope.ts';
import type { AccountId } from '../../../../core/kernel/ids.ts';
import { NEWEST_FORMS, type WrittenForms } from '../../../../core/ports/running-processes.ts';
import { execute } from '../../../../core/runtime/execute.ts';
import {
  createLogKeyRing,
  LOG_KEYS_READ_INTERVAL_MS,
  revokeLogKey,
  rotateLogKey,
} from '../../../../core/use-cases/auditing/log-keys.ts';
import { endorsedKey, recordEndorsements } from '../../../../core/use-cases/auditing/record-endorsements.ts';
import { newAccount } from '../../../support/accounts.ts';
import { createMemoryAccountLog } from '../../../support/memory/account-log.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryLayerStore } from '../../../support/memory/layer-store.ts';
import { createMemoryCheckpoints, createMemoryLogKeys } from '../../../support/memory/log-keys.ts';
import { CAUSE, startNode } from '../../../support/node.ts';

async function started(context: TestContext) {
  const events = createMemoryEventStore();
  const readModels = createMemoryAccountLog({ events, digest });
  const [store, logKeys] = [createMemoryLayerStore(), createMemoryLogKeys()];
  const forms: { written: WrittenForms } = { written: NEWEST_FORMS };
  const service = { logKeys, signing: noteSigning, digest, host: () => 'strata.example' };
  /** A node that has read no key yet. */
  const open = async () => {
    const node = await startNode(events);
    context.onTestFinished(() => node.entities.close());
    const written: WrittenForms = { versionOf: (type) => forms.written.versionOf(type) };
    const keys = createLogKeyRing({ ...service, clock: node.clock });
    const acts = { ...node, written, readModels, keys, digest, signing: noteSigning };
    const record = (account: AccountId) => recordEndorsements(acts, account);
    const checkpoints = createMemoryCheckpoints({
      ...{ readModels, digest, clock: node.clock, store, logKeys, recordActs: record },
      endorsedKey: (account, size) => endorsedKey(acts, account, size),
    });
    return {
      node,
      record,
      checkpoints,
      sign: async (account: AccountId) => checkpoints.sign(account, await events.head()),
    };
  };
  const recorded = async (account: AccountId) => {
    const page = await events.readStream(streamName('account', account), { direction: 'forwards', limit: 100 });
    return page.filter(({ type }) => type === 'LogKeyEndorsed');
  };
  const first = await open();
  return { ...first, another: open, service, forms, recorded, account: await newAccount(first.node, 'ada') };
}

const idOf = (line: string): string => line.split('+')[1] ?? '';

describe('A rotation of the key of checkpoints', () => {
  test('is endorsed in the log by the key before it, and only then the new key signs', async (context) => {
    const { sign, another, service, recorded, account } = await started(context);
    const before = await sign(account);
    assert.deepEqual(await recorded(account), []);
    await rotateLogKey(service);
    await rotateLogKey(service);
    const node = await another();
    const after = await node.sign(account);
    const lines = (await node.checkpoints.verifierKeys()).trim().split('\n');
    const events = await recorded(account);
    assert.deepEqual(
      events.map(({ data, actor, isRecord }) => [data['previous'], data['key'], actor, isRecord]),
      [1, 2].map((at) => [lines[at - 1], lines[at], { kind: 'admin', id: 'log rotate-key' }, true]),
    );
    for (const { data } of events) {
      const { key, previous, signature } = data as Readonly<Record<string, string>>;
      const bytes = Buffer.from((previous ?? '').split('+').slice(2).join('+'), 'base64').subarray(1);
      const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), bytes]);
      const text = Buffer.from(`{"key":"${key}","previous":"${previous}"}`);
      const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' });
      assert.ok(verify(null, text, publicKey, Buffer.from(signature ?? '', 'base64')));
    }
    assert.equal(after.size, before.size + 2);
    assert.deepEqual(
      [before, after].map(({ note }) => signerOf(note).keyId),
      [lines[0], lines[2]].map((line) => idOf(line ?? '')),
    );
    assert.equal((await node.sign(account)).size, after.size, 'nothing is recorded twice');
    assert.equal((await sign(account)).note, after.note, 'a node that does not know the key yet reads it');
  });

  // The attack: two nodes sign at the same moment, and the log would endorse a key twice, which refutes it.
  test('is endorsed once by nodes that sign at the same time', async (context) => {
    const { another, service, recorded, account } = await started(context);
    await rotateLogKey(service);
    await rotateLogKey(service);
    const nodes = [await another(), await another(), await another()];
    await Promise.all(nodes.map((node) => node.record(account)));
    const keys = (await recorded(account)).map(({ data }) => data['key']);
    assert.equal(keys.length, 2);
    assert.equal(new Set(keys).size, 2);
  });

  test('is endorsed in the log of an erased account, which is exported too', async (context) => {
    const { node, another, service, recorded, account } = await started(context);
    await execute(node, accounts, account, { account, cause: CAUSE }, (state) =>
      decideAccount(state, { type: 'EraseAccount' }),
    );
    await rotateLogKey(service);
    await (await another()).sign(account);
    assert.equal((await recorded(account)).length, 1);
  });

  test('waits while a process may run that does not know the event, and the key before signs', async (context) => {
    const { sign, another, service, recorded, forms, account } = await started(context);
    const before = await sign(account);
    await rotateLogKey(service);
    forms.written = { versionOf: (type) => (type === 'LogKeyEndorsed' ? 0 : NEWEST_FORMS.versionOf(type)) };
    const node = await another();
    assert.equal((await node.sign(account)).note, before.note);
    assert.deepEqual(await recorded(account), []);
    forms.written = NEWEST_FORMS;
    assert.equal((await node.sign(account)).size, before.size + 1);
  });

  test('of a stolen key is endorsed by nobody: auditors get its line from outside', async (context) => {
    const { sign, node, checkpoints, service, recorded, account } = await started(context);
    await sign(account);
    const stolen = (await checkpoints.verifierKeys()).trim();
    assert.equal(typeof (await revokeLogKey(service, stolen)), 'object');
    node.clock.advance(LOG_KEYS_READ_INTERVAL_MS);
    const after = await sign(account);
    const [event, ...others] = await recorded(account);
    assert.deepEqual(others, []);
    assert.deepEqual([event?.data['previous'], event?.data['signature']], [stolen, null]);
    assert.deepEqual(event?.actor, { kind: 'admin', id: 'log revoke-key' });
    assert.equal(signerOf(after.note).keyId, idOf(`${event?.data['key'] as string}`));
  });
});
