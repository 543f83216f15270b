/** Which git is used, and in what environment. */
import assert from 'node:assert/strict';
import { chmod, mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { checkGitVersion, gitEnvironment, quoteAlternate } from '../../../../adapters/git/process/git-environment.ts';
import { runGit, temporaryFolder, testRepository } from '../../../support/git.ts';
import { testDatabase } from '../../../support/object-database.ts';

const folder = temporaryFolder('environment');
afterAll(() => folder.remove());

describe('git', () => {
  test('is accepted from version 2.39.4 on; the error for an older or a missing one says so', async () => {
    assert.equal(checkGitVersion('/git', 'git version 2.39.4\n'), '2.39.4');
    assert.equal(checkGitVersion('/git', 'git version 2.39.10\n'), '2.39.10');
    assert.equal(checkGitVersion('/git', 'git version 2.40.0.windows.1\n'), '2.40.0.windows.1');
    assert.equal(checkGitVersion('/git', 'git version 2.50.1 (Apple Git-155)\n'), '2.50.1');
    assert.equal(checkGitVersion('/git', 'git version 3.0.0\n'), '3.0.0');
    for (const answer of [
      'git version 2.39.3',
      'git version 2.39',
      'git version 2.38.9',
      'git version 1.99.0',
      'hg version 7',
      '',
    ]) {
      assert.throws(() => checkGitVersion('/usr/bin/git', answer), /needs git 2\.39\.4 or newer; \/usr\/bin\/git has/);
    }
    const old = join(folder.path, 'git');
    await writeFile(old, '#!/bin/sh\necho git version 2.30.2\n');
    await chmod(old, 0o755);
    await assert.rejects(testDatabase({ gitPath: old }), /needs git 2\.39\.4 or newer; .* has version 2\.30\.2/);
    await assert.rejects(testDatabase({ gitPath: 'git' }), /must be absolute/);
    await assert.rejects(testDatabase({ gitPath: '/no/such/git' }), /did not start/);
  });

  test('sees no configuration and no environment of the machine', () => {
    const environment = gitEnvironment('/usr/bin/git', { GIT_DIR: '/x' }, [['core.fsync', 'none']]);
    assert.equal(environment['HOME'], '/nonexistent');
    assert.equal(environment['GIT_CONFIG_NOSYSTEM'], '1');
    assert.equal(environment['GIT_CONFIG_GLOBAL'], '/dev/null');
    assert.equal(environment['GIT_DIR'], '/x');
    assert.equal(environment['GIT_NO_LAZY_FETCH'], '1');
    const shown = runGit(['config', '--list', '--show-origin'], { env: environment }).toString().trim().split('\n');
    assert.ok(
      shown.every((line) => line.startsWith('command line:')),
      shown.join('\n'),
    );
    assert.ok(shown.some((line) => line.endsWith('core.fsync=none')));
    assert.ok(shown.some((line) => line.endsWith('core.hookspath=/dev/null')));
  });

  test('works in a folder that no other user of the machine enters, also when an earlier version made it', async () => {
    const made = join(folder.path, 'made');
    const older = join(folder.path, 'older');
    await mkdir(older);
    await chmod(older, 0o755);
    for (const directory of [made, older]) {
      await (await testDatabase({ directory })).close();
      assert.equal((await stat(directory)).mode & 0o007, 0);
    }
  });

  test('finds alternates in folders whose names hold any characters', async () => {
    assert.equal(quoteAlternate('/a:b"c\\d'), '"/a:b\\"c\\\\d"');
    const repository = testRepository(join(folder.path, 'repository'));
    for (const name of [
      'with:colon',
      'with"quote',
      'with\\backslash',
      '#hash',
      'with space',
      'ünïcode',
      'line\nbreak',
    ]) {
      const directory = join(folder.path, name);
      await mkdir(directory);
      const database = await testDatabase({ directory });
      const first = repository.commit({ name });
      const objects = await database.push(database.newObjects(), repository.pack([first]));
      const second = repository.commit({ name: `${name}, again` });
      await database.push(objects, repository.pack([second, `^${first}`]));
      await database.close();
    }
  });
});
