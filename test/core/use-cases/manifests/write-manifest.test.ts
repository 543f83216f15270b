/** Manifests of repositories of the real git, over a log in memory: what they hold, when they leave, and races. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { describe, type TestContext, test } from 'vitest';
import { accounts } from '../../../../core/account/evolve.ts';
import { type AccountId, type ObjectId, plusMs, type RepositoryId, timestamp } from '../../../../core/kernel/ids.ts';
import type { FailpointName } from '../../../../core/ports/failpoints.ts';
import type { LayerStore } from '../../../../core/ports/layer-store.ts';
import { repositories } from '../../../../core/repository/evolve.ts';
import { manifestKey, parseManifest } from '../../../../core/repository/manifest.ts';
import type { OpenRepository } from '../../../../core/repository/state.ts';
import { compactLayers } from '../../../../core/use-cases/compacting/compact-layers.ts';
import { eraseAccount } from '../../../../core/use-cases/erasing/erase-account.ts';
import {
  MANIFEST_FILES_LISTED_MAX,
  MANIFEST_REFS_KEPT_MS,
  type ManifestContext,
  removeManifestsBefore,
  writeManifest,
} from '../../../../core/use-cases/manifests/write-manifest.ts';
import { letLayersGo } from '../../../../core/use-cases/repositories/expire-layers-early.ts';
import {
  changeRepository,
  closeRepository,
  deleteRepository,
} from '../../../../core/use-cases/repositories/repositories.ts';
import { expireLayers, type LayerExpiryContext } from '../../../../core/use-cases/sweeping/expire-layers.ts';
import { accepted } from '../../../support/accounts.ts';
import { copyStore, rebuildByScript } from '../../../support/bucket-script.ts';
import { cleanUp } from '../../../support/cleanup.ts';
import { runGit } from '../../../support/git.ts';
import { startGitReading } from '../../../support/git-reading.ts';
import { layersIn } from '../../../support/layers-in.ts';
import { keepLog } from '../../../support/log.ts';
import { createMemoryPolicyMarks } from '../../../support/memory/delivery-store.ts';
import { createMemoryLayerStore } from '../../../support/memory/layer-store.ts';
import { CAUSE, type TestNode } from '../../../support/node.ts';
import { testPastEntities } from '../../../support/past-repositories.ts';
import { startPushing } from '../../../support/pushing.ts';
import { branch, oid } from '../../../support/repository-history.ts';
import { tempDir } from '../../../support/temp-dir.ts';

const NEVER = new AbortController().signal;
const REFS = 20_000;
const DAY_MS = 24 * 60 * 60_000;

interface Fixture {
  readonly node: TestNode;
  readonly account: AccountId;
  /** Holds the manifests alone; its clock is the node's. */
  readonly store: LayerStore;
  readonly id: RepositoryId;
  /** Pushes a branch of this name. */
  push(name: string): Promise<void>;
  /** The repository's stream. */
  current(): Promise<{ readonly state: OpenRepository; readonly revision: number }>;
  context(onFailpoint?: (point: FailpointName) => Promise<void>): ManifestContext;
  write(context?: ManifestContext): ReturnType<typeof writeManifest>;
  /** The names of the stored files, in order. */
  names(): Promise<readonly string[]>;
}

/** A repository whose objects are not real. */
async function start(context: TestContext, retentionMs = 30 * DAY_MS, defaultBranch = 'main'): Promise<Fixture> {
  const { node, account, repository: id, push } = await startPushing({ defaultBranch });
  cleanUp(context, () => node.entities.close());
  const store = createMemoryLayerStore(() => node.clock.now());
  const contextOf: Fixture['context'] = (failpoint = async () => undefined) => ({
    ...node,
    layers: layersIn(store),
    past: testPastEntities(node),
    failpoint,
    log: keepLog(),
    retentionMs,
  });
  return {
    ...{ node, account, store, id },
    push: async (name) => {
      assert.ok('results' in (await push([{ ref: branch(name), before: null, after: oid('a') }])));
    },
    current: async () => {
      await node.entities.barrier();
      const { state, revision } = await node.entities.get(repositories, id);
      assert.ok(state.status === 'open' && revision !== 'none');
      return { state, revision };
    },
    context: contextOf,
    write: (given = contextOf()) => writeManifest(given, { account, repository: id }),
    names: async () => (await Array.fromAsync(store.list(''), ({ key }) => path.posix.basename(key))).sort(),
  };
}

/** A repository of the real git, whose manifests lie beside its layers. */
async function startReal(context: TestContext) {
  const reading = await startGitReading();
  cleanUp(context, () => reading.close());
  const { node, database, account, git } = reading;
  const { id } = await reading.current();
  const layers = layersIn(database.layers);
  const manifests: ManifestContext = { ...node, layers, past: testPastEntities(node), log: keepLog(), retentionMs: 0 };
  return {
    ...{ reading, node, database, account, git, id, layers, manifests },
    push: async (name: string, ref = 'refs/heads/main') => {
      const commit = git.commit({ [name]: randomBytes(300) });
      await reading.push({ [ref]: commit });
      return commit;
    },
    compact: async () => {
      const compacting = { ...node, layers, objects: database.database };
      assert.equal(await compactLayers(compacting, { account, repository: id }, NEVER), 'compacted');
    },
    write: () => writeManifest(manifests, { account, repository: id }),
  };
}

async function textOf(store: LayerStore, key: Parameters<LayerStore['get']>[0]): Promise<string> {
  return Buffer.concat(await Array.fromAsync(await store.get(key))).toString();
}

function revisionsIn(names: readonly string[], ending: '.json' | '.refs'): readonly number[] {
  return names.filter((name) => name.endsWith(ending)).map((name) => Number(name.slice(0, 16)));
}

describe('A manifest', () => {
  test('and the layers that it names are a repository, by the script of the documentation', async (context) => {
    const { reading, push, compact, write, git, database, id } = await startReal(context);
    const first = await push('first');
    await reading.push({ 'refs/heads/odd"name': first, 'refs/heads/gone': await push('gone') });
    git.git(['tag', '-a', '-m', 'one', 'v1', first]);
    await reading.push({ 'refs/tags/v1': git.line(['rev-parse', 'refs/tags/v1']) as ObjectId });
    await reading.push({ 'refs/heads/main': first, 'refs/heads/gone': null });
    for (let size = 0; size < 6; size += 1) await push(`file-${size}`, 'refs/heads/other');
    await compact();
    await push('after', 'refs/heads/other');
    await write();

    const folder = await tempDir(context);
    await copyStore(database.layers, `repositories/${id}/`, path.join(folder, 'store'));
    const bare = path.join(folder, 'rebuilt.git');
    await rebuildByScript(path.join(folder, 'store'), bare);
    const { entity } = await reading.current();
    const peeled = [...entity.state.refs.entries()].flatMap(([name, ref]) => [
      [ref.id, name],
      ...(ref.peeled === null ? [] : [[ref.peeled, `${name}^{}`]]),
    ]);
    const expected = [[first, 'HEAD'], ...peeled].map((line) => line.join('\t'));
    const listed = runGit(['ls-remote', bare]).toString().trim().split('\n');
    assert.deepEqual(listed.sort(), expected.sort());
    runGit(['fsck', '--full', '--strict'], { cwd: bare });
  });

  test('whose refs were altered stops the script', async (context) => {
    const { push, write, database, id } = await startReal(context);
    const store = database.layers;
    await push('first');
    await write();
    const folder = await tempDir(context);
    const altered: LayerStore = {
      ...store,
      get: async (key) => {
        if (!key.endsWith('.refs')) return store.get(key);
        const text = await textOf(store, key);
        return (async function* () {
          yield Buffer.from(text.replace('main', 'evil'));
        })();
      },
    };
    await copyStore(altered, `repositories/${id}/`, path.join(folder, 'whole'));
    const script = rebuildByScript(path.join(folder, 'whole'), path.join(folder, 'rebuilt.git'));
    await assert.rejects(script, /\.refs is not what the manifest names/);
  });

  test('is read back as what it says', async (context) => {
    const { push, write, store, id, current } = await start(context);
    await push('first');
    await write();
    const { state, revision } = await current();
    const text = await textOf(store, manifestKey(id, revision));
    const manifest = parseManifest(JSON.parse(text), id);
    assert.ok(!('invalid' in manifest), JSON.stringify(manifest));
    assert.deepEqual(manifest.layers, [...state.layers]);
    assert.deepEqual([manifest.name, manifest.revision, manifest.head], ['ada/r', revision, 'refs/heads/main']);
    const [refs = ''] = (await Array.fromAsync(store.list(''), ({ key }) => key)).filter((key) =>
      key.endsWith('.refs'),
    );
    const lines = await textOf(store, refs as Parameters<LayerStore['get']>[0]);
    assert.equal(lines, `# pack-refs with: peeled fully-peeled sorted \n${oid('a')} refs/heads/first\n`);
    assert.deepEqual([manifest.refs.count, manifest.refs.sizeBytes], [1, lines.length]);
  });

  test('is not written for a repository without a push, nor for one that was deleted', async (context) => {
    const { account, push, write, names, context: contextOf, id } = await start(context);
    assert.deepEqual([await write(), await names()], [{ outcome: 'kept' }, []]);
    await push('first');
    await write();
    const before = await names();
    await closeRepository({ ...contextOf() }, { account, cause: CAUSE }, id);
    assert.deepEqual([await write(), await names()], [{ outcome: 'kept' }, before]);
  });

  test('leaves the store when its account is erased', async (context) => {
    const { node, account, push, write, names, context: contextOf } = await start(context);
    await push('first');
    await write();
    accepted(await eraseAccount(node, CAUSE, account));
    const dying = contextOf(async () => {
      throw new Error('killed');
    });
    await assert.rejects(write(dying), /killed/);
    assert.deepEqual([await write(), await names()], [{ outcome: 'erased' }, []]);
  });

  test('of many refs is written in parts, and the event loop turns between them', async (context) => {
    const pushing = await startPushing();
    const { node, account, repository } = pushing;
    const commands = Array.from({ length: REFS }, (_, at) => ({
      ref: branch(`heads-${at}`),
      before: null,
      after: oid('a'),
    }));
    assert.ok('results' in (await pushing.push(commands)));
    let turns = 0;
    const clock = { ...node.clock, nextTurn: async () => void (turns += 1) };
    const parts: number[] = [];
    const store: LayerStore = {
      ...pushing.layers,
      put: async (key, body, sizeBytes) => {
        const watched = async function* () {
          for await (const part of body) {
            if (key.endsWith('.refs')) parts.push(part.length);
            yield part;
          }
        };
        return pushing.layers.put(key, watched(), sizeBytes);
      },
    };
    const written = await writeManifest(
      { ...node, clock, layers: layersIn(store), past: testPastEntities(node), retentionMs: 0, log: keepLog() },
      { account, repository },
    );
    assert.equal(written.outcome, 'written');
    assert.ok(Math.max(...parts) < 64 * 1024, `a part of ${Math.max(...parts)} bytes`);
    assert.ok(turns > (2 * REFS) / 500, `${turns} turns`);
    context.onTestFinished(() => node.entities.close());
  });

  test('is written once for a revision, however long its lines are', async (context) => {
    const long = `${'é'.repeat(120)}/`.repeat(6);
    for (const branchName of ['main', `a/${long}b`, `aa/${long}b`]) {
      const { push, write, names, context: contextOf } = await start(context, 0, branchName);
      await push('first');
      await write();
      const before = await names();
      const steps: FailpointName[] = [];
      await write(contextOf(async (point) => void steps.push(point)));
      assert.deepEqual([steps, await names()], [[], before]);
    }
  });
});

describe('Two writers', () => {
  test('the one with the newer revision has the newest manifest, though it stored first', async (context) => {
    const { push, write, names, context: contextOf } = await start(context);
    await push('first');
    const slow = contextOf(async (point) => {
      if (point !== 'manifest-refs-stored') return;
      await push('second');
      await write();
    });
    await write(slow);
    const revisions = revisionsIn(await names(), '.json');
    assert.deepEqual(revisions.length, 2);
    assert.equal(
      (await names())
        .filter((name) => name.endsWith('.json'))
        .at(-1)
        ?.slice(0, 16),
      digits(revisions[1]),
    );
    assert.deepEqual(revisionsIn(await names(), '.refs'), revisions, 'the slow one lost no refs');
  });

  test('either may die at any step: the next one stores a whole manifest and removes what was left', async (context) => {
    for (const point of ['manifest-refs-stored', 'manifest-stored', 'manifest-removed'] satisfies FailpointName[]) {
      const { node, push, write, names, context: contextOf } = await start(context);
      for (const name of ['first', 'second', 'third']) {
        await push(name);
        if (name !== 'third') await write();
      }
      const dying = contextOf(async (reached) => {
        if (reached === point) throw new Error('killed');
      });
      await assert.rejects(write(dying), /killed/, point);
      await write();
      await push('fourth');
      node.clock.advance(MANIFEST_REFS_KEPT_MS + 1);
      await write();
      const revisions = revisionsIn(await names(), '.json');
      assert.deepEqual(revisionsIn(await names(), '.refs'), revisions, point);
      assert.deepEqual(revisions, revisions.slice(-2), point);
    }
  });
});

function digits(revision: number | undefined): string {
  return String(revision).padStart(16, '0');
}

describe('Manifests leave the store', () => {
  test('but for the newest, the one before it, and the last of each day inside the retention', async (context) => {
    const { node, push, write, names } = await start(context, 3 * DAY_MS);
    const { clock } = node;
    let pushes = 0;
    const writeDay = async (): Promise<void> => {
      for (let time = 0; time < 3; time += 1) {
        pushes += 1;
        await push(`branch-${pushes}`);
        await write();
        clock.advance(60_000);
      }
      clock.advance(DAY_MS - 3 * 60_000);
    };
    for (let day = 0; day < 5; day += 1) await writeDay();
    // The last ones of the days are 2, 5, 8, 11 and 14; 5 was three days old when 14 was written.
    assert.deepEqual(revisionsIn(await names(), '.json'), [8, 11, 13, 14]);
    assert.deepEqual(revisionsIn(await names(), '.refs'), [8, 11, 13, 14]);
    const written = await write();
    assert.equal(written.outcome, 'written');
    const nextAt = written.outcome === 'written' ? written.nextAt : null;
    assert.ok(nextAt !== null && nextAt > clock.now(), 'it is to be looked at again when the next one leaves');
    clock.set(nextAt);
    await write();
    assert.deepEqual(revisionsIn(await names(), '.json'), [11, 13, 14]);
  });

  test('before the layers that they name do, and the repository has a newer one then', async (context) => {
    const { account, current, push, write, names, store, context: contextOf, id } = await start(context);
    await push('first');
    await write();
    await push('second');
    const { revision } = await current();
    const of = { account, repository: id, revision };
    await removeManifestsBefore(contextOf(), store, of);
    assert.deepEqual(revisionsIn(await names(), '.json'), [revision]);
    assert.deepEqual(revisionsIn(await names(), '.refs'), [revision]);
  });

  test('as layers expire: after it the store is still a repository', async (context) => {
    const { push, compact, write, database, account, node, layers, manifests, id } = await startReal(context);
    await push('large');
    for (const name of ['a', 'b', 'c', 'd']) await push(name);
    await write();
    await compact();
    const left: string[] = [];
    const expiry = {
      ...node,
      marks: createMemoryPolicyMarks(),
      layers,
      past: { accountAt: async () => (await node.entities.get(accounts, account)).state },
      retentionMs: 0,
      log: keepLog(),
      beforeRemoval: async (...of: Parameters<LayerExpiryContext['beforeRemoval']>) => {
        await removeManifestsBefore(manifests, ...of);
        left.push(...(await Array.fromAsync(database.layers.list(''), ({ key }) => key)));
      },
    };
    node.clock.advance(DAY_MS);
    await expireLayers(expiry, NEVER);
    assert.equal(left.filter((key) => key.endsWith('.tar')).length, 6, 'no layer was removed before');
    assert.deepEqual(
      revisionsIn(
        left.map((key) => path.posix.basename(key)),
        '.json',
      ).length,
      1,
    );
    const folder = await tempDir(context);
    await copyStore(database.layers, `repositories/${id}/`, path.join(folder, 'store'));
    await rebuildByScript(path.join(folder, 'store'), path.join(folder, 'rebuilt.git'));
  });

  test('of a deleted repository with the retention, after the last one that names no layer', async (context) => {
    const { account, node, push, write, names, current, store, context: contextOf, id } = await start(context);
    await push('first');
    await write();
    const origin = { account, cause: CAUSE };
    await deleteRepository(node, origin, id);
    assert.deepEqual(await write(), { outcome: 'kept' });
    await letLayersGo(node, origin, { id, all: true, reason: 'purge' });
    const { revision } = await node.entities.get(repositories, id);
    assert.ok(revision !== 'none');
    await removeManifestsBefore(contextOf(), store, { account, repository: id, revision });
    assert.deepEqual(revisionsIn(await names(), '.json'), [revision]);
    const manifest = parseManifest(JSON.parse(await textOf(store, manifestKey(id, revision))), id);
    assert.ok(!('invalid' in manifest));
    assert.deepEqual([manifest.name, manifest.layers, manifest.refs.count], ['ada/r', [], 0]);
    const written = await write();
    const leavesAt = written.outcome === 'written' ? written.nextAt : null;
    assert.equal(leavesAt, plusMs(manifest.asOf, 30 * DAY_MS));
    node.clock.set(plusMs(leavesAt, -1));
    assert.equal((await write()).outcome, 'written');
    node.clock.set(leavesAt);
    assert.deepEqual(await write(), { outcome: 'kept' });
    assert.deepEqual(await names(), []);
    await assert.rejects(current);
  });

  test('and refs without one do after an hour, since their writer may be slow until then', async (context) => {
    const { node, push, write, names, context: contextOf } = await start(context);
    const { clock } = node;
    await push('first');
    const dying = contextOf(async () => {
      throw new Error('killed');
    });
    await assert.rejects(write(dying), /killed/);
    await push('second');
    clock.advance(MANIFEST_REFS_KEPT_MS);
    await write();
    assert.deepEqual(revisionsIn(await names(), '.refs'), [0, 1]);
    clock.advance(1);
    await write();
    assert.deepEqual(revisionsIn(await names(), '.refs'), [1]);
  });

  test('only among the first objects that the owner of a bucket put beside them', async (context) => {
    const { push, write, store, id, context: contextOf, names } = await start(context);
    await push('first');
    let listed = 0;
    const hostile: LayerStore = {
      ...store,
      list: async function* () {
        for (let revision = 0; ; revision += 1) {
          listed += 1;
          yield { key: manifestKey(id, revision + 10), sizeBytes: 1, storedAt: timestamp('2026-11-21T10:00:00.000Z') };
        }
      },
    };
    const written = await write({ ...contextOf(), layers: layersIn(hostile) });
    assert.deepEqual([written.outcome, listed], ['written', MANIFEST_FILES_LISTED_MAX]);
    assert.deepEqual(revisionsIn(await names(), '.json'), [0]);
  });

  test('if they have an earlier name of their repository, and then only to be stored again with its name', async (context) => {
    const { node, account, push, write, names, store, id, current, context: contextOf } = await start(context);
    await push('first');
    await write();
    const before = await names();
    const rename = { name: 'renamed', takesFormerNames: true };
    accepted(await changeRepository(node, { account, cause: CAUSE }, id, { rename }));
    const dying = contextOf(async (point) => {
      if (point === 'manifest-refs-stored') throw new Error('the process dies');
    });
    await assert.rejects(write(dying), /the process dies/);
    await write();
    assert.deepEqual(await names(), before);
    const { revision } = await current();
    const text = await textOf(store, manifestKey(id, revision));
    assert.match(text, /"repository": "ada\/renamed"/);
    await write(contextOf(async () => assert.fail('it stores or removes something again')));
    assert.equal(await textOf(store, manifestKey(id, revision)), text);
  });

  test('if the log does not have their revisions, since it was restored to an earlier state', async (context) => {
    const { push, write, names, store, id, current } = await start(context);
    await push('first');
    const of = (revision: number) => manifestKey(id, revision);
    const put = (key: Parameters<LayerStore['put']>[0], text: string) =>
      store.put(
        key,
        (async function* () {
          yield Buffer.from(text);
        })(),
        text.length,
      );
    const { revision } = await current();
    await put(of(revision), '{"event_id": "of another log"}');
    await put(of(revision + 7), '{}');
    await write();
    assert.deepEqual(revisionsIn(await names(), '.json'), [revision]);
    assert.match(await textOf(store, of(revision)), /"repository": "ada\/r"/);
  });
});
