/** The lock of a directory has one holder, whoever competes for it and whatever is left there. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync, utimesSync } from 'node:fs';
import { readdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'vitest';
import { lockDirectory } from '../../../adapters/node/directory-lock.ts';
import { processFacts, processIdSpace } from '../../../adapters/node/process-facts.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { eventually } from '../../support/processes.ts';
import { tempDir } from '../../support/temp-dir.ts';

const RIVALS = 40;

function owner(pid: number | undefined, started: string | undefined, space: string): string {
  return JSON.stringify({ pid, started, space });
}

describe('the lock of a data directory', () => {
  test('is taken by exactly one of many rivals, also from a dead holder', async (context) => {
    const directory = await tempDir(context);
    const dead = spawn('true');
    await once(dead, 'exit');
    await writeFile(path.join(directory, 'lock.7'), owner(dead.pid, 'long ago', await processIdSpace()));
    const outcomes = await Promise.allSettled(Array.from({ length: RIVALS }, () => lockDirectory(directory)));
    assert.equal(outcomes.filter((outcome) => outcome.status === 'fulfilled').length, 1);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') assert.equal(outcome.reason.code, 'data-directory-in-use');
    }
    assert.deepEqual(await readdir(directory), ['lock.8']);
  });

  test('can be taken again after it was released', async (context) => {
    const directory = await tempDir(context);
    for (let n = 0; n < 3; n++) {
      const lock = await lockDirectory(directory);
      await assert.rejects(lockDirectory(directory), { code: 'data-directory-in-use' });
      await lock.release();
    }
  });

  test('is not held by another program that has the id of a dead holder', async (context) => {
    const directory = await tempDir(context);
    await writeFile(path.join(directory, 'lock.1'), owner(process.pid, 'another start', await processIdSpace()));
    await lockDirectory(directory);
  });

  test('is held by a living process of the same start', async (context) => {
    const directory = await tempDir(context);
    const holder = spawn('sleep', ['600']);
    cleanUp(context, () => holder.kill());
    const facts = await processFacts(holder.pid ?? 0);
    await writeFile(path.join(directory, 'lock.3'), owner(holder.pid, facts?.started, await processIdSpace()));
    const refused = { code: 'data-directory-in-use', message: new RegExp(`pid ${holder.pid} `) };
    await assert.rejects(lockDirectory(directory), refused);
  });

  test('is held by a process of another container as long as that has a heartbeat', async (context) => {
    const directory = await tempDir(context);
    const file = path.join(directory, 'lock.1');
    // Here its id belongs to another process, or to none.
    await writeFile(file, owner(process.pid, (await processFacts(process.pid))?.started, 'another container'));
    const life = setInterval(() => utimesSync(file, new Date(), new Date()), 500);
    cleanUp(context, () => clearInterval(life));
    await assert.rejects(lockDirectory(directory), { code: 'data-directory-in-use', message: /another container/ });
    clearInterval(life);
    await lockDirectory(directory);
  });

  test('has a heartbeat while it is held', async (context) => {
    const directory = await tempDir(context);
    const lock = await lockDirectory(directory);
    cleanUp(context, () => lock.release());
    const file = path.join(directory, 'lock.1');
    const { mtimeMs } = await stat(file);
    await eventually('the lock is touched', () => statSync(file).mtimeMs > mtimeMs);
  });
});
