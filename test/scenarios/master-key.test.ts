/** A new master key while the server runs, and after a kill at each step of its making. */
import assert from 'node:assert/strict';
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'vitest';
import { FAILPOINTS } from '../../core/ports/failpoints.ts';
import { type Account, admin, api, createAccount, type Strata, startStrata, tryAdmin } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';

const ROTATE = ['master-key', 'rotate', '--yes'];
const PRIVATE = { STRATA_ALLOW_PRIVATE_TARGETS: 'true' };
const POINTS = FAILPOINTS.filter((point) => point.startsWith('master-key-'));
const [OLD, NEW] = ['ab'.repeat(32), 'cd'.repeat(32)];

/** The server writes and reads secrets of the account, and those that it had before. */
async function usesSecrets(strata: Strata, account: Account, hook: string): Promise<void> {
  const url = `https://127.0.0.1:1/${hook}`;
  const made = await api(strata, account.token, 'POST', '/v1/webhooks', { url, events: ['push'] });
  assert.equal(made.status, 201, `${made.text}\n${strata.log()}`);
  const listed = await api(strata, account.token, 'GET', '/v1/webhooks');
  assert.ok(listed.status === 200 && listed.text.includes(url), listed.text);
}

/** The address of an account is taken before and after: it names a stream. */
async function addressIsTaken(strata: Strata): Promise<void> {
  const args = ['account', 'create', '--username', 'other', '--email', 'ada@example.org', '--password-stdin'];
  const refused = await tryAdmin(strata, args, 'correct horse battery\n');
  assert.equal(refused.code, 1, refused.stdout);
  assert.match(refused.stderr, /address|email/i);
}

/** The account's log says each rotation once, from its next checkpoint on. */
async function logSays(strata: Strata, account: Account, rotations: number): Promise<void> {
  for (let n = 0; n < 2; n += 1) {
    const signed = await api(strata, account.token, 'GET', '/v1/account/checkpoints/latest');
    assert.equal(signed.status, 200, signed.text);
    const listed = await api(strata, account.token, 'GET', '/v1/account/events?type=MasterKeyRotated');
    const { events } = JSON.parse(listed.text) as {
      readonly events: readonly { readonly entry: { readonly actor: object; readonly data: { key_id: string } } }[];
    };
    assert.equal(new Set(events.map(({ entry }) => entry.data.key_id)).size, rotations, listed.text);
    assert.equal(events.length, rotations);
    for (const { entry } of events) assert.deepEqual(entry.actor, { kind: 'admin', id: 'master-key rotate' });
  }
}

async function everythingReads(strata: Strata): Promise<void> {
  const verified = await tryAdmin(strata, ['log', 'verify', '--references']);
  assert.equal(verified.code, 0, verified.stdout + verified.stderr);
  assert.equal((await tryAdmin(strata, ['identity-keys', 'list'])).code, 0);
  await addressIsTaken(strata);
}

const keyFiles = async ({ dataDir }: Strata) =>
  (await readdir(dataDir)).filter((name) => name.startsWith('master-key'));

describe('A new master key', () => {
  test('in the data directory is taken up by a running server, whatever step a kill interrupts', {
    timeout: 300_000,
  }, async (context) => {
    let strata = await startStrata(context, { env: PRIVATE, log: 'postgres' });
    const ada = await createAccount(strata, 'ada', 'FREE');
    await admin(strata, ['identity-keys', 'rotate']);
    await admin(strata, ['log', 'rotate-key']);
    const file = path.join(strata.dataDir, 'master-key');
    const before = await readFile(file, 'utf8');
    const plan = await tryAdmin(strata, ['master-key', 'rotate']);
    assert.deepEqual([plan.code, await keyFiles(strata)], [1, ['master-key']]);
    assert.match(plan.stderr, /keep a copy/);
    for (const [index, point] of POINTS.entries()) {
      const killed = await tryAdmin({ env: { ...strata.env, STRATA_FAILPOINT: point } }, ROTATE);
      assert.equal(killed.code, null, `${point}: ${killed.stderr}`);
      await usesSecrets(strata, ada, `at-${point}`);
      if (index === 2) await createAccount(strata, 'meanwhile', 'FREE');
    }
    const between = await readFile(file, 'utf8');
    assert.notEqual(between, before, 'the last kill is after the file was replaced');
    const done = await tryAdmin(strata, ROTATE);
    assert.equal(done.code, 0, done.stderr);
    const after = await readFile(file, 'utf8');
    assert.notEqual(after, between, 'another rotation');
    assert.ok(![before, between, after].some((key) => (done.stdout + done.stderr + strata.log()).includes(key.trim())));
    assert.deepEqual([await keyFiles(strata), (await stat(file)).mode & 0o777], [['master-key'], 0o600]);
    await usesSecrets(strata, ada, 'afterwards');
    await logSays(strata, ada, 2);
    strata = await strata.restart();
    await usesSecrets(strata, ada, 'after-a-restart');
    await everythingReads(strata);
    const foreign = await tryAdmin({ env: { ...strata.env, STRATA_MASTER_KEY: before.trim() } }, [
      'identity-keys',
      'list',
    ]);
    assert.equal(foreign.code, 1);
    assert.match(foreign.stderr, /not the one that this database was last given/);
  });

  test('of the settings is taken up by servers that were given both', { timeout: 240_000 }, async (context) => {
    const dataDir = await tempDir(context);
    const both = { ...PRIVATE, STRATA_MASTER_KEY: OLD, STRATA_MASTER_KEY_NEW: NEW };
    let strata = await startStrata(context, { dataDir, env: both, log: 'postgres' });
    const ada = await createAccount(strata, 'ada', 'FREE');
    await usesSecrets(strata, ada, 'before');
    const missing = await tryAdmin({ env: { ...strata.env, STRATA_MASTER_KEY_NEW: '' } }, ROTATE);
    assert.deepEqual([missing.code, /STRATA_MASTER_KEY_NEW/.test(missing.stderr)], [1, true]);
    const unfit = await tryAdmin(
      { env: { ...strata.env, STRATA_MASTER_KEY_NEW: '' } },
      [...ROTATE, '--new-key-stdin'],
      'ab',
    );
    assert.deepEqual([unfit.code, /Standard input must hold 32 bytes/.test(unfit.stderr)], [1, true]);
    const env = { ...strata.env, STRATA_MASTER_KEY_NEW: '', STRATA_FAILPOINT: 'master-key-announced' };
    assert.equal((await tryAdmin({ env }, [...ROTATE, '--new-key-stdin'], NEW)).code, null);
    await usesSecrets(strata, ada, 'between');
    const other = await tryAdmin({ env: { ...strata.env, STRATA_MASTER_KEY_NEW: 'ef'.repeat(32) } }, ROTATE);
    assert.equal(other.code, 1, 'the new key is another one than the rotation began with');
    const done = await tryAdmin(strata, ROTATE);
    assert.deepEqual([done.code, /set STRATA_MASTER_KEY to the new key/.test(done.stdout)], [0, true], done.stderr);
    await usesSecrets(strata, ada, 'afterwards');
    assert.equal((await tryAdmin(strata, ROTATE)).code, 0, 'once more changes nothing');
    assert.deepEqual(await keyFiles(strata), []);
    await logSays(strata, ada, 1);
    strata = await strata.restart({ STRATA_MASTER_KEY: NEW, STRATA_MASTER_KEY_NEW: '' });
    await usesSecrets(strata, ada, 'with-the-new-one');
    await everythingReads(strata);
    const old = await tryAdmin({ env: { ...strata.env, STRATA_MASTER_KEY: OLD } }, ['identity-keys', 'list']);
    assert.deepEqual([old.code, /last given/.test(old.stderr)], [1, true]);
  });
});
