/** Programs that start a real server for a test, tried with one that starts the protocol server. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'vitest';
import type { Ending } from '../cleanup.ts';
import { newEvent, newStream } from '../events.ts';
import { isAlive } from '../processes.ts';
import { tempDir } from '../temp-dir.ts';
import { openStore } from './open-log.ts';
import { startServerProgram } from './server-program.ts';

const PROTOCOL_SERVER = path.join(import.meta.dirname, 'main.ts');

async function programThat(context: Ending, ...lines: readonly string[]): Promise<string> {
  const file = path.join(await tempDir(context), 'program');
  await writeFile(file, ['#!/bin/sh', ...lines, ''].join('\n'), { mode: 0o755 });
  return file;
}

/** A scope that a test ends itself. */
function scope(): Ending & { end(): Promise<void> } {
  const steps: (() => void | Promise<void>)[] = [];
  return {
    onTestFinished: (step) => void steps.push(step),
    async end() {
      for (let next = steps.pop(); next !== undefined; next = steps.pop()) await next();
    },
  };
}

describe('a program that starts an EventStoreDB', () => {
  test('gets a free port and an empty folder, and its server takes appends until the test ends', async (context) => {
    const told = await tempDir(context);
    const program = await programThat(
      context,
      'echo "Starting, as a real server says before it answers"',
      `ls -A "$2" > '${told}/content' && echo "$$" > '${told}/pid'`,
      `exec '${process.execPath}' '${PROTOCOL_SERVER}' "$1"`,
    );
    const running = scope();
    const address = await startServerProgram(running, program);
    const { store } = openStore(context, address);
    const append = store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    assert.equal((await append).outcome, 'appended');
    assert.equal(await readFile(path.join(told, 'content'), 'utf8'), '');
    const pid = Number(await readFile(path.join(told, 'pid'), 'utf8'));
    assert.ok(isAlive(pid));
    await running.end();
    assert.ok(!isAlive(pid));
  });

  test('fails the test with its words when it prints no address', async (context) => {
    const program = await programThat(context, 'echo "The folder is locked" >&2', 'exit 3');
    await assert.rejects(
      startServerProgram(context, program),
      /printed no line that begins with esdb:\nThe folder is l/,
    );
    await assert.rejects(startServerProgram(context, '/nonexistent/program'), /ENOENT/);
  });
});
