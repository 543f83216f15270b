/** Purges of repositories of the real git: what they remove, and what stays. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test, type TestContext } from 'vitest';
import { digest } from '../../../../adapters/node/digest.ts';
import { createFairSlots } from '../../../../core/kernel/fair-slots.ts';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import { DROPPING_BYTES_MAX, REPLACED_LAYERS_KEPT_MS_MIN } from '../../../../core/kernel/limits.ts';
import type { FailpointName } from '../../../../core/ports/failpoints.ts';
import { createPastEntities } from '../../../../core/runtime/past-entities.ts';
import { deleteRepository } from '../../../../core/use-cases/accounts/repositories.ts';
import { planPurge, type PurgeContext, purgeRepository } from '../../../../core/use-cases/auditing/purge-repository.ts';
import { compactLayers } from '../../../../core/use-cases/compacting/compact-layers.ts';
import { committedObjects } from '../../../../core/use-cases/reading/committed-objects.ts';
import { expireLayers } from '../../../../core/use-cases/sweeping/expire-layers.ts';
import { removePurged } from '../../../../core/use-cases/sweeping/remove-purged.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';
import { layersIn } from '../../../support/layers-in.ts';
import { keepLog } from '../../../support/log.ts';
import { createMemoryAccountLog } from '../../../support/memory/account-log.ts';
import { createMemoryPolicyMarks } from '../../../support/memory/delivery-store.ts';
import { createMemorySnapshots } from '../../../support/memory/snapshots.ts';
import { CAUSE } from '../../../support/node.ts';
import { testDatabase } from '../../../support/object-database.ts';
import { appendPush } from '../../../support/memory/pushes.ts';
import { createMemoryObjects } from '../../../support/memory/object-database.ts';

const NEVER = new AbortController().signal;
const RETENTION_MS = 30 * 24 * 60 * 60_000;
const OWNER = { ...CAUSE, actor: { kind: 'user', id: 'ada' } } as const;

/** A repository in which a secret was pushed to `main`, and forced away. */
async function withSecret(context: TestContext, onFailpoint?: (point: FailpointName) => Promise<void>) {
  const reading = await startGitReading();
  context.onTestFinished(() => reading.close());
  const { node, database, git, account } = reading;
  const { events, entities } = node;
  const main = git.commit({ file: 'main\n' });
  await reading.push({ 'refs/heads/main': main });
  const secret = git.object('blob', randomBytes(20_000).toString('hex'));
  const tree = git.tree([{ mode: '100644', name: 'secret', id: secret }]);
  const leaked = git.object(
    'commit',
    `tree ${tree}\nparent ${main}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nleak\n`,
  );
  await reading.push({ 'refs/heads/main': leaked });
  const fixed = git.commit({ file: 'fixed\n' }, { branch: 'fixed', parents: [main] });
  await reading.push({ 'refs/heads/main': fixed });
  const { id } = await reading.current();
  const past = createPastEntities({
    ...{ events, entities, snapshots: createMemorySnapshots(), onFault: () => undefined },
    complete: async (event) => event,
  });
  const purging: PurgeContext = {
    ...node,
    ...{ digest, past, layers: layersIn(database.layers), drops: database.database, retentionMs: RETENTION_MS },
    readModels: createMemoryAccountLog({ events, digest }),
    failpoint: onFailpoint ?? (async () => undefined),
    notifiedTo: async () => null,
    pause: async () => assert.fail('there is nothing to wait for'),
    purgeSlots: createFairSlots({ slots: 1, slotsPerKey: 1 }),
  };
  const origin = { account, cause: OWNER };
  const sweeping = {
    ...node,
    ...{ marks: createMemoryPolicyMarks(), layers: layersIn(database.layers), past, log: keepLog() },
    beforeRemoval: async () => undefined,
  };
  const stored = async () => {
    const layers = await Array.fromAsync(database.layers.list('repositories/'));
    return { count: layers.length, bytes: layers.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
  };
  return {
    ...{ reading, id, main, fixed, secret, leaked, stored, purging, origin },
    plan: () => planPurge(purging, origin, id, NEVER),
    purge: () => purgeRepository(purging, origin, id, NEVER),
    sweep: () => removePurged(sweeping, NEVER),
    expire: () => expireLayers({ ...sweeping, retentionMs: RETENTION_MS }, NEVER),
  };
}

/** Which of the ids a node with an empty cache finds, whoever asks. */
async function found(reading: GitReading, ids: readonly ObjectId[]): Promise<readonly boolean[]> {
  const cold = await testDatabase({ layers: reading.database.layers });
  try {
    const repository = await reading.current();
    const reader = await cold.database.open(committedObjects(repository, repository.entity));
    const tips = [...repository.entity.state.refs.entries()].map(([, { id }]) => id);
    assert.equal((await reader.reachable(tips, tips, 'all')).size, new Set(tips).size);
    const infos = await reader.lookup(ids);
    reader.close();
    return infos.map((info) => info !== null);
  } finally {
    await cold.close();
  }
}

describe('A purge of a living repository', () => {
  test('removes what no ref reaches, from the repository at once and from storage an hour later', async (context) => {
    const { reading, main, fixed, secret, leaked, stored, plan, purge, sweep, expire } = await withSecret(context);
    assert.deepEqual(await found(reading, [main, fixed, leaked, secret]), [true, true, true, true]);
    const before = await stored();
    const planned = await plan();
    assert.deepEqual(await stored(), before, 'a dry run stores nothing');
    const purged = await purge();
    assert.ok(!('refused' in planned) && !('refused' in purged), JSON.stringify([planned, purged]));
    assert.equal(purged.freedBytes, planned.freedBytes);
    assert.ok(purged.event !== null && planned.event === null);
    assert.deepEqual(await found(reading, [main, fixed, leaked, secret]), [true, true, false, false]);
    reading.node.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN - 1);
    await sweep();
    assert.ok((await stored()).count > 1, 'requests under way may read them');
    reading.node.clock.advance(1);
    await sweep();
    const after = await stored();
    assert.deepEqual([after.count, before.bytes - after.bytes], [1, purged.freedBytes]);
    assert.deepEqual(await found(reading, [main, fixed]), [true, true]);
    await reading.push({
      'refs/heads/more': reading.git.commit({ more: 'more\n' }, { branch: 'more', parents: [fixed] }),
    });
    const { entity } = await reading.current();
    const page = await reading.node.events.readStream(entity.stream, { direction: 'forwards', limit: 100 });
    const expiries = page.filter(({ type }) => type === 'LayersExpired');
    assert.deepEqual(
      expiries.map(({ data, actor }) => [data['reason'], actor.kind]),
      [['purge', 'user']],
    );
    reading.node.clock.advance(RETENTION_MS);
    await expire();
    const { entity: later } = await reading.current();
    assert.equal(later.revision, entity.revision, 'the retention has nothing left to say');
  });

  test('takes what earlier compactions replaced along', async (context) => {
    const { reading, id, stored, purge, sweep, purging, origin } = await withSecret(context);
    const parts = { objects: reading.database.database, layers: purging.layers, failpoint: purging.failpoint };
    const compacted = await compactLayers(
      { ...reading.node, ...parts },
      { account: origin.account, repository: id },
      NEVER,
    );
    assert.equal(compacted, 'compacted');
    const purged = await purge();
    assert.ok(!('refused' in purged) && purged.event !== null);
    reading.node.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN);
    await sweep();
    assert.equal((await stored()).count, 1);
    assert.deepEqual(await purge(), { event: null, freedBytes: 0 });
  });

  test('that was killed after the objects were dropped is finished by the next one', async (context) => {
    let alive = false;
    const killed = await withSecret(context, async (point) => {
      if (point === 'dropping-appended' && !alive) throw new Error('killed');
    });
    await assert.rejects(killed.purge(), /killed/);
    alive = true;
    const purged = await killed.purge();
    assert.ok(!('refused' in purged) && purged.event !== null);
    killed.reading.node.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN);
    await killed.sweep();
    assert.equal((await killed.stored()).count, 1);
  });

  test('waits for the webhooks of the last push, and is refused in words if they stay behind', async (context) => {
    const { reading, purging, origin, id, stored } = await withSecret(context);
    const before = await stored();
    const head = await reading.node.events.head();
    let notified = true;
    let pauses = 0;
    const behind: PurgeContext = {
      ...purging,
      notifiedTo: async () => (notified && pauses >= 3 ? head : LOG_START),
      pause: async () => {
        pauses += 1;
        if (notified) assert.deepEqual(await stored(), before, 'nothing is packed before');
        (await purging.purgeSlots.acquire(origin.account))();
      },
    };
    const purged = await purgeRepository(behind, origin, id, NEVER);
    assert.ok(!('refused' in purged) && purged.event !== null);
    assert.equal(pauses, 3);
    const { entity } = await reading.current();
    notified = false;
    await reading.push({ 'refs/heads/gone': reading.git.commit({ gone: 'gone\n' }, { branch: 'gone' }) });
    await reading.push({ 'refs/heads/gone': null });
    assert.deepEqual(await purgeRepository(behind, origin, id, NEVER), { refused: { code: 'webhooks-not-notified' } });
    assert.equal((await reading.current()).entity.revision, Number(entity.revision) + 2);
  });

  test('is refused where the repository is too large to be written anew', async (context) => {
    const { reading, purging, origin, id, main } = await withSecret(context);
    const grow = async (bytes: number) =>
      appendPush(reading.node, createMemoryObjects(), await reading.current(), { 'refs/heads/x': main }, bytes);
    await grow(DROPPING_BYTES_MAX);
    const refused = { refused: { code: 'repository-too-large-to-purge' } };
    assert.deepEqual(await planPurge(purging, origin, id, NEVER), refused);
    assert.deepEqual(await purgeRepository(purging, origin, id, NEVER), refused);
  });
});

describe('A purge of a deleted repository', () => {
  test('removes all its layers', async (context) => {
    const { reading, id, stored, plan, purge, sweep, purging, origin } = await withSecret(context);
    await deleteRepository(purging, origin, id);
    const { bytes } = await stored();
    assert.deepEqual(await plan(), { event: null, freedBytes: bytes });
    const purged = await purge();
    assert.ok(!('refused' in purged) && purged.event !== null);
    assert.equal(purged.freedBytes, bytes);
    reading.node.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN);
    await sweep();
    assert.deepEqual(await stored(), { count: 0, bytes: 0 });
  });
});
