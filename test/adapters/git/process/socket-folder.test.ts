/** Where the helper's socket is, and that the folders of killed servers are removed. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'vitest';
import { makeSocketFolder, socketPathIn, sweepSocketFolders } from '../../../../adapters/git/process/socket-folder.ts';
import { cleanUp } from '../../../support/cleanup.ts';
import { tempDir } from '../../../support/temp-dir.ts';

/** A folder for this test's temporary files, and the directory of a runner. */
async function folders(context: TestContext): Promise<{ readonly temporary: string; readonly directory: string }> {
  const temporary = await tempDir(context);
  const before = process.env['TMPDIR'];
  cleanUp(context, () => {
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
  });
  process.env['TMPDIR'] = temporary;
  return { temporary, directory: path.join(temporary, 'own') };
}

function deadPid(): number {
  return spawnSync('true').pid;
}

test("the socket is below the runner's directory", async (context) => {
  const { directory } = await folders(context);
  assert.ok(makeSocketFolder(directory).startsWith(path.join(directory, 'sockets/')));
});

test("the socket is among the temporary files if the path of the runner's directory is too long", async (context) => {
  const { temporary, directory } = await folders(context);
  const spare = 103 - Buffer.byteLength(socketPathIn(makeSocketFolder(directory)));
  // One byte is for the separator.
  const longest = `${directory}/${'d'.repeat(spare - 1)}`;
  const fitting = makeSocketFolder(longest);
  assert.equal(Buffer.byteLength(socketPathIn(fitting)), 103);
  const tooLong = makeSocketFolder(`${longest}d`);
  assert.equal(path.dirname(tooLong), temporary);
});

test('folders of dead processes are removed, those of running processes stay', async (context) => {
  const { temporary, directory } = await folders(context);
  const dead = deadPid();
  const stale = [
    path.join(directory, `sockets/${dead}-abcdef`),
    path.join(directory, `sockets/${process.pid}-abcdef`),
    path.join(temporary, `strata-git-${dead}-abcdef`),
  ];
  const kept = [
    path.join(directory, `sockets/${process.ppid}-abcdef`),
    // The folder of another runner in this process.
    path.join(temporary, `strata-git-${process.pid}-abcdef`),
    path.join(temporary, `strata-git-${process.ppid}-abcdef`),
    path.join(temporary, `strata-git-${dead}`),
    path.join(temporary, `${dead}-abcdef`),
  ];
  for (const folder of [...stale, ...kept]) mkdirSync(folder, { recursive: true });
  sweepSocketFolders(directory);
  assert.deepEqual(stale.filter(existsSync), []);
  assert.deepEqual(
    kept.filter((folder) => !existsSync(folder)),
    [],
  );
});

test('removing stale folders accepts a directory that does not exist yet', async (context) => {
  const { directory } = await folders(context);
  sweepSocketFolders(directory);
  assert.ok(!existsSync(directory));
});
