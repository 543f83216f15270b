/**
 * Brings a database to the schema that this code needs.
 *
 * Invariants: several servers may migrate at the same time (Kysely's migrator holds an advisory lock). A database with
 * migrations that this code does not know is refused, unless each of them is marked as one beside which older programs
 * may run. The mark is committed together with the migration. A released migration never changes.
 */
import { Kysely, PostgresDialect, sql } from 'kysely';
import { type Migration, type MigrationResult, Migrator } from 'kysely/migration';
import type { Log } from '../../core/ports/log.ts';
import * as eventLog from './migrations/001-event-log.ts';
import * as vault from './migrations/002-vault.ts';
import * as snapshots from './migrations/003-snapshots.ts';
import * as lastUse from './migrations/004-last-use.ts';
import * as vaultReferences from './migrations/005-vault-references.ts';
import * as logImport from './migrations/006-log-import.ts';
import * as webhookDeliveries from './migrations/007-webhook-deliveries.ts';
import * as appends from './migrations/008-appends.ts';
import * as rateLimits from './migrations/009-rate-limits.ts';
import * as webSessions from './migrations/010-web-sessions.ts';
import * as deviceLogins from './migrations/011-device-logins.ts';
import * as passkeyChallenges from './migrations/012-passkey-challenges.ts';
import * as refusedExchanges from './migrations/013-refused-exchanges.ts';
import * as signingKeys from './migrations/014-signing-keys.ts';
import * as layerCompactions from './migrations/015-layer-compactions.ts';
import * as manifestWrites from './migrations/016-manifest-writes.ts';
import * as logKeys from './migrations/017-log-keys.ts';
import * as prune from './migrations/019-prune.ts';
import * as roles from './migrations/020-roles.ts';
import * as rateSums from './migrations/022-rate-sums.ts';
import * as masterKeys from './migrations/023-master-keys.ts';
import * as webhookAndDeviceBounds from './migrations/024-webhook-and-device-bounds.ts';
import * as readLeases from './migrations/025-read-leases.ts';
import * as notifiedPushes from './migrations/028-notified-pushes.ts';
import * as webhookBodies from './migrations/030-webhook-bodies.ts';
import * as webhookWaitingDeliveries from './migrations/031-webhook-waiting-deliveries.ts';
import * as databaseLife from './migrations/032-database-life.ts';
import * as migrationKinds from './migrations/033-migration-kinds.ts';
import * as runningProcesses from './migrations/034-running-processes.ts';
import * as verificationWalks from './migrations/035-verification-walks.ts';
import * as writtenEvents from './migrations/036-written-events.ts';
import * as bucketFindings from './migrations/037-bucket-findings.ts';
import * as rotations from './migrations/038-rotations.ts';
import { createPool } from './pool.ts';

/** Rewriting a large table may take long. A migration that dies blocks no other: its connection held the lock. */
const MIGRATION_SPAN_MS = 60 * 60_000;

/**
 * Whether programs from before the migration may run on a database that has it. `expand` only adds what they do not
 * need to know: a table, a column with a default, a function. `contract` takes away or changes what they use.
 */
export type MigrationKind = 'expand' | 'contract';

export interface KnownMigration {
  readonly kind: MigrationKind;
  readonly up: Migration['up'];
}

/** Migrations by name, applied in the order of their names. Each set records what it applied in its own tables. */
export interface MigrationSet {
  readonly name: string;
  readonly migrations: Readonly<Record<string, KnownMigration>>;
}

/** The database has migrations that this program does not know, and beside which it may not run. */
export class NewerDatabaseError extends Error {
  override readonly name = 'NewerDatabaseError';
}

const expand = ({ up }: Pick<Migration, 'up'>): KnownMigration => ({ kind: 'expand', up });
const contract = ({ up }: Pick<Migration, 'up'>): KnownMigration => ({ kind: 'contract', up });

/**
 * The event log, vault, snapshots, last use of tokens, the mark of an unfinished import, bodies of deliveries, counts
 * of rate limits, sessions of browsers, device logins, challenges for passkeys, refused exchanges, signing keys,
 * repositories to compact, manifests to write, keys of checkpoints, pruning, rights of the two roles, rates of callers,
 * new master keys, budgets of deliveries, pushes whose deliveries wait, counts of device logins, read leases, bytes of
 * deliveries' bodies, deliveries that are still to be made, the life of the database, kinds of migrations, running
 * processes, walks of the verification, written versions of events, what verifications found out about buckets.
 * Programs from before `033-migration-kinds` run beside no later one, so that nothing before it is marked. Those from
 * before `036-written-events` do not ask which versions are written.
 */
export const logMigrations: MigrationSet = {
  name: 'log',
  migrations: {
    '001-event-log': contract(eventLog),
    '002-vault': contract(vault),
    '003-snapshots': contract(snapshots),
    '004-last-use': contract(lastUse),
    '005-vault-references': contract(vaultReferences),
    '006-log-import': contract(logImport),
    '007-webhook-deliveries': contract(webhookDeliveries),
    '008-appends': contract(appends),
    '009-rate-limits': contract(rateLimits),
    '010-web-sessions': contract(webSessions),
    '011-device-logins': contract(deviceLogins),
    '012-passkey-challenges': contract(passkeyChallenges),
    '013-refused-exchanges': contract(refusedExchanges),
    '014-signing-keys': contract(signingKeys),
    '015-layer-compactions': contract(layerCompactions),
    '016-manifest-writes': contract(manifestWrites),
    '017-log-keys': contract(logKeys),
    '019-prune': contract(prune),
    '020-roles': contract(roles),
    '022-rate-sums': contract(rateSums),
    '023-master-keys': contract(masterKeys),
    '024-webhook-and-device-bounds': contract(webhookAndDeviceBounds),
    '025-read-leases': contract(readLeases),
    '028-notified-pushes': contract(notifiedPushes),
    '030-webhook-bodies': contract(webhookBodies),
    '031-webhook-waiting-deliveries': contract(webhookWaitingDeliveries),
    '032-database-life': contract(databaseLife),
    '033-migration-kinds': expand(migrationKinds),
    '034-running-processes': expand(runningProcesses),
    '035-verification-walks': expand(verificationWalks),
    '036-written-events': contract(writtenEvents),
    '037-bucket-findings': expand(bucketFindings),
    '038-rotations': expand(rotations),
  },
};

/** A new database is one line, since each migration of it says nothing to whoever starts the server. */
function reportMigrations(log: Log, results: readonly MigrationResult[], count: number): boolean {
  const applied = results.filter(({ status }) => status === 'Success');
  const isNew = count > 1 && applied.length === count;
  for (const { migrationName: migration } of applied) {
    if (isNew) log.debug({ migration }, 'Migrated the database');
    else log.info({ migration }, 'Migrated the database');
  }
  if (isNew) log.info({ migrations: count }, 'Made the database');
  return isNew;
}

export interface MigrateOptions {
  readonly connectionString: string;
  readonly log: Log;
  /** Defaults to `logMigrations`. */
  readonly set?: MigrationSet;
}

export interface Migrated {
  /** Whether the database had no migration before. */
  readonly isNew: boolean;
  /** Those of a newer version, beside which this program may run. */
  readonly later: readonly string[];
}

/**
 * Applies missing migrations. Throws if a migration fails, and `NewerDatabaseError` if the database has one that this
 * program does not know and that is not marked `expand`.
 */
export async function migrate({ connectionString, log, set = logMigrations }: MigrateOptions): Promise<Migrated> {
  const spans = { statementSpanMs: MIGRATION_SPAN_MS, transactionSpanMs: MIGRATION_SPAN_MS };
  const pool = createPool({ connectionString, log, connectionsMax: 1, ...spans });
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  try {
    let later = await laterMigrations(db, set);
    let migrated = await migrateOnce(db, set, later);
    while (migrated.error !== undefined) {
      // A newer version may have migrated the database since.
      const before = later.length;
      later = await laterMigrations(db, set);
      if (later.length === before) throw migrated.error;
      migrated = await migrateOnce(db, set, later);
    }
    const isNew = reportMigrations(log, migrated.results, Object.keys(set.migrations).length);
    if (later.length > 0) {
      log.info({ migrations: later }, 'A newer version has migrated the database: this one may run beside it');
    }
    return { isNew, later };
  } finally {
    await db.destroy();
  }
}

async function migrateOnce(
  db: Kysely<unknown>,
  set: MigrationSet,
  later: readonly string[],
): Promise<{ readonly results: readonly MigrationResult[]; readonly error: Error | undefined }> {
  const migrator = new Migrator({
    db,
    // The migrator refuses a database with a migration that it is not given.
    provider: { getMigrations: async () => ({ ...marking(set), ...asApplied(later) }) },
    migrationTableName: migrationTable(set),
    migrationLockTableName: `${migrationTable(set)}_lock`,
  });
  const { error, results = [] } = await migrator.migrateToLatest();
  if (error === undefined || error instanceof Error) return { results, error };
  return { results, error: new Error('A migration failed', { cause: error }) };
}

/** Returns the migrations, each of which also writes its mark, in the same transaction. */
function marking(set: MigrationSet): Record<string, Migration> {
  const marked = Object.entries(set.migrations).map(([name, { kind, up }]): [string, Migration] => {
    const upAndMark = async (db: Kysely<unknown>): Promise<void> => {
      await up(db);
      if (!(await tableExists(db, kindTable(set)))) return;
      await sql`INSERT INTO ${sql.table(kindTable(set))} (name, kind) VALUES (${name}, ${kind})`.execute(db);
    };
    return [name, { up: upAndMark }];
  });
  return Object.fromEntries(marked);
}

function asApplied(later: readonly string[]): Record<string, Migration> {
  const refuse = (): never => {
    throw new Error('A migration of a newer version is not applied');
  };
  return Object.fromEntries(later.map((name) => [name, { up: async () => refuse() }]));
}

/** Returns the migrations that a newer version applied. Throws `NewerDatabaseError` unless all are marked `expand`. */
async function laterMigrations(db: Kysely<unknown>, set: MigrationSet): Promise<readonly string[]> {
  if (!(await tableExists(db, migrationTable(set)))) return [];
  const hasKinds = await tableExists(db, kindTable(set));
  const kinds = hasKinds ? sql`${sql.table(kindTable(set))}` : sql`(SELECT NULL AS name, NULL AS kind)`;
  const known = Object.keys(set.migrations);
  const { rows } = await sql<{ name: string; kind: string | null }>`
    SELECT applied.name, kinds.kind FROM ${sql.table(migrationTable(set))} AS applied
    LEFT JOIN ${kinds} AS kinds ON kinds.name = applied.name
    WHERE applied.name <> ALL (${known}) ORDER BY applied.name`.execute(db);
  const refused = rows.filter(({ kind }) => kind !== 'expand').map(({ name }) => name);
  if (refused.length === 0) return rows.map(({ name }) => name);
  throw new NewerDatabaseError(
    'The database was made by a newer version of Strata, beside which this one cannot run: ' +
      `${refused.join(', ')}. Start the newer version, or restore the backup from before the upgrade ` +
      '(docs/operating.md, Upgrade)',
  );
}

async function tableExists(db: Kysely<unknown>, table: string): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`SELECT to_regclass(${table}) IS NOT NULL AS found`.execute(db);
  return rows[0]?.found === true;
}

const migrationTable = ({ name }: MigrationSet): string => `${name}_migrations`;
const kindTable = ({ name }: MigrationSet): string => `${name}_migration_kinds`;
