/** Repositories made from a store alone, over a log in memory with the real git. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { beforeAll, describe, type TestContext, test } from 'vitest';
import { streamName } from '../../../../core/kernel/envelope.ts';
import type { ObjectId, Uuid } from '../../../../core/kernel/ids.ts';
import type { FailpointName } from '../../../../core/ports/failpoints.ts';
import type { LayerStore } from '../../../../core/ports/layer-store.ts';
import type { LayerKey } from '../../../../core/repository/layer.ts';
import { compactLayers } from '../../../../core/use-cases/compacting/compact-layers.ts';
import {
  findManifests,
  MANIFEST_BYTES_MAX,
  readManifest,
  readManifestRefs,
} from '../../../../core/use-cases/manifests/read-manifest.ts';
import { type RebuildWanted, rebuildRepository } from '../../../../core/use-cases/manifests/rebuild-repository.ts';
import { writeManifest } from '../../../../core/use-cases/manifests/write-manifest.ts';
import { findRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { newAccount } from '../../../support/accounts.ts';
import { cleanUp, type Ending, suiteEnding } from '../../../support/cleanup.ts';
import { startGitReading } from '../../../support/git-reading.ts';
import { layersIn } from '../../../support/layers-in.ts';
import { keepLog } from '../../../support/log.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { testDatabase } from '../../../support/object-database.ts';
import { testPastEntities } from '../../../support/past-repositories.ts';

const NEVER = new AbortController().signal;

/** A store with one repository: branches, a tag, a forced push, a deletion and a compaction. */
async function startSource(context: Ending) {
  const reading = await startGitReading();
  cleanUp(context, () => reading.close());
  const { git, database, account } = reading;
  const first = git.commit({ first: randomBytes(300) });
  await reading.push({ 'refs/heads/main': first, 'refs/heads/topic': git.commit({ second: randomBytes(300) }) });
  git.git(['tag', '-a', '-m', 'one', 'v1', first]);
  const tag = git.line(['rev-parse', 'refs/tags/v1']) as ObjectId;
  await reading.push({ 'refs/tags/v1': tag, 'refs/heads/gone': git.commit({ third: randomBytes(300) }) });
  await reading.push({ 'refs/heads/main': git.commit({ other: randomBytes(300) }, { parents: [] }) });
  await reading.push({ 'refs/heads/gone': null });
  for (let size = 0; size < 5; size += 1) {
    await reading.push({ 'refs/heads/many': git.commit({ [`file-${size}`]: randomBytes(300) }) });
  }
  const { id } = await reading.current();
  const layers = layersIn(database.layers);
  const compacting = { ...reading.node, layers, objects: database.database };
  assert.equal(await compactLayers(compacting, { account, repository: id }, NEVER), 'compacted');
  await writeManifest(
    { ...reading.node, layers, past: testPastEntities(reading.node), retentionMs: 0, log: keepLog() },
    { account, repository: id },
  );
  return { reading, store: database.layers };
}

let source: Awaited<ReturnType<typeof startSource>>;
const ending = suiteEnding();
beforeAll(async () => {
  source = await startSource(ending);
});

/** A service that knows nothing of the store. */
async function startTarget(context: TestContext, store: LayerStore) {
  const node = await startNode(createMemoryEventStore());
  cleanUp(context, () => node.entities.close());
  const [database, reading] = [await testDatabase(), await testDatabase({ layers: store })];
  cleanUp(context, async () => {
    await database.close();
    await reading.close();
  });
  const account = await newAccount(node, 'grace');
  const rebuild = async (
    onFailpoint: (point: FailpointName) => Promise<void> = async () => undefined,
    logs: RebuildWanted['logs'] = [],
  ) => {
    const [found] = [...(await findManifests(store, { repository: null, revision: null })).values()];
    const manifest = await readManifest(store, found ?? assert.fail());
    assert.ok(!('invalid' in manifest));
    return rebuildRepository(
      {
        ...node,
        layers: layersIn(database.layers),
        objects: database.database,
        usage: { usageOf: async () => assert.fail('an operator is held by no quota') },
        onLayer: () => undefined,
        failpoint: onFailpoint,
        source: { store, objects: reading.database },
      },
      {
        manifest,
        account,
        username: 'grace',
        name: 'again',
        storageBucketId: 'default',
        logs,
        cause: CAUSE,
        signal: NEVER,
      },
    );
  };
  const current = async () => {
    await node.entities.barrier();
    return findRepository(node, 'grace', 'again');
  };
  return { node, database, account, rebuild, current };
}

function altered(store: LayerStore, which: (key: LayerKey) => boolean): LayerStore {
  return {
    ...store,
    get: async (key, range) => {
      if (!which(key)) return store.get(key, range);
      const bytes = Buffer.concat(await Array.fromAsync(await store.get(key)));
      const at = Math.floor(bytes.length / 2);
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      return (async function* () {
        yield bytes;
      })();
    },
  };
}

describe('A rebuild', () => {
  test('makes a repository with the same refs, HEAD and objects, as one push', async (context) => {
    const { reading, store } = source;
    const before = (await Array.fromAsync(store.list(''), ({ key }) => key)).sort();
    const { node, rebuild, current } = await startTarget(context, store);
    const rebuilt = await rebuild();
    assert.ok(!('refused' in rebuilt));
    const [old, made] = [await reading.current(), (await current()) ?? assert.fail()];
    assert.deepEqual(new Map(made.entity.state.refs.entries()), new Map(old.entity.state.refs.entries()));
    assert.deepEqual([made.defaultBranch, made.entity.state.layers.length], [old.defaultBranch, 1]);
    assert.equal(rebuilt.refs, 4);
    const { stream } = made.entity;
    const events = await node.events.readStream(stream, { direction: 'forwards', limit: 10 });
    assert.deepEqual(
      events.map(({ type, data }) => [type, data['door']]),
      [['RefsUpdated', 'admin']],
    );
    assert.deepEqual((await Array.fromAsync(store.list(''), ({ key }) => key)).sort(), before);
  });

  test('refuses a repository that holds anything, and changes nothing', async (context) => {
    const { store } = source;
    const { rebuild, current } = await startTarget(context, store);
    await rebuild();
    const before = (await current())?.entity.revision;
    assert.deepEqual(await rebuild(), { refused: { kind: 'exists' } });
    assert.equal((await current())?.entity.revision, before);
  });

  test('that died before its push is finished by the next one', async (context) => {
    const { store } = source;
    const { rebuild, current } = await startTarget(context, store);
    const dying = rebuild(async (point) => {
      if (point === 'push-layer-stored') throw new Error('killed');
    });
    await assert.rejects(dying, /killed/);
    const left = await current();
    assert.equal(left?.entity.state.refs.size, 0);
    const rebuilt = await rebuild();
    assert.ok(!('refused' in rebuilt));
    assert.equal(rebuilt.repository.id, left?.id);
    assert.equal((await current())?.entity.state.refs.size, 4);
  });

  test("of another account's manifest is in both logs once, also after a kill", async (context) => {
    const { reading, store } = source;
    const { node, account, rebuild } = await startTarget(context, store);
    const owner = await newAccount(node, 'ada');
    const logs = [account, owner].map((of) => ({ account: of, cause: { ...CAUSE, requestId: node.ids.next<Uuid>() } }));
    const dying = rebuild(async (point) => {
      if (point === 'push-layer-stored') throw new Error('killed');
    }, logs);
    await assert.rejects(dying, /killed/);
    const told = () =>
      Promise.all(
        logs.map(async ({ account: of }) => {
          const page = await node.events.readStream(streamName('account', of), { direction: 'forwards', limit: 100 });
          const found = page.filter(({ type }) => type === 'RepositoryRebuilt');
          return found.map((event) => [event.data, event.accountId, event.isRecord, event.requestId]);
        }),
      );
    const before = await told();
    const rebuilt = await rebuild(undefined, logs);
    assert.ok(!('refused' in rebuilt));
    const data = { repository_id: rebuilt.repository.id, source_repository_id: (await reading.current()).id };
    assert.deepEqual(
      before,
      logs.map(({ account: of, cause }) => [[data, of, true, cause.requestId]]),
    );
    assert.deepEqual(await told(), before);
  });

  test('of an altered layer fails before anything is created', async (context) => {
    const { store } = source;
    const { rebuild, current } = await startTarget(
      context,
      altered(store, (key) => key.endsWith('.tar')),
    );
    await assert.rejects(rebuild(), { code: 'layer-corrupt' });
    assert.equal(await current(), null);
  });

  test('of altered refs is refused with what is wrong', async (context) => {
    const { store } = source;
    const { rebuild, current } = await startTarget(
      context,
      altered(store, (key) => key.endsWith('.refs')),
    );
    const rebuilt = await rebuild();
    assert.ok('refused' in rebuilt && rebuilt.refused.kind === 'refs');
    assert.match(rebuilt.refused.detail, /^(has another SHA-256|holds a line that is no ref)/);
    assert.equal(await current(), null);
  });
});

describe('A manifest of a hostile store', () => {
  test('is read up to its limit and no further', async () => {
    const { store } = source;
    const [found] = [...(await findManifests(store, { repository: null, revision: null })).values()];
    assert.ok(found !== undefined);
    const past = await readManifest(store, { ...found, sizeBytes: MANIFEST_BYTES_MAX + 1 });
    assert.deepEqual(past, { invalid: 'is larger than a manifest may be' });
    assert.ok(!('invalid' in (await readManifest(store, { ...found, sizeBytes: MANIFEST_BYTES_MAX }))));
    const grown = await readManifest(store, { ...found, sizeBytes: 10 });
    assert.deepEqual(grown, { invalid: 'grew while it was read' });
  });

  test('leads to no other repository, no other file, and no endless refs', async (context) => {
    const { store } = source;
    const [found] = [...(await findManifests(store, { repository: null, revision: null })).values()];
    assert.ok(found !== undefined);
    const text = Buffer.concat(await Array.fromAsync(await store.get(found.key))).toString();
    const saying = async (from: RegExp, to: string) => {
      const other = Buffer.from(text.replace(from, to));
      const hostile: LayerStore = {
        ...store,
        get: async () =>
          (async function* () {
            yield other;
          })(),
      };
      return readManifest(hostile, { ...found, sizeBytes: other.length });
    };
    for (const [from, to] of [
      [/"file": "[^"]*"/, '"file": "../../../../etc/passwd"'],
      [/"repository_id": "[^"]*"/, '"repository_id": "0192f0c1-0000-7000-8000-000000000002"'],
      [/"revision": \d+/, '"revision": 1'],
      [/"id": "[^"]*"/, '"id": "../../other"'],
      [/"pack": "[^"]*"/, '"pack": "$(reboot)"'],
      [/"head": "[^"]*"/, '"head": "refs/heads/../../config"'],
      [/"size_bytes": \d+/, '"size_bytes": -1'],
      [/^\{/, '['],
    ] as const) {
      assert.ok('invalid' in (await saying(from, to)), to);
    }
    const manifest = await readManifest(store, found);
    assert.ok(!('invalid' in manifest));
    const { digest } = (await startTarget(context, store)).node;
    const line = Buffer.from(`${'a'.repeat(40)} refs/heads/x\n`);
    let read = 0;
    const endless: LayerStore = {
      ...store,
      get: async () =>
        (async function* () {
          for (; ; read += line.length) yield line;
        })(),
    };
    const refs = await readManifestRefs(endless, manifest, digest);
    assert.deepEqual(refs, { invalid: 'is larger than the manifest says' });
    assert.ok(read <= manifest.refs.sizeBytes, `${read} bytes were read`);
  });
});
