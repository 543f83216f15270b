/**
 * Brings a database to the schema that this code needs.
 *
 * Invariants: several servers may migrate at the same time (Kysely's migrator holds an advisory lock); a database
 * that is newer than this code is refused. A released migration never changes.
 */
import { Kysely, PostgresDialect } from 'kysely';
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
import { createPool } from './pool.ts';

/** Rewriting a large table may take long. A migration that dies blocks no other: its connection held the lock. */
const MIGRATION_SPAN_MS = 60 * 60_000;

/** Migrations by name, applied in the order of their names. Each set records what it applied in its own tables. */
export interface MigrationSet {
  readonly name: string;
  readonly migrations: Readonly<Record<string, Migration>>;
}

/**
 * The event log, vault, snapshots, last use of tokens, the mark of an unfinished import, bodies of deliveries, counts
 * of rate limits, sessions of browsers, device logins, challenges for passkeys, refused exchanges, signing keys,
 * repositories to compact, manifests to write, keys of checkpoints, pruning, rights of the two roles, rates of callers,
 * new master keys, budgets of deliveries, pushes whose deliveries wait, counts of device logins, read leases, bytes of
 * deliveries' bodies, deliveries that are still to be made, the life of the database.
 */
export const logMigrations: MigrationSet = {
  name: 'log',
  migrations: {
    '001-event-log': eventLog,
    '002-vault': vault,
    '003-snapshots': snapshots,
    '004-last-use': lastUse,
    '005-vault-references': vaultReferences,
    '006-log-import': logImport,
    '007-webhook-deliveries': webhookDeliveries,
    '008-appends': appends,
    '009-rate-limits': rateLimits,
    '010-web-sessions': webSessions,
    '011-device-logins': deviceLogins,
    '012-passkey-challenges': passkeyChallenges,
    '013-refused-exchanges': refusedExchanges,
    '014-signing-keys': signingKeys,
    '015-layer-compactions': layerCompactions,
    '016-manifest-writes': manifestWrites,
    '017-log-keys': logKeys,
    '019-prune': prune,
    '020-roles': roles,
    '022-rate-sums': rateSums,
    '023-master-keys': masterKeys,
    '024-webhook-and-device-bounds': webhookAndDeviceBounds,
    '025-read-leases': readLeases,
    '028-notified-pushes': notifiedPushes,
    '030-webhook-bodies': webhookBodies,
    '031-webhook-waiting-deliveries': webhookWaitingDeliveries,
    '032-database-life': databaseLife,
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

/**
 * Applies missing migrations, and says whether these were all. Throws if one fails, or if the database has applied one
 * that this code does not know.
 */
export async function migrate({
  connectionString,
  log,
  set = logMigrations,
}: MigrateOptions): Promise<{ readonly isNew: boolean }> {
  const spans = { statementSpanMs: MIGRATION_SPAN_MS, transactionSpanMs: MIGRATION_SPAN_MS };
  const pool = createPool({ connectionString, log, connectionsMax: 1, ...spans });
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  try {
    const migrator = new Migrator({
      db,
      provider: { getMigrations: async () => ({ ...set.migrations }) },
      migrationTableName: `${set.name}_migrations`,
      migrationLockTableName: `${set.name}_migrations_lock`,
    });
    const { error, results } = await migrator.migrateToLatest();
    const isNew = reportMigrations(log, results ?? [], Object.keys(set.migrations).length);
    if (error !== undefined) throw error instanceof Error ? error : new Error('A migration failed', { cause: error });
    return { isNew };
  } finally {
    await db.destroy();
  }
}
