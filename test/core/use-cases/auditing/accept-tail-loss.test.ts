/** What a restored log says of the checkpoints that it does not continue, once the operator accepts the loss. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { digest } from '../../../../adapters/node/digest.ts';
import { base64OfHex } from '../../../../core/audit/base64.ts';
import { type Cause, streamName } from '../../../../core/kernel/envelope.ts';
import { singleChunk } from '../../../../core/kernel/single-chunk.ts';
import type { LayerStore } from '../../../../core/ports/layer-store.ts';
import { layerKey } from '../../../../core/repository/layer.ts';
import { acceptTailLoss } from '../../../../core/use-cases/auditing/accept-tail-loss.ts';
import { createCheckpointCheck } from '../../../../core/use-cases/auditing/check-checkpoints.ts';
import { newAccount, newRepository } from '../../../support/accounts.ts';
import { createMemoryAccountLog } from '../../../support/memory/account-log.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryLayerStore } from '../../../support/memory/layer-store.ts';
import { createMemoryCheckpoints, createMemoryLogKeys } from '../../../support/memory/log-keys.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { restoredLog } from '../../../support/restored-log.ts';

const NEVER = new AbortController().signal;
const BY_OPERATOR: Cause = { ...CAUSE, actor: { kind: 'admin', id: 'log checkpoints accept-loss' } };

/** A log whose checkpoint is one repository newer than the log that it was restored to. */
async function restored(context: TestContext) {
  const store = createMemoryLayerStore();
  const logKeys = createMemoryLogKeys();
  const open = async (events = createMemoryEventStore()) => {
    const node = await startNode(events);
    context.onTestFinished(() => node.entities.close());
    const readModels = createMemoryAccountLog({ events, digest });
    const checkpoints = createMemoryCheckpoints({ readModels, digest, clock: node.clock, store, logKeys });
    return { node, events, checkpoints, head: () => events.head() };
  };
  const before = await open();
  const account = await newAccount(before.node, 'ada');
  const saved = await before.events.head();
  await newRepository(before.node, account, 'lost', 'main');
  const lost = await before.checkpoints.sign(account, await before.head());
  const after = await open(await restoredLog(before.events, saved));
  const accept = (given: LayerStore = store) =>
    acceptTailLoss({ ...after.node, checkpoints: after.checkpoints, store: given }, BY_OPERATOR, {
      account,
      reason: 'The disk died',
    });
  const losses = async () => {
    const stream = streamName('account', account);
    const page = await after.events.readStream(stream, { direction: 'forwards', limit: 100 });
    return page.filter(({ type }) => type === 'LogTailLost');
  };
  const keys = async () => (await Array.fromAsync(store.list(''), ({ key }) => key)).sort();
  return { ...after, account, store, lost, accept, losses, keys };
}

describe('A log that does not continue its last checkpoint', () => {
  test('is signed again once it says what it lost, and the lost checkpoint stays in the store', async (context) => {
    const { account, checkpoints, head, lost, accept, losses, keys } = await restored(context);
    await assert.rejects(async () => checkpoints.sign(account, await head()), { code: 'log-contradicts-checkpoint' });
    assert.deepEqual(await accept(), [{ size: lost.size, root: lost.root }]);
    const [loss, ...more] = await losses();
    assert.deepEqual(loss?.data, { size: lost.size, root: base64OfHex(lost.root), reason: 'The disk died' });
    assert.deepEqual([loss?.actor, loss?.isRecord, more], [BY_OPERATOR.actor, true, []]);
    assert.deepEqual(await keys(), [`checkpoints/${account}/lost/${String(lost.size).padStart(16, '0')}`]);
    const next = await checkpoints.sign(account, await head());
    assert.notEqual(next.root, lost.root);
    const { last } = await checkpoints.recordOf(account, await head());
    assert.deepEqual([last?.size, last?.root, last?.continued], [next.size, next.root, true]);
    assert.deepEqual(await accept(), []);
    assert.equal((await losses()).length, 1);
  });

  test('says it once, though the process died before the checkpoint left its place', async (context) => {
    const { store, accept, losses, keys, account } = await restored(context);
    const dying = { ...store, delete: async () => Promise.reject(new Error('killed')) };
    await assert.rejects(accept(dying), /killed/);
    assert.equal((await losses()).length, 1);
    await accept();
    assert.equal((await losses()).length, 1);
    assert.ok((await keys()).every((key) => key.startsWith(`checkpoints/${account}/lost/`)));
  });

  test('keeps an earlier lost checkpoint of that size, also in a store that replaces what is there', async (context) => {
    const { account, store, lost, accept } = await restored(context);
    const lostAt = `checkpoints/${account}/lost/${String(lost.size).padStart(16, '0')}`;
    const earlier = new TextEncoder().encode('an earlier one');
    await store.put(layerKey(lostAt), singleChunk(earlier), earlier.length);
    const put: LayerStore['put'] = async (key, body, sizeBytes) => {
      await store.delete(key);
      return store.put(key, body, sizeBytes);
    };
    await accept({ ...store, put });
    for (const [key, text] of [
      [lostAt, 'an earlier one'],
      [`${lostAt}-${lost.root.slice(0, 16)}`, lost.note],
    ] as const) {
      assert.equal(Buffer.concat(await Array.fromAsync(await store.get(layerKey(key)))).toString(), text);
    }
  });

  test('is counted until the loss is accepted', async (context) => {
    const { events, checkpoints, store, accept, account, head } = await restored(context);
    const check = createCheckpointCheck({ events, checkpoints, store });
    await check.look(NEVER);
    assert.equal(check.contradicted(), 1);
    await accept();
    await check.look(NEVER);
    assert.equal(check.contradicted(), 0);
    await checkpoints.sign(account, await head());
    let read = 0;
    const recordOf: typeof checkpoints.recordOf = (...of) => {
      read += 1;
      return checkpoints.recordOf(...of);
    };
    const counting = createCheckpointCheck({ events, checkpoints: { recordOf }, store });
    await counting.look(NEVER);
    await counting.look(NEVER);
    assert.deepEqual([counting.contradicted(), read], [0, 1], 'a checkpoint that is continued is read once');
  });
});
