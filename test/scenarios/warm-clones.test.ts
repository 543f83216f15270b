/** A pipeline that clones at each push with depth 1 finds its answer made, by the git of the server. */
import assert from 'node:assert/strict';
import { readFile, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { loggingGit } from '../support/logging-git.ts';
import { commitFile, createAccount, createRepository, git, newWorkTree } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

test('A shallow clone of the default branch is made again after a push, before anybody asks', async (context) => {
  const folder = await tempDir(context);
  const log = path.join(folder, 'calls');
  await symlink(loggingGit(log), path.join(folder, 'git'));
  const shared = await sharedParts(context);
  const programs = `${folder}${path.delimiter}${process.env['PATH'] ?? ''}`;
  const strata = await startNode(context, shared, { PATH: programs });
  const uploads = async (): Promise<number> =>
    (await readFile(log, 'utf8')).split('\n').filter((line) => line.startsWith('upload-pack ')).length;
  const waitForUploads = async (wanted: number): Promise<void> => {
    for (let waited = 0; (await uploads()) < wanted; waited += 50) {
      assert.ok(waited < 20_000, `${await uploads()} uploads`);
      await sleep(50);
    }
  };
  let clones = 0;
  const clone = async (...options: readonly string[]): Promise<string> => {
    const into = path.join(folder, `clone-${(clones += 1)}`);
    await git(folder, ['clone', '--quiet', ...options, url, into]);
    return (await git(into, ['rev-parse', 'HEAD'])).trim();
  };
  const ada = await createAccount({ env: shared.env }, 'ada');
  const url = await createRepository(strata, ada, 'project');
  const work = await newWorkTree(context);
  const push = async (name: string): Promise<string> => {
    const tip = await commitFile(work, name, `${name}\n`);
    await git(work, ['push', '--quiet', url, 'HEAD:main']);
    return tip;
  };

  const first = await push('first');
  assert.equal(await clone('--depth', '1'), first);
  await writeFile(log, '');
  const second = await push('second');
  await waitForUploads(1);
  for (let times = 0; times < 3; times += 1) assert.equal(await clone('--depth', '1'), second);
  assert.equal(await uploads(), 1, 'the clients need no git');

  await push('third');
  await waitForUploads(2);
  const fourth = await push('fourth');
  await sleep(500);
  assert.equal(await uploads(), 2, 'nobody asked for the one before');
  assert.equal(await clone('--depth', '1'), fourth);
  assert.equal(await uploads(), 3);
});
