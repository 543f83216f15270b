/** How long a command of git may take, and whose doing it is that it ended before its time. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, type TestContext, test } from 'vitest';
import {
  createGit,
  createPacing,
  type GitCommand,
  WALL_MS_MAX,
} from '../../../../adapters/git/process/git-commands.ts';
import { createProcessRunner, type ProcessRunner } from '../../../../adapters/git/process/process-runner.ts';
import { ReaderTooSlow } from '../../../../core/kernel/reader-too-slow.ts';
import { ObjectDatabaseError } from '../../../../core/ports/object-database.ts';
import { testRepository } from '../../../support/git.ts';
import { tempDir } from '../../../support/temp-dir.ts';

/** More than pipes and sockets hold, so that git waits for its reader. */
const FILE_BYTES = 8 * 1024 * 1024;
const SHORT_MS = 500;

describe('git whose time is up', () => {
  test('has read objects that cost too much', async (context) => {
    const reason = await endOf(context, {}, async () => undefined);
    assert.ok(reason instanceof ObjectDatabaseError && reason.code === 'reading-too-costly', String(reason));
  });

  test('has waited for its reader, if it had to', async (context) => {
    const pacing = createPacing();
    const reason = await endOf(context, { pacing }, () => pacing.slowDown());
    assert.ok(reason instanceof ReaderTooSlow, String(reason));
  });
});

test('A command has the longest time, unless it names a shorter one', async () => {
  const spans: number[] = [];
  const end = {
    code: 0,
    signal: null,
    killed: 'no',
    stdout: 'git version 2.50.0',
    stderr: '',
    outgrown: false,
  } as const;
  const nothing = (): void => undefined;
  const runner: ProcessRunner = {
    run: async ({ wallMsMax }) => {
      spans.push(wallMsMax);
      const process = { pid: 1, stdin: null, stdout: null, kill: nothing, pause: nothing, resume: nothing };
      return { ...process, ended: Promise.resolve(end), pace: async () => undefined };
    },
    close: async () => undefined,
  };
  const git = await createGit(runner, '/usr/bin/git');
  const view = { variables: async () => ({}), key: 'ada' };
  await git.run({ args: ['version'], view });
  await git.run({ args: ['version'], view, wallMsMax: 5 });
  assert.deepEqual(spans, [WALL_MS_MAX, WALL_MS_MAX, 5], 'the first asks for the version');
});

/** Begins to read a file, goes on after git's time, and returns why that ends. */
async function endOf(
  context: TestContext,
  more: Pick<GitCommand, 'pacing'>,
  begun: () => Promise<void>,
): Promise<unknown> {
  const folder = await tempDir(context);
  const repository = testRepository(path.join(folder, 'repository'));
  const tip = repository.commit({ noise: randomBytes(FILE_BYTES) });
  const runner = createProcessRunner({
    limits: { memoryBytesMax: 2 ** 31, fileBytesMax: 2 ** 30, cpuSecondsMax: 60, openFilesMax: 1_000 },
    processesMax: 8,
    processesPerKeyMax: 8,
    directory: path.join(folder, 'helper'),
    onHelperLine: (line) => assert.fail(line),
  });
  context.onTestFinished(() => runner.close());
  const git = await createGit(runner, undefined);
  const view = { key: 'ada', variables: async () => ({ GIT_DIR: path.join(repository.path, '.git') }) };
  const args = ['cat-file', 'blob', `${tip}:noise`];
  const chunks = git.stream({ args, view, wallMsMax: SHORT_MS, ...more }, nothing());
  assert.equal((await chunks.next()).done, false);
  await begun();
  await sleep(2 * SHORT_MS);
  try {
    for await (const _ of chunks);
    return null;
  } catch (error) {
    return error;
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
