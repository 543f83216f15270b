import assert from 'node:assert/strict';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { findGit } from '../../adapters/git/process/git-environment.ts';
import { tempDir } from './temp-dir.ts';
import { chooseTestGit } from './test-git.ts';

describe('STRATA_TEST_GIT', () => {
  test('names the git that tests and the servers of tests then find', async (context) => {
    const folder = await tempDir(context);
    const git = join(folder, 'git');
    writeFileSync(git, `#!/bin/sh\necho "$@" >>${folder}/calls\n`);
    chmodSync(git, 0o755);
    const before = process.env['PATH'];
    const env: NodeJS.ProcessEnv = { PATH: before, STRATA_TEST_GIT: git };
    chooseTestGit(env);
    assert.equal(env['PATH'], `${folder}:${before}`);
    assert.equal(readFileSync(join(folder, 'calls'), 'utf8'), 'version\n');
    try {
      process.env['PATH'] = env['PATH'];
      assert.equal(await findGit(undefined), git);
    } finally {
      process.env['PATH'] = before;
    }
  });

  test('changes nothing where it is not set, and must lead to a program named git that runs', () => {
    const env: NodeJS.ProcessEnv = { PATH: '/usr/bin' };
    chooseTestGit(env);
    assert.deepEqual(env, { PATH: '/usr/bin' });
    for (const wrong of ['git', '/usr/bin/git-2.50', '/nowhere/git']) {
      assert.throws(() => chooseTestGit({ PATH: '/usr/bin', STRATA_TEST_GIT: wrong }), /STRATA_TEST_GIT|ENOENT/);
    }
  });
});
