/** Work that no request waits for gives way to git that works for one, but not permanently. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, type TestContext, test } from 'vitest';
import { BackgroundWork } from '../../../../adapters/git/process/background-work.ts';
import { createGit, type Git, type GitCommand } from '../../../../adapters/git/process/git-commands.ts';
import { createProcessRunner, type ProcessRunner } from '../../../../adapters/git/process/process-runner.ts';
import { testRepository } from '../../../support/git.ts';
import { NO_PROC } from '../../../support/git-below.ts';
import { eventually, isAlive } from '../../../support/processes.ts';
import { skippedFor } from '../../../support/skipped.ts';
import { tempDir } from '../../../support/temp-dir.ts';

const NEEDS_PROC = skippedFor(NO_PROC);
/** Longer than a test may take. */
const LONG_MS = 3_600_000;

describe('a piece of background work', () => {
  test('runs alone, in its turn, also after one that failed', async () => {
    const background = new BackgroundWork();
    const events: string[] = [];
    const piece = (name: string) => async () => {
      events.push(`${name} begins`);
      await sleep(5);
      events.push(`${name} ends`);
      if (name === 'b') throw new Error('b fails');
    };
    const ends = await Promise.allSettled(['a', 'b', 'c'].map((name) => background.run(piece(name))));
    assert.deepEqual(events, ['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
    assert.deepEqual(
      ends.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
  });

  test('begins when no request has needed git for a moment', async () => {
    const background = new BackgroundWork({ quietMs: 30, heldMsMax: LONG_MS });
    const ends = [background.requestBegins(), background.requestBegins()];
    let begun = false;
    const work = background.run(async () => {
      begun = true;
    });
    for (const end of ends) {
      await sleep(40);
      assert.equal(begun, false);
      end();
    }
    background.requestBegins()();
    assert.equal(begun, false);
    await work;
  });

  test('stops and goes on with each request, and is never stopped after its end', async () => {
    const background = new BackgroundWork({ quietMs: 0, heldMsMax: LONG_MS });
    const signals: string[] = [];
    const process = { pause: () => signals.push('pause'), resume: () => signals.push('resume') };
    const ends = background.processBegins(process);
    for (const _ of [1, 2]) {
      const first = background.requestBegins();
      const second = background.requestBegins();
      first();
      second();
      await sleep(20);
    }
    assert.deepEqual(signals, ['pause', 'resume', 'pause', 'resume']);
    ends();
    background.requestBegins();
    assert.equal(signals.length, 4);
  });

  test('is held back for a bounded time in all on a node that is never quiet', async () => {
    const background = new BackgroundWork({ quietMs: 1, heldMsMax: 250 });
    const signals: string[] = [];
    background.processBegins({ pause: () => signals.push('pause'), resume: () => signals.push('resume') });
    for (const _ of [1, 2]) {
      const end = background.requestBegins();
      await sleep(150);
      end();
      await sleep(20);
    }
    assert.deepEqual(signals.slice(-2), ['pause', 'resume']);
    const before = signals.length;
    background.requestBegins();
    assert.equal(signals.length, before);
    let begun = 0;
    await background.run(async () => {
      begun += 1;
    });
    assert.equal(begun, 1);
  });

  test('is not held back while somebody waits for it', async () => {
    const background = new BackgroundWork({ quietMs: LONG_MS, heldMsMax: LONG_MS });
    background.requestBegins();
    let done = 0;
    const piece = async (): Promise<void> => {
      done += 1;
    };
    const all = [background.run(piece), background.run(piece)];
    await background.settled();
    assert.equal(done, 2);
    await Promise.all(all);
  });

  test('does not begin after the end of the node, whatever waited', async () => {
    const background = new BackgroundWork({ quietMs: LONG_MS, heldMsMax: LONG_MS });
    background.requestBegins();
    const waiting = background.run(async () => assert.fail('it began'));
    background.close();
    await background.settled();
    await waiting;
  });
});

describe('the git of background work', () => {
  test('gives way to other processes, and stops while git works for a request', NEEDS_PROC, async (context) => {
    const { git, start } = await newGit(context);
    const background = await start({ background: true });
    await eventually('it gives way', () => statOf(background.pid).nice === Math.min(getPriority() + 16, 19));
    const request = await start({});
    await eventually('it gives way too, but less', () => statOf(request.pid).nice === Math.min(getPriority() + 10, 19));
    await eventually('it is stopped', () => statOf(background.pid).state === 'T');
    request.stdin?.end();
    await request.ended;
    await eventually('it goes on', () => statOf(background.pid).state !== 'T');
    background.stdin?.end();
    assert.equal((await background.ended).code, 0);
    await git.background.settled();
  });

  test('dies with the node, even while it is stopped', NEEDS_PROC, async (context) => {
    const { runner, start } = await newGit(context);
    const background = await start({ background: true });
    await start({});
    await eventually('it is stopped', () => statOf(background.pid).state === 'T');
    await runner.close();
    await eventually('it is gone', () => !isAlive(background.pid));
  });
});

interface Started {
  readonly git: Git;
  readonly runner: ProcessRunner;
  /** Starts a git that waits for its input. */
  readonly start: (options: Pick<GitCommand, 'background'>) => ReturnType<Git['start']>;
}

async function newGit(context: TestContext): Promise<Started> {
  const folder = await tempDir(context);
  const repository = testRepository(path.join(folder, 'repository'));
  const limits = { memoryBytesMax: 2 ** 31, fileBytesMax: 2 ** 30, cpuSecondsMax: 60, openFilesMax: 1_000 };
  const runner = createProcessRunner({
    limits,
    processesMax: 8,
    processesPerKeyMax: 8,
    directory: path.join(folder, 'helper'),
    onHelperLine: (line) => assert.fail(line),
  });
  context.onTestFinished(() => runner.close());
  const git = await createGit(runner, undefined);
  const view = { key: 'repository', variables: async () => ({ GIT_DIR: path.join(repository.path, '.git') }) };
  const start: Started['start'] = async (options) => {
    const running = await git.start({ args: ['cat-file', '--batch'], view, ...options }, 'stream', 'stream');
    running.stdin?.on('error', () => undefined);
    running.stdout?.on('error', () => undefined).resume();
    return running;
  };
  return { git, runner, start };
}

/** proc(5): after the command in parentheses follow the state, and as the 19th field the nice value. */
function statOf(pid: number): { readonly state: string; readonly nice: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? [];
  return { state: fields[0] ?? '', nice: Number(fields[16]) };
}
