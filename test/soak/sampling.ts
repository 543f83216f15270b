/**
 * What a server takes of the machine at a moment, by figure: memory, files, processes, disk and the tables of its
 * database.
 *
 * Invariants: PostgreSQL's own processes are in no figure but those of the database. A table that is not named below
 * grows by design: it holds the record, or what is made of it. What caches hold in memory has a figure with their
 * bounds and is in no other: they fill for longer than a soak runs.
 */
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import type pg from 'pg';
import { DEFAULT_PLANS } from '../../core/account/plans.ts';
import { filesBelow } from '../support/files-below.ts';
import { familyOf, textOfProcess } from '../support/process-family.ts';
import type { Bound, Figure, Slack } from './flatness.ts';
import type { SoakServer } from './server.ts';

const MIB = 1024 * 1024;

/** The sum of docs/operating.md, with 64 MiB of entities. */
const CACHES_BYTES_MAX = 304 * MIB;

const MACHINE: readonly Figure[] = [
  bytes('memory of the server beside its caches', { share: 0.15, least: 64 * MIB }),
  bytes('its caches', { most: CACHES_BYTES_MAX }),
  bytes('its heap after a collection', { share: 0.1, least: 12 * MIB }),
  bytes('its buffers beside its caches', { share: 0.25, least: 48 * MIB }),
  bytes('memory of git and helpers', { share: 0.5, least: 96 * MIB }),
  count('file descriptors', { share: 0.15, least: 48 }),
  count('processes', { share: 0.25, least: 6 }),
  bytes('disk: cached repositories', { share: 0.25, least: 32 * MIB }),
  bytes('disk: cached answers', { share: 0.25, least: 16 * MIB }),
  bytes('disk: incoming, trash', { share: 0.25, least: 16 * MIB }),
  // Those that leave stay an hour.
  bytes('disk: layers', null),
  bytes('disk: database', null),
  count('events', null),
];

/** Rows of work under way, and of what is removed after its time; of a read model's tables without their generation. */
const FLAT_TABLES: ReadonlyMap<string, Slack | Bound> = new Map<string, Slack | Bound>([
  ['device_login_requests', { share: 0.25, least: 200 }],
  ['layer_compactions', { share: 0.25, least: 100 }],
  ['manifest_writes', { share: 0.25, least: 100 }],
  ['passkey_challenges', { share: 0.25, least: 20 }],
  ['rate_limits', { share: 0.25, least: 100 }],
  ['rate_sums', { share: 0.25, least: 200 }],
  ['read_leases', { share: 0, least: 1 }],
  ['webhook_budgets', { share: 0.25, least: 200 }],
  ['webhook_waiting_pushes', { share: 0.25, least: 200 }],
  ['device_login_changes', { share: 0.25, least: 200 }],
  ['device_login_networks', { share: 0.25, least: 200 }],
  ['web_sessions', { share: 0.1, least: 20 }],
  // One for each delivery that waits for its next attempt: of one account, the receiver always fails.
  ['read_models.timers', { most: (DEFAULT_PLANS.FREE.deliveries_per_hour ?? 0) + 200 }],
  // What a read model could not apply.
  ['read_models.parked', { share: 0, least: 0 }],
]);

/** Dead rows stay in a table until the next vacuum. */
const TABLE_SLACK: Slack = { share: 0.5, least: 2 * MIB };

function bytes(name: string, slack: Figure['slack']): Figure {
  return { name, unit: 'bytes', slack };
}

function count(name: string, slack: Figure['slack']): Figure {
  return { name, unit: 'count', slack };
}

export interface Measured {
  readonly figures: readonly Figure[];
  readonly values: ReadonlyMap<string, number>;
}

/** Measures everything once. */
export async function measure(server: SoakServer, database: pg.Pool): Promise<Measured> {
  const values = new Map<string, number>();
  const own = processesOf(server.pid);
  const caches = await cachedBytes(server);
  const all = sum([...caches.values()]);
  values.set('memory of the server beside its caches', residentBytes(server.pid) - all);
  values.set('its caches', all);
  const { heapUsed, external } = server.memory();
  values.set('its heap after a collection', heapUsed);
  values.set('its buffers beside its caches', external - sum(IN_BUFFERS.map((name) => caches.get(name) ?? 0)));
  const others = own.filter((pid) => pid !== server.pid);
  values.set('memory of git and helpers', sum(others.map(residentBytes)));
  values.set('file descriptors', descriptorsOf(server.pid));
  values.set('processes', own.length);
  const below = (...folders: string[]) => bytesBelow(folders.map((folder) => path.join(server.dataDir, folder)));
  values.set('disk: cached repositories', await below('cache/repositories'));
  values.set('disk: cached answers', await below('cache/answers'));
  values.set('disk: incoming, trash', await below('cache/incoming', 'cache/trash', 'layers/.incoming'));
  values.set('disk: layers', await below('layers'));
  values.set('disk: database', await below('postgres'));
  const tables = await measureTables(database, values);
  values.set('events', values.get('rows of events') ?? 0);
  return { figures: [...MACHINE, ...tables], values };
}

/** Processes of the server, itself included, without PostgreSQL's. */
export function processesOf(pid: number): readonly number[] {
  return familyOf(pid).filter((one) => textOfProcess(`/proc/${one}/comm`).trim() !== 'postgres');
}

export function descriptorsOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

async function measureTables(database: pg.Pool, values: Map<string, number>): Promise<readonly Figure[]> {
  const { rows } = await database.query<{ name: string; sql: string; bytes: string }>(
    `SELECT CASE WHEN n.nspname = 'public' THEN c.relname ELSE n.nspname || '.' || c.relname END AS name,
       format('%I.%I', n.nspname, c.relname) AS sql, pg_total_relation_size(c.oid) AS bytes
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_toast%'
     ORDER BY 1`,
  );
  const figures: Figure[] = [];
  for (const { name, sql, bytes: size } of rows) {
    const counted = await database.query<{ count: string }>(`SELECT count(*) AS count FROM ${sql}`);
    values.set(`rows of ${name}`, Number(counted.rows[0]?.count ?? 0));
    values.set(`bytes of ${name}`, Number(size));
    const slack = FLAT_TABLES.get(name.replace(/_v\d+_\d+$/, '')) ?? null;
    figures.push(count(`rows of ${name}`, slack));
    figures.push(bytes(`bytes of ${name}`, slack === null ? null : TABLE_SLACK));
  }
  return figures;
}

/** The bytes of all files below these folders, of which some may not exist. */
export async function bytesBelow(folders: readonly string[]): Promise<number> {
  let sum = 0;
  for (const folder of folders) {
    for (const file of await filesBelow(folder)) {
      sum += statSync(path.join(folder, file), { throwIfNoEntry: false })?.size ?? 0;
    }
  }
  return sum;
}

/** Those that hold bytes outside of the heap. */
const IN_BUFFERS = [
  'git_pages',
  'git_objects',
  'git_held_packs',
  'git_reachable',
  'git_answers',
  'ref_answers',
  'rest_bodies',
];

/** What each cache of the server takes, by its name, as its metrics say. */
async function cachedBytes({ url }: SoakServer): Promise<ReadonlyMap<string, number>> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const kept = [...text.matchAll(/^strata_kept_bytes\{cache="(\w+)"\} (\d+)$/gm)];
  const entities = /^strata_entities_bytes (\d+)$/m.exec(text)?.[1];
  if (kept.length < IN_BUFFERS.length || entities === undefined) throw new Error(`What are these metrics? ${text}`);
  return new Map([['entities', Number(entities)], ...kept.map(([, name = '', size]) => [name, Number(size)] as const)]);
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, amount) => total + amount, 0);
}

function residentBytes(pid: number): number {
  const [, kibibytes] = /^VmRSS:\s+(\d+) kB$/m.exec(textOfProcess(`/proc/${pid}/status`)) ?? [];
  return Number(kibibytes ?? 0) * 1024;
}
