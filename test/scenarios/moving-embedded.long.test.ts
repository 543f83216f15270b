/** Moves a service from one embedded database to another, by the words of the README (Moving to another database). */
import assert from 'node:assert/strict';
import { copyFile, cp, readFile, realpath } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'vitest';
import { madeDataDir } from '../support/made-data-dir.ts';
import { needs } from '../support/optional-suites.ts';
import { admin, createAccount, createRepository, git, newWorkTree, startStrata } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import { findTool } from '../support/tools.ts';
import { script } from './backup.ts';

/** The two commands of the README's step, without the addresses. */
async function commandsOfReadme(): Promise<readonly (readonly string[])[]> {
  const text = await readFile(path.resolve(import.meta.dirname, '../../README.md'), 'utf8');
  const lines = [...text.matchAll(/^ +((?:pg_dump --data-only|psql --single-transaction) .*) (?:OLD|NEW)$/gm)];
  return lines.map(([, command = '']) => command.split(' '));
}

test('a service moves into an embedded database as the README says', needs('pg_dump-18'), async (context) => {
  const from = await madeDataDir(context);
  const source = await startStrata(context, { log: 'postgres', dataDir: from });
  const ada = await createAccount(source, 'ada');
  const work = await newWorkTree(context);
  const url = await createRepository(source, ada, 'moved');
  await git(work, ['push', '--quiet', url, 'main']);
  const refs = await git(work, ['ls-remote', url]);
  assert.equal(await source.stop(), 0);
  const folder = await tempDir(context);
  const exported = (await admin(source, ['log', 'export', path.join(folder, 'log.jsonl')])) as { digest: string };

  const to = await madeDataDir(context);
  await cp(path.join(from, 'layers'), path.join(to, 'layers'), { recursive: true });
  await copyFile(path.join(from, 'master-key'), path.join(to, 'master-key'));
  const target = { env: { ...source.env, STRATA_DATA_DIR: to } };
  const imported = (await admin(target, ['log', 'import', path.join(folder, 'log.jsonl')])) as { digest: string };
  assert.equal(imported.digest, exported.digest);
  const programs = path.dirname(await realpath(findTool('pg_dump-18') ?? ''));
  const [dump = [], load = []] = await commandsOfReadme();
  const steps: readonly (readonly [Readonly<Record<string, string>>, readonly string[]])[] = [
    [source.env, dump],
    [target.env, load],
  ];
  for (const [env, command] of steps) {
    const inFolder = command.map((word) => (word === 'vault.sql' ? path.join(folder, word) : word));
    const searched = { ...env, PATH: `${programs}${path.delimiter}${env['PATH'] ?? ''}` };
    const { code, stdout, stderr } = await script('database.sh', searched, inFolder);
    assert.equal(code, 0, `${command.join(' ')}\n${stdout}${stderr}`);
  }

  const moved = await source.restart({ STRATA_DATA_DIR: to });
  assert.equal(await git(work, ['ls-remote', url]), refs);
  const { faults } = (await admin(moved, ['log', 'verify', '--references'])) as { faults: string[] };
  assert.deepEqual(faults, []);
});
