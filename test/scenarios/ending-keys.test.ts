/** A rotation, a theft and a revocation of the key of checkpoints on a real server, followed by both verifiers. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'vitest';
import { watch } from '../../apps/cli/commands/audit-watch.ts';
import { parseCheckpoint, parseKey, parseKeys } from '../../apps/verifier/checkpoint.ts';
import { judge } from '../../apps/verifier/judge.ts';
import { ROOT } from '../architecture/source-tree.ts';
import { runInProcess } from '../support/command-in-process.ts';
import { isThere } from '../support/optional-suites.ts';
import { admin, api, createAccount, createRepository, type Strata, startStrata, tryAdmin } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';

const hasPython = isThere('python3');

interface Verifying {
  readonly keys: readonly string[];
  readonly kept?: readonly string[];
  readonly revoked?: { readonly line: string; readonly after: number };
}

/** Returns the verdict of both verifiers, which must be the same. */
async function verdictOf(file: string, { keys, kept = [], revoked }: Verifying): Promise<number> {
  const lines = keys.map((line) => `${line}\n`).join('');
  await writeFile(`${file}.keys`, lines);
  const args = [path.join(ROOT, 'docs/verifier/verify.py'), file, '--keys', `${file}.keys`];
  for (const [index, note] of kept.entries()) {
    await writeFile(`${file}.${index}`, note);
    args.push('--checkpoint', `${file}.${index}`);
  }
  if (revoked !== undefined) args.push('--revoke', revoked.line, '--after', String(revoked.after));
  const older = kept.map((note) => parseCheckpoint(note) ?? assert.fail('no checkpoint'));
  const key = revoked === undefined ? null : (parseKey(revoked.line) ?? assert.fail('no key'));
  const stolen = key === null || revoked === undefined ? null : { key, after: revoked.after };
  let status = -1;
  for await (const judged of judge([file], { keys: parseKeys(lines), older, revoked: stolen })) status = judged.status;
  if (hasPython) assert.equal(spawnSync('python3', args).status, status);
  return status;
}

async function listed(strata: Strata): Promise<readonly string[]> {
  return (await (await fetch(`${strata.url}/.well-known/strata-log-keys`)).text()).trim().split('\n');
}

test('A key of checkpoints is rotated, stolen and revoked, and auditors follow it from the first key on', {
  timeout: 180_000,
}, async (context) => {
  let strata = await startStrata(context);
  const [ada, bob] = [await createAccount(strata, 'ada'), await createAccount(strata, 'bob')];
  const folder = await tempDir(context);
  const [file, kept] = [path.join(folder, 'log.ndjson'), path.join(folder, 'kept')];
  const [first = ''] = await listed(strata);
  await writeFile(path.join(folder, 'given'), `${first}\n`);
  const exported = async (): Promise<string> => {
    const headers = { authorization: `Bearer ${ada.token}` };
    await writeFile(file, await (await fetch(`${strata.url}/v1/account/events/export`, { headers })).text());
    return file;
  };
  const look = async (keys?: string): Promise<unknown> => {
    const environment = { SERVICE_BASE_URL: strata.url, SERVICE_TOKEN: ada.token };
    const options: Record<string, string> = { folder: kept };
    if (keys !== undefined) options['keys'] = keys;
    return (await runInProcess(context, watch, { environment, options })).error;
  };
  assert.equal(await look(path.join(folder, 'given')), null);
  assert.equal(await verdictOf(await exported(), { keys: [first] }), 0);

  // A server reads the keys when it starts, and one that runs within a minute.
  await admin(strata, ['log', 'rotate-key']);
  strata = await strata.restart();
  assert.equal(await look(), null);
  const [, second = ''] = await listed(strata);
  assert.equal(await readFile(path.join(kept, 'keys'), 'utf8'), `# The log endorses this key\n${second}\n`);
  assert.equal(await verdictOf(await exported(), { keys: [first] }), 0, 'the first key is enough');
  assert.equal(await verdictOf(await exported(), { keys: [second] }), 2);
  const note = (await api(strata, ada.token, 'GET', '/v1/account/checkpoints/latest')).text;
  const size = parseCheckpoint(note)?.size ?? 0;

  const unknown = await tryAdmin(strata, ['log', 'revoke-key', 'no key']);
  assert.equal(unknown.code, 1, unknown.stdout);
  await admin(strata, ['log', 'revoke-key', second]);
  strata = await strata.restart();
  await createRepository(strata, ada, 'engine');
  assert.notEqual(await look(), null, 'nothing endorses the third key');
  const [, , third = ''] = await listed(strata);
  await writeFile(path.join(folder, 'given'), `${third}\n`);
  assert.equal(await look(path.join(folder, 'given')), null);
  assert.equal(await look(), null);
  const revoked = { line: second, after: size };
  assert.equal(await verdictOf(await exported(), { keys: [first, third], kept: [note], revoked }), 0);
  assert.equal(await verdictOf(await exported(), { keys: [first], kept: [note], revoked }), 2);
  assert.equal(await verdictOf(await exported(), { keys: [first, third], revoked }), 2, 'nothing was kept');
  const answer = await fetch(`${strata.url}/v1/log-keys`);
  const { keys } = (await answer.json()) as { readonly keys: readonly Readonly<Record<string, unknown>>[] };
  assert.deepEqual(
    keys.map(({ vkey, endorsed_by, signature, revoked: isRevoked }) => [
      vkey,
      endorsed_by,
      typeof signature === 'string',
      isRevoked,
    ]),
    [
      [first, null, false, false],
      [second, first, true, true],
      [third, second, false, false],
    ],
  );

  // Whose log was never signed before gets every endorsement, and so does an erased account.
  await admin(strata, ['account', 'erase', '--username', 'bob', '--yes']);
  const erased = path.join(folder, 'erased.ndjson');
  await admin(strata, ['log', 'export', erased, '--account', bob.id]);
  assert.equal(await verdictOf(erased, { keys: [first, third] }), 0);
});
