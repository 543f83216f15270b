/** What a service still holds of a person after the erasure: nothing in plain text, and a log that verifies. */
import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'pg';
import { beforeAll, describe, test } from 'vitest';
import { parseKeys } from '../../apps/verifier/checkpoint.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { restoredDatabase } from '../support/database-copy.ts';
import { kept, verifyText } from '../support/exported-log.ts';
import { filesBelow } from '../support/files-below.ts';
import {
  type Account,
  admin,
  api,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';
import { answeringStatus, createWebhook, untilDeliveries, webhookReceivers } from '../support/webhook-receiver.ts';

const ADDRESS = '198.51.100.77';
const AUTHOR = 'ada.private@example.net';
const ANSWER = 'hello to Ada from her own receiver';
const EMAIL = 'ada@example.org';

/** Every row of the database as text; bytes are hex. */
async function dump(connectionString: string): Promise<string> {
  const pool = new Pool({ connectionString });
  try {
    const { rows: tables } = await pool.query<{ name: string }>(
      `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
       WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`,
    );
    let text = '';
    for (const { name } of tables) {
      const { rows } = await pool.query<{ row: string }>(`SELECT row_to_json(t)::text AS row FROM ${name} AS t`);
      text += rows.map(({ row }) => `${name} ${row}\n`).join('');
    }
    return text;
  } finally {
    await pool.end();
  }
}

/** Which of the values the text holds, plain or in hex. */
function held(text: string, values: readonly string[]): readonly string[] {
  return values.filter((value) => text.includes(value) || text.includes(Buffer.from(value).toString('hex')));
}

/** A node drops what it has cached when the event reaches it. */
async function untilEmpty(folder: string): Promise<void> {
  for (const deadline = Date.now() + 30_000; ; await sleep(50)) {
    const files = await filesBelow(folder);
    if (files.length === 0) return;
    if (Date.now() > deadline) assert.fail(`Still cached: ${files.join(', ')}`);
  }
}

describe('After the erasure of an account', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let strata: Strata;
  let ada: Account;
  let note: string;
  let values: readonly string[];
  const database = () => dump(shared.env['STRATA_DATABASE_OWNER_URL'] ?? '');

  beforeAll(async () => {
    const receivers = await webhookReceivers(ending);
    shared = await sharedParts(ending);
    strata = await startNode(ending, shared, { ...receivers.env, STRATA_TRUSTED_PROXIES: '127.0.0.1,::1' });
    ada = await createAccount(strata, 'ada');
    const receiver = await receivers.start(answeringStatus(200, ANSWER));
    const { id: webhook, secret } = await createWebhook(strata, ada, receiver.url);
    const url = await createRepository(strata, ada, 'diary');
    await fetch(`${strata.url}/v1/repos/ada/diary`, {
      method: 'PATCH',
      headers: {
        ...{ Authorization: `Bearer ${ada.token}`, 'Content-Type': 'application/json' },
        ...{ 'X-Forwarded-For': ADDRESS },
      },
      body: JSON.stringify({ description: 'mine' }),
    });
    const work = await newWorkTree(ending);
    await git(work, ['commit', '--quiet', '--allow-empty', '--author', `Ada <${AUTHOR}>`, '-m', 'dear diary']);
    await git(work, ['push', '--quiet', url, 'main']);
    await receiver.until(2);
    await untilDeliveries(
      strata,
      ada,
      webhook,
      (list) => list.length >= 2 && list.every((one) => one.status === 'SUCCESS'),
    );
    await git(await tempDir(ending), ['clone', '--quiet', url, 'clone']);
    assert.ok((await filesBelow(path.join(strata.dataDir, 'cache', 'repositories'))).length > 0, 'the push is cached');
    assert.ok((await filesBelow(path.join(strata.dataDir, 'cache', 'answers'))).length > 0, 'the clone is cached');
    note = (await api(strata, ada.token, 'GET', '/v1/account/checkpoints/latest')).text;
    values = [EMAIL, AUTHOR, ANSWER, ADDRESS, receiver.url, secret, ada.token];
    assert.deepEqual(
      held(await database(), values),
      [AUTHOR, ANSWER],
      'what the vault seals is not found before either',
    );
    await admin(strata, ['account', 'erase', '--username', 'ada', '--yes']);
  });

  test('none of its personal data is in plain text in the database, the log lines or storage', async () => {
    assert.deepEqual(held(await database(), values), []);
    assert.deepEqual(held(strata.log(), values), []);
    for (const folder of [shared.layersDir, strata.dataDir]) {
      for (const file of await filesBelow(folder)) {
        // Sockets of processes that run hold nothing.
        if (!(await stat(path.join(folder, file))).isFile()) continue;
        assert.deepEqual(held(await readFile(path.join(folder, file), 'latin1'), values), [], file);
      }
    }
    await untilEmpty(path.join(strata.dataDir, 'cache', 'repositories'));
    await untilEmpty(path.join(strata.dataDir, 'cache', 'answers'));
    const stored = await filesBelow(shared.layersDir);
    assert.deepEqual(
      new Set(stored.map((file) => file.split('/')[0])),
      new Set(['checkpoints', 'erasures']),
      'what proves the history and the erasure stays',
    );
  });

  test('an operator exports its log, which holds no opening, verifies, and continues what an auditor kept', async () => {
    const folder = await tempDir(ending);
    const file = path.join(folder, 'ada.ndjson');
    await admin(strata, ['log', 'export', file, '--account', ada.id]);
    const text = await readFile(file, 'utf8');
    assert.deepEqual(held(text, values), []);
    const lines = text.trimEnd().split('\n').slice(0, -1);
    for (const line of lines) assert.deepEqual((JSON.parse(line) as { openings: object }).openings, {});
    assert.ok(text.includes('"AccountErased"') && text.includes('"reason":"erasure"'));
    const keys = parseKeys(await (await fetch(`${strata.url}/.well-known/strata-log-keys`)).text());
    await verifyText(text, { keys, older: [kept(note)] });
    await assert.rejects(admin(strata, ['log', 'export', file, '--account', ada.id]), /exists/);
    await assert.rejects(
      admin(strata, ['log', 'export', `${file}2`, '--account', ada.id.replace(/^../, 'ff')]),
      /no log/,
    );
  });

  // The attack: an operator restores a backup from before an erasure, and the person is back.
  test('a server that starts on a backup from before an erasure erases again before it answers', async () => {
    const bob = await createAccount(strata, 'bob');
    assert.equal((await api(strata, bob.token, 'GET', '/v1/repositories')).status, 200);
    await strata.stop();
    const databases = await restoredDatabase(shared, ending);
    await admin(strata, ['account', 'erase', '--username', 'bob', '--yes']);
    const restored = await startNode(ending, shared, databases);
    assert.equal((await api(restored, bob.token, 'GET', '/v1/repositories')).status, 401);
    assert.match(restored.log(), /Erased an account again[^]*Strata is ready/);
    assert.deepEqual(held(await dump(databases.STRATA_DATABASE_OWNER_URL), ['bob@example.org']), []);
  });
});
