/** What `strata-admin log verify --references` says of a restored log beside stores that are newer than it. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { beforeEach, describe, test } from 'vitest';
import { digest } from '../../../adapters/node/digest.ts';
import { type LogReport, verifyLog } from '../../../apps/admin/verify-log.ts';
import { createLogger } from '../../../apps/server/logger.ts';
import type { LogPosition } from '../../../core/kernel/envelope.ts';
import type { RepositoryId } from '../../../core/kernel/ids.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import type { LayerKey } from '../../../core/repository/layer.ts';
import { manifestFilesIn } from '../../../core/repository/manifest.ts';
import { compactLayers } from '../../../core/use-cases/compacting/compact-layers.ts';
import { recordErasure } from '../../../core/use-cases/erasing/erasure-records.ts';
import { writeManifest } from '../../../core/use-cases/manifests/write-manifest.ts';
import { letLayersGo } from '../../../core/use-cases/repositories/expire-layers-early.ts';
import { deleteRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { cleanUp, suiteEnding } from '../../support/cleanup.ts';
import { type GitReading, startGitReading } from '../../support/git-reading.ts';
import { layersIn } from '../../support/layers-in.ts';
import { keepLog } from '../../support/log.ts';
import { createMemoryAccountLog } from '../../support/memory/account-log.ts';
import { createMemoryCheckpoints, createMemoryLogKeys } from '../../support/memory/log-keys.ts';
import { CAUSE, startNode } from '../../support/node.ts';
import { testPastEntities } from '../../support/past-repositories.ts';

const NEVER = new AbortController().signal;

/** The log as it was at the position. */
function restoredTo(events: EventStore, position: LogPosition): EventStore {
  return {
    ...events,
    head: async () => position,
    readAll: async (after, limit) => (await events.readAll(after, limit)).filter((one) => one.position <= position),
    readStream: async (stream, options) =>
      (await events.readStream(stream, options)).filter((one) => one.position <= position),
  };
}

describe('Beside a log that was restored to an earlier state', () => {
  const ending = suiteEnding();
  let reading: GitReading;
  let id: RepositoryId;
  /** The layers that the log had when it was saved. */
  let before: readonly LayerKey[];
  let saved: EventStore;

  beforeEach(async () => {
    reading = await startGitReading();
    cleanUp(ending, () => reading.close());
    for (const name of ['large', 'a', 'b', 'c', 'd']) {
      await reading.push({ 'refs/heads/main': reading.git.commit({ [name]: randomBytes(300) }) });
    }
    const found = await reading.current();
    ({ id } = found);
    before = [...found.entity.state.layers].map(({ key }) => key);
    await describeNow();
    saved = restoredTo(reading.node.events, await reading.node.events.head());
  });

  const store = () => reading.database.layers;
  const origin = () => ({ account: reading.account, cause: CAUSE });
  const lose = (keys: readonly LayerKey[]) => Promise.all(keys.map((key) => store().delete(key)));

  async function describeNow(): Promise<void> {
    const { node, account } = reading;
    const manifests = { ...node, layers: layersIn(store()), past: testPastEntities(node), log: keepLog() };
    const of = { account, repository: id };
    assert.equal((await writeManifest({ ...manifests, retentionMs: 0 }, of)).outcome, 'written');
  }

  async function compact(): Promise<void> {
    const compacting = { ...reading.node, layers: layersIn(store()), objects: reading.database.database };
    const of = { account: reading.account, repository: id };
    assert.equal(await compactLayers(compacting, of, NEVER), 'compacted');
  }

  async function verify(): Promise<LogReport> {
    const node = await startNode(saved);
    cleanUp(ending, () => node.entities.close());
    const log = createLogger('silent', null);
    const context = { ...node, vault: reading.node.vault, layers: layersIn(store()), digest, log, accountLogs: null };
    return verifyLog(context, { references: true });
  }

  test('layers that a newer manifest names no longer are explained, and their repository is named', async () => {
    await compact();
    await describeNow();
    await lose(before);
    const { faults, explained, unreadable } = await verify();
    assert.deepEqual(faults, []);
    assert.equal(explained.length, before.length);
    for (const key of before)
      assert.ok(
        explained.some((line) => line.includes(key)),
        key,
      );
    assert.match(explained[0] ?? '', /which is not there: the newest manifest, of revision 5 .*, names it no longer$/);
    assert.deepEqual(unreadable, [{ id, name: 'ada/r', deleted: false }]);
  });

  test('they are lost if the store lacks a layer that the newer manifest names', async () => {
    await compact();
    await describeNow();
    const { entity } = await reading.current();
    await lose([...before, ...[...entity.state.layers].map(({ key }) => key)]);
    const { faults, explained, unreadable } = await verify();
    assert.equal(faults.length, before.length);
    assert.match(faults[0] ?? '', /which is not there: it is lost$/);
    assert.deepEqual([explained, unreadable], [[], []]);
  });

  test('a layer that the newest manifest still names is lost', async () => {
    await reading.push({ 'refs/heads/main': reading.git.commit({ e: randomBytes(300) }) });
    await describeNow();
    const [first] = before;
    await lose(before.slice(0, 1));
    const { faults, explained } = await verify();
    assert.deepEqual([faults.length, explained], [1, []]);
    assert.ok(faults[0]?.includes(first ?? 'none'));
  });

  test('a layer is lost if the newest manifest is as old as the log', async () => {
    await compact();
    await lose(before.slice(0, 1));
    assert.deepEqual((await verify()).faults.length, 1);
  });

  test('a replaced layer is lost if the newest manifest is as old as the log', async () => {
    await compact();
    await describeNow();
    saved = restoredTo(reading.node.events, await reading.node.events.head());
    await lose(before.slice(0, 1));
    const { faults, explained } = await verify();
    assert.deepEqual([faults.length, explained], [1, []]);
  });

  test('a layer is lost if there is no manifest', async () => {
    await compact();
    const stored = await Array.fromAsync(store().list('repositories/'));
    await lose(manifestFilesIn(stored).map(({ key }) => key));
    await lose(before.slice(0, 1));
    assert.match((await verify()).faults[0] ?? '', /it is lost$/);
  });

  test('the layers of a repository that was deleted and purged since are explained', async () => {
    await deleteRepository(reading.node, origin(), id);
    await letLayersGo(reading.node, origin(), { id, all: true, reason: 'purge' });
    await describeNow();
    await lose(before);
    const { faults, explained, unreadable } = await verify();
    assert.deepEqual([faults, explained.length], [[], before.length]);
    assert.deepEqual(unreadable, [{ id, name: 'ada/r', deleted: false }]);
  });

  test('the layers of an account that was erased since are explained, and no repository is named', async () => {
    await recordErasure(store(), reading.account);
    await lose(before);
    const { faults, explained, unreadable } = await verify();
    assert.deepEqual([faults, explained.length, unreadable], [[], before.length, []]);
    assert.match(explained[0] ?? '', /which is not there: account .* was erased after this log was saved$/);
  });

  test('a checkpoint of more entries is explained', async () => {
    const { events } = reading.node;
    const readModels = createMemoryAccountLog({ events, digest });
    const { clock } = reading.node;
    const checkpoints = createMemoryCheckpoints({
      readModels,
      digest,
      clock,
      store: store(),
      logKeys: createMemoryLogKeys(),
    });
    await reading.push({ 'refs/heads/main': reading.git.commit({ e: randomBytes(300) }) });
    await checkpoints.sign(reading.account, await events.head());
    const { faults, explained } = await verify();
    assert.deepEqual(faults, []);
    assert.match(explained[0] ?? '', /^The log of account .* was signed with 12 entries, and has only 11 entries$/);
  });
});
