/** 24 clones at the same moment, as of one pipeline: the server runs git once for all of them. */
import assert from 'node:assert/strict';
import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'vitest';
import type { Ending } from '../support/cleanup.ts';
import { runGit } from '../support/git.ts';
import { commitFile, createAccount, createRepository, git, newWorkTree, type Strata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

const CLONES = 24;

/** A git for the server that writes down each command that it runs. */
async function countingGit(context: Ending): Promise<{ readonly path: string; commands(): Promise<string[]> }> {
  const folder = await tempDir(context);
  const calls = path.join(folder, 'calls');
  const real = path.join(runGit(['--exec-path']).toString().trim(), 'git');
  const program = path.join(folder, 'git');
  await writeFile(program, `#!/bin/sh\necho "$1" >>'${calls}'\nexec '${real}' "$@"\n`);
  await chmod(program, 0o755);
  return {
    path: `${folder}${path.delimiter}${process.env['PATH'] ?? ''}`,
    commands: async () => {
      const written = await readFile(calls, 'utf8');
      await rm(calls);
      return written.split('\n');
    },
  };
}

async function cloneAtOnce(context: Ending, url: string, tip: string): Promise<void> {
  const folder = await tempDir(context);
  const names = Array.from({ length: CLONES }, (_, n) => String(n));
  await Promise.all(names.map((name) => git(folder, ['clone', '--quiet', '--bare', url, name])));
  for (const name of names) assert.equal((await git(path.join(folder, name), ['rev-parse', 'HEAD'])).trim(), tip);
}

test('24 clones right after a push, and 24 of a cold cache, run one upload-pack each', async (context) => {
  const counting = await countingGit(context);
  const shared = await sharedParts(context);
  let strata: Strata = await startNode(context, shared, { PATH: counting.path });
  const uploads = async (): Promise<number> =>
    (await counting.commands()).filter((command) => command === 'upload-pack').length;
  const ada = await createAccount({ env: shared.env }, 'ada');
  const url = await createRepository(strata, ada, 'project');
  const work = await newWorkTree(context);
  for (let n = 0; n < 20; n += 1) await commitFile(work, `file-${n}`, `${n}\n`.repeat(10_000));
  await git(work, ['push', '--quiet', url, 'main']);
  await counting.commands();
  const tip = await commitFile(work, 'last', 'pushed right before the clones\n');
  await git(work, ['push', '--quiet', url, 'main']);
  await cloneAtOnce(context, url, tip);
  assert.equal(await uploads(), 1, 'right after a push');

  await strata.stop();
  await rm(path.join(strata.dataDir, 'cache'), { recursive: true });
  strata = await strata.restart();
  await cloneAtOnce(context, url, tip);
  assert.equal(await uploads(), 1, 'of a cold cache');
});
