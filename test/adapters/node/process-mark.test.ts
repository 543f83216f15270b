/** Whether a process that left its mark has ended: never said of one that may live. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'vitest';
import { createProcessMarks } from '../../../adapters/node/process-mark.ts';

test('A process that lives has not ended, and one that was killed has', async (context) => {
  const marks = await createProcessMarks();
  assert.equal(await marks.hasEnded(marks.mine), false);
  const child = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1_000)'], { stdio: 'ignore' });
  context.onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'spawn');
  const { mine } = await createProcessMarks(child.pid);
  assert.equal(await marks.hasEnded(mine), false);
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.equal(await marks.hasEnded(mine), true);
});

test('A process that has the id of one that ended is told apart from it by when it started', async () => {
  const marks = await createProcessMarks();
  assert.equal(await marks.hasEnded(marks.mine.replace(/.$/, (last) => (last === '0' ? '1' : '0'))), true);
});

test('Nothing is known of a process of another machine or container, nor of a text that is no mark', async () => {
  const marks = await createProcessMarks();
  const elsewhere = marks.mine.replace(/-(.)/, (_, first) => `-${first === '0' ? '1' : '0'}`);
  for (const mark of [elsewhere, 'unknown', '', '1', `${process.pid}`]) {
    assert.equal(await marks.hasEnded(mark), false, mark);
  }
});
