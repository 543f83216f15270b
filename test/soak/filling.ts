/**
 * What an account of the plan FREE does to fill the disk and the database: pushes whose repository is gone before their
 * last byte, rounds of branches that are deleted and purged, wide pushes to twenty webhooks whose receiver fails with
 * long answers, and changes without end.
 *
 * Invariants: what the server answers is not judged here. What the account may take at most is in `FILLING_FIGURES`:
 * its plan, and the bounds of docs/operating.md for what no quota of the plan counts.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import path from 'node:path';
import type pg from 'pg';
import { basicAuthorization, blob, commandList, commit, pack, tree, wirePush } from '../support/git-wire.ts';
import type { Dice } from '../support/seeded.ts';
import { type Account, api } from '../support/strata.ts';
import { createWebhook } from '../support/webhook-receiver.ts';
import type { Figure } from './flatness.ts';
import type { Act } from './honest.ts';
import { bytesBelow } from './sampling.ts';
import { type Person, REPOSITORY, repositoryPath, type Scene } from './scene.ts';
import type { SoakServer } from './server.ts';

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
const ORPHAN_BYTES = 8 * MIB;
const ROUND_BYTES = 4 * MIB;
const WIDE_REFS = 1_000;
const CHANGES = 50;
const WEBHOOKS = 20;
/** More of an answer is not kept. */
export const LONG_ANSWER = `HTTP/1.1 500 Failed\r\n\r\n${'x'.repeat(16 * 1024)}`;
const WAIT_MS_MAX = 30_000;

/** The plan of every FREE account of a soak: small enough to be used up within it. */
export const FREE_PLAN = {
  repos: 50,
  storage_bytes: 64 * MIB,
  transfer_bytes: 50 * GIB,
  ingress_bytes: 50 * GIB,
  byo_storage: false,
  changes_per_month: 3_000,
} as const;

/** docs/operating.md, Where bytes are kept: twice the plan's storage and at least 1 GiB; answers, and payloads. */
const WAITING_BYTES_MAX = Math.max(GIB, 2 * FREE_PLAN.storage_bytes);
const DELIVERIES_BYTES_MAX = 64 * MIB + GIB;

export const FILLING_FIGURES: readonly Figure[] = [
  {
    name: 'disk: layers of the filling account',
    unit: 'bytes',
    slack: { most: FREE_PLAN.storage_bytes + WAITING_BYTES_MAX },
  },
  { name: 'database: deliveries of the filling account', unit: 'bytes', slack: { most: DELIVERIES_BYTES_MAX } },
  { name: 'database: other rows of the filling account', unit: 'bytes', slack: null },
  { name: 'changes of the filling account', unit: 'count', slack: { most: FREE_PLAN.changes_per_month } },
];

export interface Filling {
  /** By name, with how often each is done. */
  readonly acts: ReadonlyMap<string, { readonly weight: number; readonly act: Act }>;
  /** Measures what the account takes: a value for each figure of `FILLING_FIGURES`. */
  measure(database: pg.Pool): Promise<ReadonlyMap<string, number>>;
}

/** `person` has the plan FREE and works as nobody else. Registers the webhooks. */
export async function createFilling({ server }: Scene, person: Person, receiver: string): Promise<Filling> {
  const { account } = person;
  for (let n = 0; n < WEBHOOKS; n += 1) await createWebhook(server, account, receiver);
  const repositories = new Set([await idOf(server, account, REPOSITORY)]);
  return {
    acts: new Map([
      ['orphaned push', { weight: 3, act: (scene, filler) => pushToDeleted(scene, filler, repositories) }],
      ['round of a purge', { weight: 3, act: purgeRound }],
      ['wide push', { weight: 1, act: pushWide }],
      ['changes', { weight: 1, act: change }],
    ]),
    measure: (database) => measureFilling(server, { account, repositories }, database),
  };
}

function treeOf(bytes: number) {
  const file = blob(randomBytes(bytes));
  const folder = tree([{ mode: '100644', name: 'file', id: file.id }]);
  return { tip: commit(`Fill ${file.id}`, folder.id), objects: [file, folder] };
}

/** Sends a push but for its last byte, deletes its repository, and sends the byte. */
async function pushToDeleted({ server }: Scene, person: Person, repositories: Set<string>): Promise<void> {
  const { account, address } = person;
  const name = `fill-${(person.made += 1)}`;
  const created = await api(server, account.token, 'POST', '/v1/repositories', { name });
  if (created.status !== 201) return;
  repositories.add((created.body as { readonly id: string }).id);
  const { tip, objects } = treeOf(ORPHAN_BYTES);
  const body = Buffer.concat([commandList([{ ref: 'refs/heads/main', after: tip.id }]), pack([...objects, tip])]);
  const head = [
    `POST /r/${account.username}/${name}.git/git-receive-pack HTTP/1.1`,
    'Host: localhost',
    `X-Forwarded-For: ${address}`,
    `Authorization: ${basicAuthorization(account)}`,
    'Content-Type: application/x-git-receive-pack-request',
    `Content-Length: ${body.length}`,
    'Connection: close',
  ];
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  const timer = setTimeout(() => socket.destroy(), WAIT_MS_MAX);
  try {
    await once(socket, 'connect');
    socket.resume();
    const closed = once(socket, 'close');
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    socket.write(body.subarray(0, -1));
    await api(server, account.token, 'DELETE', `/v1/repos/${account.username}/${name}`);
    socket.write(body.subarray(-1));
    await closed;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

/** Pushes a branch, deletes it, and purges the repository. */
async function purgeRound({ server }: Scene, person: Person, dice: Dice): Promise<void> {
  const target = { strata: server, account: person.account, name: REPOSITORY };
  const ref = `refs/heads/round-${dice.below(1_000_000)}`;
  const { tip, objects } = treeOf(ROUND_BYTES);
  await wirePush(target, [{ ref, after: tip.id }], [...objects, tip]);
  await wirePush(target, [{ ref, before: tip.id }], null);
  const id = await idOf(server, person.account, REPOSITORY);
  await api(server, person.account.token, 'POST', `/v1/repositories/${id}/purge`);
}

async function pushWide({ server }: Scene, person: Person, dice: Dice): Promise<void> {
  const target = { strata: server, account: person.account, name: REPOSITORY };
  const { tip, objects } = treeOf(1);
  const prefix = `refs/heads/wide-${dice.below(1_000_000)}`;
  const refs = Array.from({ length: WIDE_REFS }, (_, n) => `${prefix}-${n}`);
  await wirePush(
    target,
    refs.map((ref) => ({ ref, after: tip.id })),
    [...objects, tip],
  );
  await wirePush(
    target,
    refs.map((ref) => ({ ref, before: tip.id })),
    null,
  );
}

async function change({ server }: Scene, person: Person): Promise<void> {
  for (let n = 0; n < CHANGES; n += 1) {
    const description = `Changed ${(person.made += 1)} times`;
    const changed = await api(server, person.account.token, 'PATCH', repositoryPath(person), { description });
    if (changed.status !== 200) return;
  }
}

async function idOf(server: SoakServer, { username, token }: Account, name: string): Promise<string> {
  const { body } = await api(server, token, 'GET', `/v1/repos/${username}/${name}`);
  return (body as { readonly id: string }).id;
}

async function measureFilling(
  server: SoakServer,
  { account, repositories }: { readonly account: Account; readonly repositories: ReadonlySet<string> },
  database: pg.Pool,
): Promise<ReadonlyMap<string, number>> {
  const folders = [...repositories].map((id) => path.join(server.dataDir, 'layers', 'repositories', id));
  const tables = await rowBytes(database, account.id);
  const usage = await api(server, account.token, 'GET', '/v1/account/usage');
  const { changes } = usage.body as { readonly changes: { readonly used: number } };
  return new Map([
    ['disk: layers of the filling account', await bytesBelow(folders)],
    ['database: deliveries of the filling account', tables.deliveries],
    ['database: other rows of the filling account', tables.others],
    ['changes of the filling account', changes.used],
  ]);
}

/** The bytes of all rows that name the account. */
async function rowBytes(database: pg.Pool, account: string) {
  const { rows: tables } = await database.query<{ sql: string; isOfDeliveries: boolean }>(
    `SELECT format('%I.%I', table_schema, table_name) AS sql, table_name LIKE 'webhook%' AS "isOfDeliveries"
     FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
     WHERE column_name = 'account_id' AND table_type = 'BASE TABLE'`,
  );
  const bytes = { deliveries: 0, others: 0 };
  for (const { sql, isOfDeliveries } of tables) {
    const summed = `SELECT coalesce(sum(pg_column_size(t.*)), 0) AS bytes FROM ${sql} t WHERE t.account_id::text = $1`;
    const { rows } = await database.query<{ bytes: string }>(summed, [account]);
    bytes[isOfDeliveries ? 'deliveries' : 'others'] += Number(rows[0]?.bytes ?? 0);
  }
  return bytes;
}
