/** Commit-graphs that are written in the background for walks over long histories. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import type { CommittedObjects } from '../../../../core/ports/object-database.ts';
import { filesBelow } from '../../../support/files-below.ts';
import { runGit, type TestRepository, temporaryFolder, testRepository } from '../../../support/git.ts';
import { ANY_COMMIT } from '../../../support/no-history.ts';
import { type TestDatabase, testDatabase } from '../../../support/object-database.ts';

const folder = temporaryFolder('graphs');
afterAll(() => folder.remove());

const bounded = { signal: new AbortController().signal, spanMs: 60_000 };
const PATH = Buffer.from('file-3');

/** Makes a line of commits, each of which changes one of seven files. */
function line(repository: TestRepository, from: ObjectId | null, count: number): ObjectId {
  const commands: string[] = [];
  for (let index = 0; index < count; index += 1) {
    commands.push('commit refs/heads/main', `committer A <a@example.org> ${1_700_000_000 + index} +0000`, 'data 0');
    if (index === 0 && from !== null) commands.push(`from ${from}`);
    const text = `${from} ${index}\n`;
    commands.push(`M 100644 inline file-${index % 7}`, `data ${text.length}`, text);
  }
  repository.git(['fast-import', '--quiet', '--force'], { input: `${commands.join('\n')}\n` });
  return repository.line(['rev-parse', 'main']) as ObjectId;
}

async function historyOf(
  database: TestDatabase,
  objects: CommittedObjects,
  tip: ObjectId,
): Promise<readonly ObjectId[]> {
  const reader = await database.database.open(objects);
  try {
    return (await Array.fromAsync(reader.history.findCommits(tip, { ...ANY_COMMIT, path: PATH }, bounded))).flat();
  } finally {
    reader.close();
  }
}

async function graphsIn(database: TestDatabase): Promise<readonly string[]> {
  const names = await filesBelow(join(database.directory, 'repositories'));
  return names.filter((name) => name.endsWith('info/commit-graph'));
}

describe('a commit-graph', () => {
  test('is written for a long history, changes no answer, and stays when packs are merged', async () => {
    const database = await testDatabase({ packsMax: 4 });
    const repository = testRepository(join(folder.path, 'long'));
    let tip = line(repository, null, 1_000);
    let objects = await database.push(database.newObjects(), repository.pack([tip]));
    const expected = () => repository.line(['rev-list', tip, '--', 'file-3']).split('\n');
    assert.deepEqual(await historyOf(database, objects, tip), expected());
    await database.database.settled();
    const [graph, ...others] = await graphsIn(database);
    assert.ok(graph !== undefined && others.length === 0);
    for (let push = 0; push < 4; push += 1) {
      const before = tip;
      tip = line(repository, before, 10);
      objects = await database.push(objects, repository.pack([tip, `^${before}`]));
      assert.deepEqual(await historyOf(database, objects, tip), expected());
    }
    await database.database.settled();
    const found = (await graphsIn(database)).map((name) => join(database.directory, 'repositories', name));
    assert.equal(found.length, 1, 'the merged folder has the graph of the one that it replaced');
    assert.ok(existsSync(found[0] ?? ''));
    const gitDir = dirname(dirname(dirname(found[0] ?? '')));
    runGit(['commit-graph', 'verify'], { env: { GIT_DIR: gitDir } });
    assert.deepEqual(await historyOf(database, objects, tip), expected());
    assert.deepEqual(database.warnings, []);
    await database.close();
  });

  test('goes with the layers into a new epoch, but not into one that dropped objects', async () => {
    for (const keptSinceEpoch of [0, 1, null]) {
      const database = await testDatabase();
      const repository = testRepository(join(folder.path, `epoch-${keptSinceEpoch}`));
      const tip = line(repository, null, 1_000);
      const objects = await database.push(database.newObjects(), repository.pack([tip]));
      await historyOf(database, objects, tip);
      await database.database.settled();
      const reader = await database.database.open({ ...objects, revision: 9, shrinkEpoch: 1, keptSinceEpoch });
      const inNewEpoch = (await graphsIn(database)).filter((name) => /\/1-[0-9a-f]{12}\//.test(name));
      assert.equal(inNewEpoch.length, keptSinceEpoch === 0 ? 1 : 0, `kept since ${keptSinceEpoch}`);
      reader.close();
      await database.close();
    }
  });

  test('is not written for a short history', async () => {
    const database = await testDatabase();
    const repository = testRepository(join(folder.path, 'short'));
    const tip = line(repository, null, 20);
    const objects = await database.push(database.newObjects(), repository.pack([tip]));
    assert.equal((await historyOf(database, objects, tip)).length, 3);
    await database.database.settled();
    assert.deepEqual(await graphsIn(database), []);
    await database.close();
  });
});
