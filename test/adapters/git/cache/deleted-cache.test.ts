/**
 * Deleting the cache of a running node, or any part of it: the README allows it at any time. No repository may become
 * unreadable or unwritable by it.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';
import {
  type CommittedObjects,
  ObjectDatabaseError,
  type ObjectReader,
  type UploadPackOptions,
} from '../../../../core/ports/object-database.ts';
import { filesBelow } from '../../../support/files-below.ts';
import { type TestRepository, temporaryFolder, testRepository } from '../../../support/git.ts';
import { once, type TestDatabase, testDatabase } from '../../../support/object-database.ts';

const NEVER = new AbortController().signal;

const folder = temporaryFolder('deleted');
afterAll(() => folder.remove());

interface Scene {
  readonly database: TestDatabase;
  readonly repository: TestRepository;
  objects: CommittedObjects;
  readonly commits: ObjectId[];
}

async function scene(name: string): Promise<Scene> {
  const database = await testDatabase();
  const repository = testRepository(join(folder.path, name));
  const made: Scene = { database, repository, objects: database.newObjects(), commits: [] };
  for (let index = 0; index < 2; index += 1) await push(made);
  return made;
}

/**
 * A thin push, which needs the objects that the cache has. Of a second attempt, as its client makes it, it is the same.
 */
async function push(scene: Scene, attempts = 1): Promise<void> {
  const { database, repository, commits } = scene;
  const last = commits.at(-1);
  const commit = repository.commit({ noise: randomBytes(20_000), text: 'line\n'.repeat(2_000 + commits.length) });
  const pack = repository.pack(last === undefined ? [commit] : [commit, `^${last}`], { thin: last !== undefined });
  for (let attempt = 1; ; attempt += 1) {
    try {
      scene.objects = await database.push(scene.objects, pack);
      commits.push(commit);
      return;
    } catch (error) {
      if (attempt === attempts) throw error;
      assert.ok(error instanceof ObjectDatabaseError, 'not blamed on the pack');
    }
  }
}

function cloneOf(tip: ObjectId): UploadPackOptions {
  const view = { key: tip, head: 'refs/heads/main', runs: [[{ name: 'refs/heads/main', id: tip, peeled: null }]] };
  const request = once(Buffer.from(`0011command=fetch0001${`0032want ${tip}\n`}0009done\n0000`));
  return { view, protocol: 2, request, answerKey: tip, signal: new AbortController().signal };
}

async function readsAll(reader: ObjectReader, { commits }: Scene): Promise<void> {
  const tip = commits.at(-1) ?? assert.fail();
  const found = await reader.commits(commits);
  assert.deepEqual(
    found.map((commit) => commit?.id),
    commits,
  );
  assert.equal((await Array.fromAsync(reader.walk({ include: [tip], exclude: [] }))).length, commits.length);
  const answer = Buffer.concat(await Array.fromAsync(reader.uploadPack(cloneOf(tip))));
  assert.match(answer.toString('latin1'), new RegExp(`Total ${commits.length * 4} `));
  assert.equal(answer.subarray(-4).toString(), '0000');
}

/** What somebody deletes; the paths are relative to the folder of the repository. */
const DELETIONS: Readonly<Record<string, (path: string, cache: string) => Promise<void>>> = {
  'every pack, but not their folder': async (path) => {
    for (const file of await filesBelow(join(path, 'objects'))) await rm(join(path, 'objects', file));
  },
  'one index, before which git prints a part of its answer,': async (path) => {
    const [index] = (await readdir(join(path, 'objects/pack'))).filter((name) => name.endsWith('.idx'));
    await rm(join(path, 'objects/pack', index ?? assert.fail()));
    await rm(join(path, 'objects/info'), { recursive: true, force: true });
  },
  'what makes it a repository': async (path) => {
    await rm(join(path, 'HEAD'), { force: true });
    await rm(join(path, 'refs'), { recursive: true, force: true });
  },
  'its views': (path) => rm(join(path, 'views'), { recursive: true, force: true }),
  'half of a view': async (path) => {
    for (const view of await readdir(join(path, 'views')).catch(() => []))
      await rm(join(path, 'views', view, 'HEAD'), { force: true });
  },
  'the repository, as a push comes in between': async (path) => {
    await rm(path, { recursive: true });
    await mkdir(join(path, 'objects/pack'), { recursive: true });
  },
  'the whole cache': async (_path, cache) => {
    await rm(cache, { recursive: true, force: true });
  },
};

describe('Whoever deletes', () => {
  let made: Scene;
  beforeAll(async () => {
    made = await scene('parts');
  });
  afterAll(() => made.database.close());

  for (const [name, deletes] of Object.entries(DELETIONS)) {
    test(`${name} stops no reader and no push but what is under way`, async () => {
      const { database } = made;
      const attempts = name.includes('a part of its answer') ? 2 : 1;
      const open = () => database.database.open(made.objects);
      const before = await open();
      await readsAll(before, made);
      const parent = join(database.directory, 'repositories', made.objects.repository);
      const reads = (reader: ObjectReader): Promise<void> =>
        readsAll(reader, made).catch((error: unknown) => {
          if (attempts === 1) throw error;
          return readsAll(reader, made);
        });
      const deleteNow = async (): Promise<void> => {
        await database.database.settled();
        for (const only of await readdir(parent)) await deletes(join(parent, only), database.directory);
      };
      await rm(join(database.directory, 'answers'), { recursive: true, force: true });
      await deleteNow();
      const after = await open();
      await reads(after);
      await rm(join(database.directory, 'answers'), { recursive: true, force: true });
      await reads(before);
      for (const reader of [before, after]) reader.close();

      await deleteNow();
      await push(made, 2);
      const last = await open();
      await reads(last);
      last.close();
    });
  }

  for (const [name, deletes] of Object.entries(DELETIONS)) {
    test(`${name} stops no compaction, neither one that merges nor one that drops`, async () => {
      const { database, objects, commits } = made;
      const { database: git } = database;
      const parent = join(database.directory, 'repositories', objects.repository);
      const reads = async (): Promise<void> => {
        const reader = await git.open(objects);
        await readsAll(reader, made).finally(() => reader.close());
      };
      const deleteNow = async (): Promise<void> => {
        // A compaction that read nothing of what was deleted leaves it to the next reader.
        await reads().catch(reads);
        await git.settled();
        for (const only of await readdir(parent)) await deletes(join(parent, only), database.directory);
      };
      await deleteNow();
      const merged = await git.merge(objects, [...objects.layers], NEVER);
      assert.equal(merged.objectCount, commits.length * 4);
      await merged.discard();
      await deleteNow();
      const kept = await git.keep(objects, { refs: commits.slice(-1), left: [] }, NEVER);
      assert.equal(kept.refs?.objectCount, commits.length * 4);
      await kept.discard();
      await reads().catch(reads);
    });
  }

  test('the cache again and again under load leaves the repository readable and writable', async () => {
    const { database, repository } = made;
    const until = performance.now() + 2_000;
    const loaded = async (work: () => Promise<unknown>): Promise<void> => {
      while (performance.now() < until) await work().catch(() => undefined);
    };
    const read = async (): Promise<void> => {
      const reader = await database.database.open(made.objects);
      try {
        await readsAll(reader, made);
      } finally {
        reader.close();
      }
    };
    const loose = () =>
      database.receive(made.objects, repository.packOf([repository.object('blob', `${Math.random()}`)]));
    const pushLoose = async (): Promise<void> => {
      const received = await loose();
      if (!('refused' in received)) await received.discard();
    };
    const remove = () => rm(database.directory, { recursive: true, force: true });
    await Promise.all([loaded(read), loaded(read), loaded(read), loaded(pushLoose), loaded(remove)]);
    await read();
    await push(made);
    await read();
  });

  test('nothing, and asks for an id that nobody has, is refused as before', async () => {
    const reader = await made.database.database.open(made.objects);
    const answer = await Array.fromAsync(reader.uploadPack(cloneOf(objectId('6'.repeat(40)))));
    assert.match(Buffer.concat(answer).toString(), /ERR upload-pack: not our ref 6/);
    reader.close();
  });
});
