/** What `strata-admin storage adopt` makes of a restored log beside a store that is newer than it. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { beforeEach, describe, test } from 'vitest';
import { digest } from '../../../adapters/node/digest.ts';
import { type AdoptionReport, adoptStorage } from '../../../apps/admin/adopt-storage.ts';
import { verifyLog } from '../../../apps/admin/verify-log.ts';
import { createLogger } from '../../../apps/server/logger.ts';
import { refName } from '../../../core/git/ref-name.ts';
import type { LogPosition } from '../../../core/kernel/envelope.ts';
import type { ObjectId, RepositoryId } from '../../../core/kernel/ids.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import type { LayerKey } from '../../../core/repository/layer.ts';
import { compactLayers } from '../../../core/use-cases/compacting/compact-layers.ts';
import { dropUnreached } from '../../../core/use-cases/compacting/drop-unreached.ts';
import { recordErasure } from '../../../core/use-cases/erasing/erasure-records.ts';
import { writeManifest } from '../../../core/use-cases/manifests/write-manifest.ts';
import { letLayersGo } from '../../../core/use-cases/repositories/expire-layers-early.ts';
import {
  changeRepository,
  deleteRepository,
  findRepositoryById,
} from '../../../core/use-cases/repositories/repositories.ts';
import { cleanUp, suiteEnding } from '../../support/cleanup.ts';
import { contextOf, found, NEVER, ofRepository, RETENTION_MS } from '../../support/deleted-branch.ts';
import { type GitReading, startGitReading } from '../../support/git-reading.ts';
import { layersIn } from '../../support/layers-in.ts';
import { keepLog } from '../../support/log.ts';
import { CAUSE, startNode, type TestNode } from '../../support/node.ts';
import { testPastEntities } from '../../support/past-repositories.ts';
import { restoredLog } from '../../support/restored-log.ts';

const log = createLogger('silent', null);

describe('Adopting the layers of a newer manifest', () => {
  const ending = suiteEnding();
  let reading: GitReading;
  let id: RepositoryId;
  let main: ObjectId;
  /** The tip of a branch that is purged after the backup. */
  let side: ObjectId;
  let backup: LogPosition;

  beforeEach(async () => {
    reading = await startGitReading();
    cleanUp(ending, () => reading.close());
    const { git } = reading;
    main = git.commit({ large: randomBytes(3_000) });
    await reading.push({ 'refs/heads/main': main });
    side = git.commit({ secret: randomBytes(300) }, { branch: 'side', parents: [main] });
    await reading.push({ 'refs/heads/side': side });
    ({ id } = await reading.current());
    await describeNow();
    backup = await reading.node.events.head();
  });

  const store = () => reading.database.layers;
  const origin = () => ({ account: reading.account, cause: CAUSE });

  /** Writes the newest manifest, as a node does behind a change. */
  async function describeNow(node: TestNode = reading.node): Promise<void> {
    const manifests = { ...node, layers: layersIn(store()), past: testPastEntities(node), log: keepLog() };
    const of = { account: reading.account, repository: id };
    assert.equal((await writeManifest({ ...manifests, retentionMs: RETENTION_MS }, of)).outcome, 'written');
  }

  async function layersNow(): Promise<readonly LayerKey[]> {
    const { state } = (await reading.current()).entity;
    return [...state.layers].map(({ key }) => key);
  }

  const lose = (keys: readonly LayerKey[]) => Promise.all(keys.map((key) => store().delete(key)));

  /** Deletes and purges the branch, and pushes another commit. The bytes of the purge leave the store. */
  async function purgeSide(): Promise<ObjectId> {
    const before = await layersNow();
    await reading.push({ 'refs/heads/side': null });
    const context = { ...contextOf(reading, {}), retentionMs: 0 };
    assert.equal(await dropUnreached(context, await ofRepository(reading), NEVER), 'dropped');
    await letLayersGo(reading.node, origin(), { id, all: false, reason: 'purge' });
    await lose(before);
    const later = reading.git.commit({ later: randomBytes(300) }, { parents: [main] });
    await reading.push({ 'refs/heads/main': later });
    await describeNow();
    return later;
  }

  async function restore(): Promise<TestNode> {
    const node = await startNode(await restoredLog(reading.node.events, backup), { vault: reading.node.vault });
    cleanUp(ending, () => node.entities.close());
    return node;
  }

  function setUp(node: TestNode) {
    const context = { ...node, operator: 'grace@host' };
    return { context, layers: layersIn(store()), settings: { cacheBytesMax: 2 ** 30 }, log };
  }

  async function adopt(node: TestNode, options: { name?: string; yes?: boolean } = {}): Promise<AdoptionReport> {
    const { name = null, yes = true } = options;
    return (await adoptStorage(setUp(node), { name, yes })) ?? assert.fail('no such repository');
  }

  async function verify(node: TestNode) {
    // Without what another command keeps in memory.
    const { events } = node;
    const fresh = await startNode(events, { vault: node.vault });
    cleanUp(ending, () => fresh.entities.close());
    const { faults, explained, unreadable } = await verifyLog(
      { ...fresh, layers: layersIn(store()), digest, log, accountLogs: null },
      { references: true },
    );
    return { faults, explained, unreadable };
  }

  /** After a node has started, whose first manifest takes the place of that of the log that was lost. */
  async function verifyLater(node: TestNode) {
    await describeNow(node);
    return verify(node);
  }

  const nothingWrong = { faults: [], explained: [], unreadable: [] };

  async function refsOf(node: TestNode): Promise<Readonly<Record<string, string>>> {
    const repository = await findRepositoryById(node, reading.account, id);
    const refs = repository?.entity.state.refs ?? assert.fail('The repository is not there');
    return Object.fromEntries([...refs.entries()].map(([name, ref]) => [name, ref.id]));
  }

  /** Which of the ids a node with an empty cache finds, after it has read all that the refs reach. */
  const foundIn = (node: TestNode, ids: readonly ObjectId[]) =>
    found(
      {
        ...reading,
        current: async () => (await findRepositoryById(node, reading.account, id)) ?? assert.fail('no repository'),
      },
      ids,
    );

  const typesSince = async (events: EventStore): Promise<readonly string[]> =>
    (await events.readAll(backup, 100)).map(({ type }) => type);

  test('a repository that was purged after the backup can be read again, without the refs whose tips are gone', async () => {
    const later = await purgeSide();
    const node = await restore();
    assert.equal((await verify(node)).unreadable.length, 1);
    const { adopted, refused } = await adopt(node);
    assert.deepEqual(refused, []);
    assert.deepEqual(adopted, [
      {
        id,
        repository: 'ada/r',
        deleted: false,
        manifest_revision: 5,
        layers_added: 2,
        layers_removed: 2,
        refs_deleted: [{ ref: 'refs/heads/side', target: side }],
      },
    ]);
    assert.deepEqual(await typesSince(node.events), ['RefsUpdated', 'LayersCompacted', 'LayersExpired']);
    assert.equal((await node.events.readAll(backup, 1))[0]?.data['door'], 'admin');
    assert.deepEqual(await refsOf(node), { 'refs/heads/main': main });
    // What was pushed after the backup is there, though no ref names it.
    assert.deepEqual(await foundIn(node, [main, side, later]), [true, false, true]);
    assert.deepEqual(await verify(node), nothingWrong);
    assert.deepEqual(await verifyLater(node), nothingWrong);
  });

  test('layers that compactions before the backup replaced, and that are gone, are let go too', async () => {
    const compacting = { ...reading.node, layers: layersIn(store()), objects: reading.database.database };
    const replaced = await layersNow();
    assert.equal(await compactLayers(compacting, await ofRepository(reading), NEVER), 'compacted');
    await describeNow();
    backup = await reading.node.events.head();
    await purgeSide();
    await lose(replaced);
    const node = await restore();
    await adopt(node);
    const letGo = (await node.events.readAll(backup, 100)).filter(({ type }) => type === 'LayersExpired');
    assert.deepEqual(
      letGo.map(({ data }) => data['compacted_at']),
      [2, null],
    );
    assert.deepEqual(await verifyLater(node), nothingWrong);
  });

  test('it says what it would do and changes nothing without yes', async () => {
    await purgeSide();
    const node = await restore();
    const would = await adopt(node, { yes: false });
    assert.deepEqual(await typesSince(node.events), []);
    assert.deepEqual(await adopt(node), would);
  });

  test('the second time it does nothing', async () => {
    await purgeSide();
    const node = await restore();
    await adopt(node);
    assert.deepEqual(await adopt(node), { adopted: [], refused: [] });
    assert.equal((await typesSince(node.events)).length, 3);
  });

  test('a run that died after it deleted the refs is finished by the next', async () => {
    await purgeSide();
    const node = await restore();
    node.clock.advance(60_000);
    const dies: EventStore = {
      ...node.events,
      append: async (request) => {
        if (request.events.some(({ type }) => type === 'LayersCompacted')) throw new Error('died');
        return node.events.append(request);
      },
    };
    await assert.rejects(adopt({ ...node, events: dies }), /died/);
    assert.deepEqual(await typesSince(node.events), ['RefsUpdated']);
    const again = await adopt(node);
    assert.deepEqual([again.refused, again.adopted[0]?.refs_deleted], [[], []]);
    assert.deepEqual(await verifyLater(node), nothingWrong);
  });

  test('layers that the manifest names no longer stay in the store while they are there', async () => {
    const before = await layersNow();
    await purgeSide();
    const [first = assert.fail('no layer')] = before;
    const lost = await store().head(first);
    assert.equal(lost, null);
    const node = await restore();
    // The second of the two is still there, as while a purge waits for requests under way.
    const [, second = assert.fail('one layer')] = before;
    const bytes = Buffer.from('still there');
    await store().put(
      second,
      (async function* () {
        yield bytes;
      })(),
      bytes.length,
    );
    await adopt(node);
    const expired = (await node.events.readAll(backup, 100)).filter(({ type }) => type === 'LayersExpired');
    assert.ok(expired.every(({ data }) => !JSON.stringify(data).includes(second.slice(-40, -4))));
    assert.deepEqual(await typesSince(node.events), [
      'RefsUpdated',
      'LayersCompacted',
      'LayersCompacted',
      'LayersExpired',
    ]);
    assert.ok((await store().head(second)) !== null);
    assert.deepEqual(await refsOf(node), { 'refs/heads/main': main });
  });

  test('a repository that the log knows as deleted stays deleted, and cannot come back', async () => {
    await deleteRepository(reading.node, origin(), id);
    backup = await reading.node.events.head();
    const before = await Array.fromAsync(store().list('repositories/'));
    const keys = before.flatMap(({ key }) => (key.endsWith('.tar') ? [key] : []));
    await letLayersGo(reading.node, origin(), { id, all: true, reason: 'purge' });
    await describeNow();
    await lose(keys);
    const node = await restore();
    assert.deepEqual((await verify(node)).unreadable, [{ id, name: 'ada/r', deleted: true }]);
    const { adopted, refused } = await adopt(node);
    assert.deepEqual([adopted[0]?.deleted, adopted[0]?.refs_deleted, refused], [true, [], []]);
    assert.deepEqual(await typesSince(node.events), ['LayersExpired']);
    assert.deepEqual(await verifyLater(node), nothingWrong);
  });

  test('a repository that was deleted and purged after the backup is empty', async () => {
    const before = await layersNow();
    await deleteRepository(reading.node, origin(), id);
    await letLayersGo(reading.node, origin(), { id, all: true, reason: 'purge' });
    await describeNow();
    await lose(before);
    const node = await restore();
    const { adopted } = await adopt(node);
    assert.deepEqual(
      adopted[0]?.refs_deleted.map(({ ref }) => ref),
      ['refs/heads/main', 'refs/heads/side'],
    );
    assert.deepEqual(await refsOf(node), {});
    assert.deepEqual(await verifyLater(node), nothingWrong);
  });

  test('the repositories of an erased account are left to its erasure', async () => {
    await purgeSide();
    await recordErasure(store(), reading.account);
    const node = await restore();
    assert.deepEqual(await adopt(node), { adopted: [], refused: [] });
  });

  test('a repository whose layers are lost is refused and named', async () => {
    await lose((await layersNow()).slice(0, 1));
    const node = await restore();
    const { adopted, refused } = await adopt(node);
    assert.deepEqual(adopted, []);
    assert.match(refused[0]?.reason ?? '', /they are lost/);
    assert.deepEqual(await typesSince(node.events), []);
  });

  test('nothing is adopted over what was pushed after the restore', async () => {
    await purgeSide();
    const node = await restore();
    node.clock.advance(60_000);
    const stream = (await reading.current()).entity.stream;
    const pushed = (await node.events.readStream(stream, { direction: 'backwards', limit: 1 }))[0];
    assert.ok(pushed !== undefined);
    const { revision, position: _position, stream: _stream, ...event } = pushed;
    const data = { ...event.data, updates: [], layer: null };
    const next = { ...event, id: node.ids.next<typeof event.id>(), occurredAt: node.clock.now(), data };
    await node.events.append({ stream, expected: revision, events: [next] });
    const { adopted, refused } = await adopt(node);
    assert.deepEqual(adopted, []);
    assert.match(refused[0]?.reason ?? '', /the log has taken on more since it was restored/);
  });

  test('a layer of the manifest with other bytes is refused', async () => {
    await purgeSide();
    const [key = assert.fail('no layer')] = await layersNow();
    const stored = await store().head(key);
    await store().delete(key);
    const bytes = randomBytes(stored?.sizeBytes ?? 0);
    await store().put(
      key,
      (async function* () {
        yield bytes;
      })(),
      bytes.length,
    );
    const node = await restore();
    const { adopted, refused } = await adopt(node);
    assert.deepEqual([adopted, refused.length], [[], 1]);
    assert.deepEqual(await typesSince(node.events), []);
  });

  test('one repository is chosen by its name, and a name that nobody has is refused', async () => {
    await purgeSide();
    const node = await restore();
    assert.equal(await adoptStorage(setUp(node), { name: 'ada/other', yes: true }), null);
    assert.equal((await adopt(node, { name: 'ada/r', yes: false })).adopted.length, 1);
    const rename = { name: 'renamed', takesFormerNames: true };
    await changeRepository(node, origin(), id, { rename });
    assert.equal((await adopt(node, { name: 'ada/r' })).adopted.length, 1, 'an old name leads on');
  });

  test('the operator stands in the log', async () => {
    await purgeSide();
    const node = await restore();
    await adopt(node);
    for (const { actor, sourceAddressRef } of await node.events.readAll(backup, 100)) {
      assert.deepEqual(actor, { kind: 'admin', id: 'storage adopt' });
      assert.ok(sourceAddressRef !== null);
    }
    assert.equal(refName('refs/heads/main') in (await refsOf(node)), true);
  });
});
