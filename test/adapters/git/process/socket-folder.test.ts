/** Where the helper's socket lies, and that what killed servers leave of it does not gather. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { makeSocketFolder, socketPathIn, sweepSocketFolders } from '../../../../adapters/git/process/socket-folder.ts';
import { cleanUp } from '../../../support/cleanup.ts';
import { tempDir } from '../../../support/temp-dir.ts';

/** A folder of temporary files of the test's own, and a directory of a runner. */
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

test('the socket lies below the own directory', async (context) => {
  const { directory } = await folders(context);
  assert.ok(makeSocketFolder(directory).startsWith(path.join(directory, 'sockets/')));
});

test('the socket lies among temporary files where the own path is too long for one', async (context) => {
  const { temporary, directory } = await folders(context);
  const spare = 103 - Buffer.byteLength(socketPathIn(makeSocketFolder(directory)));
  // One byte is the separator's.
  const longest = `${directory}/${'d'.repeat(spare - 1)}`;
  const fitting = makeSocketFolder(longest);
  assert.equal(Buffer.byteLength(socketPathIn(fitting)), 103);
  const tooLong = makeSocketFolder(`${longest}d`);
  assert.equal(path.dirname(tooLong), temporary);
});

test('folders of dead processes are swept, those of living ones stay', async (context) => {
  const { temporary, directory } = await folders(context);
  const dead = deadPid();
  const stale = [
    path.join(directory, `sockets/${dead}-abcdef`),
    path.join(directory, `sockets/${process.pid}-abcdef`),
    path.join(temporary, `strata-git-${dead}-abcdef`),
  ];
  const kept = [
    path.join(directory, `sockets/${process.ppid}-abcdef`),
    // Of another runner in this process.
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

test('a directory that is not there yet needs no sweeping', async (context) => {
  const { directory } = await folders(context);
  sweepSocketFolders(directory);
  assert.ok(!existsSync(directory));
});
