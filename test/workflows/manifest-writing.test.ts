/** Changes of the log become rows, and rows become manifests: one for all changes of a time, and none is forgotten. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { describe, type TestContext, test } from 'vitest';
import { createPostgresManifestWrites } from '../../adapters/postgres/manifest-writes.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { type AccountId, plusMs, type Timestamp, uuid } from '../../core/kernel/ids.ts';
import { MANIFEST_DELAY_MS } from '../../core/kernel/limits.ts';
import { type LayerStore, LayerStoreError } from '../../core/ports/layer-store.ts';
import type { ManifestWrites } from '../../core/ports/manifest-writes.ts';
import { manifestKey } from '../../core/repository/manifest.ts';
import { requestManifests } from '../../core/use-cases/manifests/request-manifests.ts';
import { changeRepository } from '../../core/use-cases/repositories/repositories.ts';
import {
  createManifestSteps,
  MANIFEST_RETRY_FIRST_MS,
  MANIFEST_RETRY_LAST_MS,
  MANIFESTS_AT_ONCE_MAX,
} from '../../workflows/manifest-writing/steps.ts';
import { accepted } from '../support/accounts.ts';
import { cleanUp } from '../support/cleanup.ts';
import { layersIn } from '../support/layers-in.ts';
import { keepLog } from '../support/log.ts';
import { createMemoryPolicyMarks } from '../support/memory/delivery-store.ts';
import { CAUSE } from '../support/node.ts';
import { testPastEntities } from '../support/past-repositories.ts';
import { testDatabase } from '../support/postgres.ts';
import { startPushing } from '../support/pushing.ts';
import { branch, oid } from '../support/repository-history.ts';

const NEVER = new AbortController().signal;

async function start(context: TestContext) {
  const pushing = await startPushing({ defaultBranch: 'main' });
  const { node, layers, account, repository } = pushing;
  const { clock } = node;
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  const manifests = createPostgresManifestWrites(pool);
  const marks = createMemoryPolicyMarks();
  const calls: string[] = [];
  let outage: LayerStoreError | null = null;
  const store: LayerStore = {
    ...layers,
    list: (prefix) => {
      calls.push('list');
      if (outage !== null) throw outage;
      return layers.list(prefix);
    },
  };
  const steps = createManifestSteps({
    ...node,
    manifests,
    layers: layersIn(store),
    past: testPastEntities(node),
    retentionMs: 0,
    log: keepLog(),
  });
  let pushes = 0;
  return {
    ...pushing,
    clock,
    manifests,
    calls,
    policy: (given: { readonly manifests: Pick<ManifestWrites, 'want'> } = { manifests }) =>
      requestManifests({ ...node, marks, ...given }, NEVER),
    /** Pushes a new branch. */
    pushOnce: async () => {
      pushes += 1;
      const pushed = await pushing.push([{ ref: branch(`b${pushes}`), before: null, after: oid('a') }]);
      assert.ok('results' in pushed);
    },
    changeDefaultBranch: async (defaultBranch: string) =>
      accepted(await changeRepository(node, { account, cause: CAUSE }, repository, { defaultBranch })),
    /** Carries out what is due, as an engine does. */
    runDue: async (): Promise<void> => {
      for (const { id, revision, dueAt } of await manifests.earliest(10)) {
        if (dueAt <= clock.now()) await steps.write({ id, revision }, NEVER);
      }
    },
    dueAt: async (): Promise<Timestamp | null> => (await manifests.waitOf(repository))?.dueAt ?? null,
    revisions: async () => {
      const names = (await pushing.layerKeys()).filter((key) => key.endsWith('.json'));
      return names.map((key) => Number(path.basename(key, '.json'))).sort((a, b) => a - b);
    },
    fail: (error: LayerStoreError | null) => {
      outage = error;
    },
  };
}

describe('A manifest is wanted', () => {
  test('once for all changes, at a fixed time after the first of them, and holds the last', async (context) => {
    const { clock, policy, pushOnce, runDue, dueAt, revisions } = await start(context);
    const first = clock.now();
    for (let second = 0; second < 50; second += 1) {
      await pushOnce();
      if (second % 5 === 0) await policy();
      await runDue();
      clock.advance(1_000);
    }
    assert.deepEqual([await dueAt(), await revisions()], [plusMs(first, MANIFEST_DELAY_MS), []]);
    await runDue();
    assert.deepEqual([await revisions(), await dueAt()], [[49], null]);
  });

  test('again after a change that came while it was written, and not immediately', async (context) => {
    const { clock, policy, pushOnce, manifests, repository, dueAt, runDue, revisions } = await start(context);
    await pushOnce();
    await policy();
    clock.advance(MANIFEST_DELAY_MS);
    const before = await manifests.waitOf(repository);
    await pushOnce();
    await policy();
    await manifests.done(repository, before?.revision ?? -1, {
      nextAt: null,
      againAt: plusMs(clock.now(), MANIFEST_DELAY_MS),
    });
    assert.equal(await dueAt(), plusMs(clock.now(), MANIFEST_DELAY_MS));
    clock.advance(MANIFEST_DELAY_MS);
    await runDue();
    assert.deepEqual(await revisions(), [1]);
  });

  test('after a rename, whose name it has', async (context) => {
    const { node, account, repository, clock, policy, pushOnce, runDue, dueAt, layers } = await start(context);
    await pushOnce();
    await policy();
    clock.advance(MANIFEST_DELAY_MS);
    await runDue();
    assert.equal(await dueAt(), null);
    const rename = { name: 'renamed', takesFormerNames: true };
    accepted(await changeRepository(node, { account, cause: CAUSE }, repository, { rename }));
    await policy();
    assert.equal(await dueAt(), plusMs(clock.now(), MANIFEST_DELAY_MS));
    clock.advance(MANIFEST_DELAY_MS);
    await runDue();
    const text = Buffer.concat(await Array.fromAsync(await layers.get(manifestKey(repository, 0)))).toString();
    assert.match(text, /"repository": "ada\/renamed"/);
  });

  test('after a deletion of a branch and after another default branch as well', async (context) => {
    const { clock, policy, push, pushOnce, changeDefaultBranch, runDue, revisions } = await start(context);
    await pushOnce();
    await push([{ ref: branch('b1'), before: oid('a'), after: null }]);
    await policy();
    clock.advance(MANIFEST_DELAY_MS);
    await runDue();
    const [afterDeletion = -1] = await revisions();
    await changeDefaultBranch('trunk');
    await policy();
    clock.advance(MANIFEST_DELAY_MS);
    await runDue();
    assert.deepEqual((await revisions()).at(-1), afterDeletion + 1);
  });

  test('though the process died before the request was stored: the policy has not passed the change', async (context) => {
    const { clock, policy, pushOnce, dueAt } = await start(context);
    await pushOnce();
    const dying = {
      manifests: {
        want: async () => {
          throw new Error('killed');
        },
      },
    };
    await assert.rejects(policy(dying), /killed/);
    await policy();
    assert.equal(await dueAt(), plusMs(clock.now(), MANIFEST_DELAY_MS));
  });

  test('no earlier for a change whose node has a clock that is ahead', async (context) => {
    const { clock, policy, pushOnce, dueAt } = await start(context);
    const now = clock.now();
    clock.set(plusMs(now, 60 * 60_000));
    await pushOnce();
    clock.set(now);
    await policy();
    assert.equal(await dueAt(), plusMs(now, MANIFEST_DELAY_MS));
  });
});

describe('A store that fails', () => {
  test('is tried again after a minute, and less often the longer it fails, until it is back', async (context) => {
    const { clock, policy, pushOnce, runDue, dueAt, revisions, calls, fail } = await start(context);
    await pushOnce();
    await policy();
    clock.advance(MANIFEST_DELAY_MS);
    fail(new LayerStoreError('unreachable', 'away'));
    const waits: number[] = [];
    for (let time = 0; time < 9; time += 1) {
      await runDue();
      const wait = Date.parse((await dueAt()) ?? '') - Date.parse(clock.now());
      waits.push(wait);
      clock.advance(wait);
    }
    assert.deepEqual(
      waits.map((ms) => ms / MANIFEST_RETRY_FIRST_MS),
      [1, 2, 4, 8, 16, 32, 60, 60, 60],
    );
    assert.equal(waits.at(-1), MANIFEST_RETRY_LAST_MS);
    assert.equal(calls.length, 9, 'one call each time');
    fail(null);
    await runDue();
    assert.deepEqual([await revisions(), await dueAt()], [[0], null]);
  });

  test('is not called for its other repositories in between, which are put off', async (context) => {
    const { clock, policy, pushOnce, runDue, dueAt, calls, fail } = await start(context);
    await pushOnce();
    await policy();
    clock.advance(MANIFEST_DELAY_MS);
    fail(new LayerStoreError('timed-out', 'slow'));
    await runDue();
    await pushOnce();
    await policy();
    clock.advance(MANIFEST_DELAY_MS);
    await runDue();
    assert.equal(calls.length, 1, 'the second step made no call');
    assert.equal(Date.parse((await dueAt()) ?? '') - Date.parse(clock.now()), 10_000);
  });
});

describe('A process', () => {
  test('writes few manifests at the same time, whatever the engine starts, and one of an account', async () => {
    const { node, layers } = await startPushing();
    const { entities } = node;
    let [underWay, most] = [0, 0];
    const release: (() => void)[] = [];
    const held = {
      ...{ get: entities.get.bind(entities), reload: entities.reload.bind(entities) },
      ...{
        known: () => null,
        observe: entities.observe.bind(entities),
        appliedPosition: () => entities.appliedPosition(),
      },
      ...{ residents: () => entities.residents(), start: () => entities.start(), close: () => entities.close() },
      barrier: async () => {
        underWay += 1;
        most = Math.max(most, underWay);
        await new Promise<void>((resolve) => release.push(resolve));
        underWay -= 1;
        return entities.appliedPosition();
      },
    };
    const accountOf = new Map<string, AccountId>();
    const manifests: Pick<ManifestWrites, 'find' | 'done' | 'failed'> = {
      find: async (repository) => ({ repository, account: accountOf.get(repository) ?? uuid(repository), failures: 0 }),
      done: async () => undefined,
      failed: async () => undefined,
    };
    const past = testPastEntities(node);
    const parts = { layers: layersIn(layers), past, retentionMs: 0, log: keepLog() };
    const context = { ...node, entities: held, manifests, ...parts };
    const steps = createManifestSteps(context);
    const mostOf = async (ids: readonly string[]): Promise<number> => {
      most = 0;
      const all = Promise.all(ids.map((id) => steps.write({ id, revision: 0 }, NEVER)));
      do {
        await turnsPass();
        for (const one of release.splice(0)) one();
      } while (underWay > 0);
      await all;
      return most;
    };
    const ids = Array.from({ length: MANIFESTS_AT_ONCE_MAX + 1 }, () => randomUUID());
    assert.equal(await mostOf(ids), MANIFESTS_AT_ONCE_MAX);
    const one = uuid<AccountId>(randomUUID());
    for (const id of ids) accountOf.set(id, one);
    assert.equal(await mostOf(ids), 1);
  });
});

async function turnsPass(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await setImmediate();
}
