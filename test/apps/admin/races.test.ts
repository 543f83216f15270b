/**
 * `strata-admin storage verify` and `log verify` beside a running server, which lets layers and personal data go while
 * they read.
 */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeEach, describe, test } from 'vitest';
import { digest } from '../../../adapters/node/digest.ts';
import { verifyStorage } from '../../../apps/admin/storage.ts';
import { verifyLog } from '../../../apps/admin/verify-log.ts';
import { createLogger } from '../../../apps/server/logger.ts';
import { LOG_START } from '../../../core/kernel/envelope.ts';
import type { LayerStore } from '../../../core/ports/layer-store.ts';
import type { LayerKey } from '../../../core/repository/layer.ts';
import { layerKey } from '../../../core/repository/layer.ts';
import { letLayersGo } from '../../../core/use-cases/repositories/expire-layers-early.ts';
import { closeRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { createVaultCheck } from '../../../core/use-cases/verifying/verify-vault.ts';
import { newRepository } from '../../support/accounts.ts';
import { type GitReading, startGitReading } from '../../support/git-reading.ts';
import { layersIn } from '../../support/layers-in.ts';
import { CAUSE } from '../../support/node.ts';

describe('Beside a running server', () => {
  const started: GitReading[] = [];
  let reading: GitReading;
  let key: LayerKey;

  beforeEach(async () => {
    reading = await startGitReading();
    started.push(reading);
    const { entity } = await reading.push({ 'refs/heads/main': reading.git.commit({ first: randomBytes(300) }) });
    key = [...entity.state.layers].map((layer) => layer.key)[0] ?? assert.fail('no layer');
  });
  afterAll(() => Promise.all(started.map((one) => one.close())));

  /** What a server does once a repository was deleted for long: the event, and then the bytes. */
  async function letGo(): Promise<void> {
    const { id } = await reading.current();
    const about = { account: reading.account, cause: CAUSE };
    await closeRepository(reading.node, about, id);
    await letLayersGo(reading.node, about, { id, all: true, reason: 'erasure' });
    await reading.database.layers.delete(key);
  }

  /** The platform's store, with something that happens right before the layer is read for the first time. */
  function before(happening: () => Promise<void>): LayerStore {
    const store = reading.database.layers;
    let happened = false;
    return {
      ...store,
      get: async (wanted, range) => {
        if (wanted === key && !happened) {
          happened = true;
          await happening();
        }
        return store.get(wanted, range);
      },
    };
  }

  const storage = async (store: LayerStore) =>
    (await verifyStorage({ ...reading.node, layers: layersIn(store), log: createLogger('silent', null) }, null)).faults;
  const references = async (store: LayerStore) => {
    const context = {
      ...reading.node,
      layers: layersIn(store),
      digest,
      log: createLogger('silent', null),
      accountLogs: null,
    };
    return (await verifyLog(context, { references: true })).faults;
  };

  test('a layer that was let go after the log was read is no fault', async () => {
    assert.deepEqual(await storage(before(letGo)), []);
  });

  test('a layer that was let go is no fault of the log either', async () => {
    assert.deepEqual(await references(before(letGo)), []);
  });

  test('a layer that is gone though no event let it go is a fault of both', async () => {
    const lose = (): Promise<void> => reading.database.layers.delete(key);
    const [fault, ...more] = await storage(before(lose));
    assert.deepEqual([fault?.kind, fault?.what, more], ['missing', key, []]);
    const [text, ...others] = await references(reading.database.layers);
    assert.match(text ?? '', /names the layer .*, which is not there/);
    assert.deepEqual(others, []);
  });

  test('files of a repository that is created in between are no fault, and those of no repository are', async () => {
    const store = reading.database.layers;
    const unknown = layerKey(`repositories/${randomUUID()}/layers/${randomUUID()}.tar`);
    const bytes = async function* () {
      yield Buffer.from('x');
    };
    await store.put(unknown, bytes(), 1);
    let listings = 0;
    const creating: LayerStore = {
      ...store,
      list: async function* (prefix) {
        yield* store.list(prefix);
        if (prefix !== '' || ++listings !== 1) return;
        const { id } = await newRepository(reading.node, reading.account, 'new', 'main');
        const created = layerKey(`repositories/${id}/layers/${randomUUID()}.tar`);
        await store.put(created, bytes(), 1);
        yield* store.list(`repositories/${id}/`);
      },
    };
    const faults = await storage(creating);
    assert.deepEqual(
      faults.map(({ kind, what }) => [kind, what]),
      [['unknown', unknown]],
    );
  });

  test('an account that is erased while its records are looked for is no fault', async () => {
    const { events, vault } = reading.node;
    const found: string[] = [];
    const check = createVaultCheck(vault, (text) => found.push(text));
    const log = await events.readAll(LOG_START, 1_000);
    for (const event of log) check.add(event);
    await vault.eraseAccount(reading.account);
    const erased = log.find(({ type }) => type === 'AccountCreated') ?? assert.fail('no account');
    await check.finish(async () => check.add({ ...erased, type: 'AccountErased', data: {} }));
    assert.deepEqual(found, []);
    await check.finish(async () => undefined);
    assert.deepEqual(found, []);
  });
});
