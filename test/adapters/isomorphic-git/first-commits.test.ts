/** First commits made by isomorphic-git, read by git. */
import assert from 'node:assert/strict';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'vitest';
import { createIsomorphicFirstCommits } from '../../../adapters/isomorphic-git/first-commits.ts';
import { timestamp } from '../../../core/kernel/ids.ts';
import { git } from '../../support/strata.ts';
import { tempDir } from '../../support/temp-dir.ts';

const WANTED = {
  fileName: 'README.md',
  text: '# Ünïcode\n',
  message: 'Begin\n',
  author: { name: 'ada', email: 'ada@users.noreply.example.org' },
  at: timestamp('2026-11-22T10:00:00.999Z'),
};

test('a first commit is one that git reads whole', async (context) => {
  const directory = await tempDir(context);
  const commits = await createIsomorphicFirstCommits({ directory: path.join(directory, 'scratch') });
  const { commit, pack } = await commits.make(WANTED);
  const bare = path.join(directory, 'bare.git');
  await git(directory, ['init', '--quiet', '--bare', bare]);
  await git(bare, ['unpack-objects', '--strict', '-q'], pack);
  await git(bare, ['fsck', '--full', '--strict']);
  assert.equal(await git(bare, ['show', `${commit}:README.md`]), WANTED.text);
  const shown = await git(bare, ['log', '--format=%an <%ae> %ad %s', '--date=iso', commit]);
  assert.equal(shown, 'ada <ada@users.noreply.example.org> 2026-11-22 10:00:00 +0000 Begin\n');
});

test('making commits leaves no files, and removes those of a process that was killed', async (context) => {
  const directory = path.join(await tempDir(context), 'scratch');
  await mkdir(path.join(directory, 'commit-left'), { recursive: true });
  await writeFile(path.join(directory, 'commit-left', 'file'), 'left');
  const commits = await createIsomorphicFirstCommits({ directory });
  const made = await Promise.all([commits.make(WANTED), commits.make(WANTED), commits.make(WANTED)]);
  assert.equal(new Set(made.map(({ commit }) => commit)).size, 1);
  assert.deepEqual(await readdir(directory), []);
});
