/**
 * Runs the worked example of docs/audit.md: each command that it shows, in one shell, against a real server. What they
 * print must have the shape of what the document shows: the same lines, whose ids, hashes, times and numbers are
 * others.
 */
import assert from 'node:assert/strict';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'vitest';
import { ROOT } from '../architecture/source-tree.ts';
import { bundledCommand, commandLine } from '../support/command-line.ts';
import { createAccount, startStrata } from '../support/strata.ts';

interface Step {
  readonly command: string;
  readonly output: readonly string[];
}

const SERVICE = 'http://localhost:8080';
const SECTION = /\n## A worked example\n(.*?)\n## /s;

/** Returns the commands of the section, with what the document shows under them. */
function stepsOf(text: string): readonly Step[] {
  const section = SECTION.exec(text)?.[1];
  assert.ok(section !== undefined, 'docs/audit.md has no worked example');
  const steps: { command: string; output: string[] }[] = [];
  for (const line of section.split('\n')) {
    if (!line.startsWith('    ')) continue;
    const shown = line.slice(4);
    if (shown.startsWith('$ ')) steps.push({ command: shown.slice(2), output: [] });
    else steps.at(-1)?.output.push(shown);
  }
  return steps;
}

/** Returns the line without what is another each time. */
function shapeOf(line: string): string {
  return line
    .replaceAll(/(\/\S*\/work|\.\.\.)\//g, '')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<id>')
    .replaceAll(/\b([0-9a-f]{40}|[0-9a-f]{64})\b/g, '<hash>')
    .replaceAll(/\d+/g, '<n>')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

test('the worked example of the document is what its commands print', async (context) => {
  const steps = stepsOf(await readFile(path.join(ROOT, 'docs/audit.md'), 'utf8'));
  const strata = await startStrata(context);
  const ada = await createAccount(strata, 'ada');
  const command = await bundledCommand(context);
  const cli = await commandLine(context, strata, { command, env: { SERVICE_TOKEN: ada.token } });
  const programs = path.join(cli.home, 'bin');
  await mkdir(programs);
  const quoted = command.map((part) => `'${part}'`).join(' ');
  await writeFile(path.join(programs, 'strata'), `#!/bin/sh\nexec ${quoted} "$@"\n`);
  await chmod(path.join(programs, 'strata'), 0o755);
  const helper = ['git', 'config', '--global', `credential.${strata.url}.helper`, '!strata git-credential'];
  assert.equal((await cli.program(helper)).code, 0);
  const mark = '--- the next command ---';
  const script = steps.map((step) => `${step.command.replaceAll(SERVICE, strata.url)}\necho '${mark}'\n`).join('');
  const env = { PATH: `${programs}:${cli.env['PATH'] ?? ''}` };
  // One stream for both outputs, in the order in which they were written.
  const shell = await cli.program(['bash', '-c', 'exec bash -s 2>&1'], { input: script, env });
  const printed = shell.stdout.replaceAll(strata.url, SERVICE).replaceAll(new URL(strata.url).host, 'localhost:8080');
  const outputs = printed.split(`${mark}\n`).map((text) => text.split('\n').filter((line) => line !== ''));
  for (const [index, step] of steps.entries()) {
    const actual = outputs[index] ?? [];
    assert.deepEqual(actual.map(shapeOf), step.output.map(shapeOf), `${step.command}\n${actual.join('\n')}`);
  }
});
