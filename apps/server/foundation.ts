/**
 * Opens what the server and `strata-admin` both need: the database, the event log, the vault and the entities.
 *
 * Invariants: parts are closed in the reverse order of opening, PostgreSQL last. If a part fails to open, the parts
 * opened before it are closed.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from 'pino';
import { joinEmbeddedPostgres } from '../../adapters/embedded-postgres/join.ts';
import { startEmbeddedPostgres } from '../../adapters/embedded-postgres/start.ts';
import { loadMasterKeys } from '../../adapters/filesystem/master-key.ts';
import { systemClock } from '../../adapters/node/clock.ts';
import { digest } from '../../adapters/node/digest.ts';
import { DirectoryInUseError } from '../../adapters/node/directory-lock.ts';
import { uuids } from '../../adapters/node/ids.ts';
import { createPasswordHasher } from '../../adapters/node/password-hasher.ts';
import { settledWithin } from '../../adapters/node/pause.ts';
import { processFacts } from '../../adapters/node/process-facts.ts';
import { spellDomain } from '../../adapters/node/spell-domain.ts';
import { createPostgresBucketFindings } from '../../adapters/postgres/bucket-findings.ts';
import { createPostgresDeliveryStore } from '../../adapters/postgres/delivery-store.ts';
import {
  createPostgresDeviceLoginRequests,
  type PostgresDeviceLoginRequests,
} from '../../adapters/postgres/device-login-requests.ts';
import { patienceOf, whenConnectionsAreFree } from '../../adapters/postgres/free-connections.ts';
import {
  createPostgresLayerCompactions,
  type PostgresLayerCompactions,
} from '../../adapters/postgres/layer-compactions.ts';
import { claimLogForImport, type LogClaim, refuseUnfinishedImport } from '../../adapters/postgres/log-import.ts';
import { createPostgresLogKeys } from '../../adapters/postgres/log-keys.ts';
import { createPostgresManifestWrites, type PostgresManifestWrites } from '../../adapters/postgres/manifest-writes.ts';
import { createPostgresMasterKeyRotations } from '../../adapters/postgres/master-key-rotations.ts';
import { createMasterKeyring, type MasterKeyring } from '../../adapters/postgres/master-keyring.ts';
import { createPostgresPasskeyChallenges } from '../../adapters/postgres/passkey-challenges.ts';
import type { createPool } from '../../adapters/postgres/pool.ts';
import { endAllLeases } from '../../adapters/postgres/read-leases.ts';
import { createPostgresRefusedExchanges } from '../../adapters/postgres/refused-exchanges.ts';
import { createPostgresRunningProcesses } from '../../adapters/postgres/running-processes.ts';
import { type DatabaseRoles, prepareDatabase, tooMighty } from '../../adapters/postgres/serving-role.ts';
import { createPostgresSessionStore } from '../../adapters/postgres/session-store.ts';
import { createPostgresSigningKeys } from '../../adapters/postgres/signing-keys.ts';
import { createPostgresSnapshots } from '../../adapters/postgres/snapshots.ts';
import { createPostgresVault } from '../../adapters/postgres/vault.ts';
import { createPostgresWaitingDeliveries } from '../../adapters/postgres/waiting-deliveries.ts';
import { createPostgresWebhookBudgets } from '../../adapters/postgres/webhook-budgets.ts';
import type { Plans } from '../../core/account/plans.ts';
import type { Digest } from '../../core/kernel/digest.ts';
import type { SpellDomain } from '../../core/kernel/domain-spellings.ts';
import type { BucketFindingRows } from '../../core/ports/bucket-findings.ts';
import type { SettledWithin } from '../../core/ports/clock.ts';
import type { DeliveryStore } from '../../core/ports/delivery-store.ts';
import type { Failpoint } from '../../core/ports/failpoints.ts';
import type { LogKeys } from '../../core/ports/log-keys.ts';
import type { MasterKeyRotations } from '../../core/ports/master-key-rotations.ts';
import type { PasskeyChallenges } from '../../core/ports/passkey-challenges.ts';
import type { PasswordHasher } from '../../core/ports/password-hasher.ts';
import type { RefusedExchanges } from '../../core/ports/refused-exchanges.ts';
import type { SessionStore } from '../../core/ports/session-store.ts';
import type { SigningKeys } from '../../core/ports/signing-keys.ts';
import type { Tracing } from '../../core/ports/tracing.ts';
import { type Vault, VaultError } from '../../core/ports/vault.ts';
import type { WaitingDeliveries } from '../../core/ports/waiting-deliveries.ts';
import type { WebhookBudgets } from '../../core/ports/webhook-budgets.ts';
import { createEntities, type EntitiesOptions } from '../../core/runtime/entities.ts';
import type { Context } from '../../core/runtime/execute.ts';
import type { ReadLeases } from '../../core/runtime/read-leases.ts';
import { withUpdatesInPlace } from '../../core/use-cases/pushing/restore-wide-updates.ts';
import { closer } from './closer.ts';
import { lockDataDirectory } from './data-directory.ts';
import {
  COMMAND_PATIENCE_MS,
  type DatabaseConnections,
  openCommandConnections,
  openServerConnections,
  sharesOf,
} from './database-connections.ts';
import { type LogHealth, openSettledLog } from './event-log.ts';
import { armedFailpoint } from './failpoints.ts';
import { unlessPostgresIsAway } from './part-unreachable.ts';
import { listProcess, type RunningProcess } from './running-process.ts';
import type { Settings } from './settings.ts';
import { SettingsError } from './settings-reader.ts';
import { tracedEntities, tracedLog } from './traced-parts.ts';

type Pool = ReturnType<typeof createPool>;

/** Beside the server: thirty commands at a time, and what PostgreSQL keeps for its superuser. */
const EMBEDDED_CONNECTIONS_OF_OTHERS = 63;

/** What use cases need in the server and in commands. */
export interface FoundationContext extends Context, Stores {
  readonly digest: Digest;
  readonly spellDomain: SpellDomain;
  readonly passwords: PasswordHasher;
  readonly plans: Plans;
  readonly settledWithin: SettledWithin;
  readonly failpoint: Failpoint;
}

/** What lies in PostgreSQL beside the log and the read models. */
export interface Stores {
  readonly vault: Vault;
  readonly signingKeys: SigningKeys;
  readonly logKeys: LogKeys;
  readonly rotations: MasterKeyRotations;
  readonly deviceRequests: PostgresDeviceLoginRequests;
  readonly compactions: PostgresLayerCompactions;
  readonly manifests: PostgresManifestWrites;
  readonly refusedExchanges: RefusedExchanges;
  readonly bucketFindings: BucketFindingRows;
  readonly deliveries: DeliveryStore;
  readonly sessions: SessionStore;
  readonly challenges: PasskeyChallenges;
  readonly budgets: WebhookBudgets;
  readonly waiting: WaitingDeliveries;
}

export interface Foundation extends LogHealth {
  readonly context: FoundationContext;
  /** For read models and operational tables. */
  readonly pool: Pool;
  readonly connections: Pick<DatabaseConnections, 'modelsMax' | 'reserve' | 'figures'>;
  readonly connectionString: string;
  /** Connects as the owner of the database; null if nobody named it. */
  readonly ownerConnectionString: string | null;
  /** Exclusive access to the log; null unless `importing`. */
  readonly claim: LogClaim | null;
  readonly leases: Pick<ReadLeases, 'figures'>;
  /** This process among those that run on the log. */
  readonly runningProcess: Omit<RunningProcess, 'close'>;
  close(): Promise<void>;
}

export interface FoundationOptions {
  /** Whether to join a server that already runs on the data directory, instead of refusing to open. */
  readonly besideServer: boolean;
  /** Whether to take the few connections of a command, and to wait for them. */
  readonly asCommand?: boolean;
  /**
   * Whether to open for an import: alone on the log, and the only way to open a log whose import is unfinished. The
   * entities do not follow the log then.
   */
  readonly importing?: boolean;
  readonly entitiesSizeBytesMax: number;
  readonly onFault: (what: Parameters<EntitiesOptions['onFault']>[0] | 'running-process', cause: unknown) => void;
  readonly onForget?: () => void;
  /** Absent or null: nothing is traced. */
  readonly tracing?: Tracing | null;
}

export async function composeFoundation(
  settings: Settings,
  log: Logger,
  options: FoundationOptions,
): Promise<Foundation> {
  const parts = closer();
  try {
    const database = await openDatabase(settings, log, options.besideServer);
    parts.add(database.close);
    const claim = options.importing === true ? await claimLogForImport({ ...database, log }) : null;
    if (claim !== null) parts.add(claim.close);
    const { connectionString, ownerConnectionString } = claim ?? database;
    const connections = await openConnections(settings, { connectionString, ownerConnectionString, log }, options);
    parts.add(connections.close);
    const { work: pool } = connections;
    if (claim === null) await refuseUnfinishedImport(pool);
    const processes = createPostgresRunningProcesses(pool);
    const listed = await listProcess({ processes, id: uuids.next(), onFault: options.onFault });
    parts.add(() => listed.close());
    if (!options.besideServer && claim === null && settings.eventStoreDb === null) await warnOfMight(pool, log);
    const masterKey = createMasterKeyring({ pool, candidates: () => masterKeysOf(settings) });
    await masterKey.current().catch(refuseForeignKey);
    // Nobody else has read leases of an embedded database: a server that was killed may have left one.
    if (settings.databaseUrl === null && !options.besideServer) await endAllLeases(pool);
    // A command beside a server answers nothing from memory, but its appends wait for the servers that do.
    const holds = !options.besideServer && claim === null && settings.readLeaseMs > 0;
    const tracing = options.tracing ?? null;
    const { leases, pruning, clock, ...settled } = await openSettledLog(settings, {
      connectionString,
      connections,
      log,
      holds,
      parts,
    });
    const events = tracing === null ? settled.events : tracedLog(settled.events, tracing);
    const entities = createEntities({
      events,
      leases,
      snapshots: createPostgresSnapshots(pool),
      complete: (event) => withUpdatesInPlace({ events, digest }, event),
      cacheSizeBytesMax: options.entitiesSizeBytesMax,
      onFault: options.onFault,
      ...(options.onForget === undefined ? {} : { onForget: options.onForget }),
      // Resolves after Node has read every connection with data, so that concurrent requests share one query.
      gather: () => nextTurn(),
    });
    if (claim === null) await entities.start();
    parts.add(() => entities.close());
    const served = tracing === null ? entities : tracedEntities(entities, tracing);
    return {
      context: contextOf(settings, { events, entities: served, written: listed.written }, storesIn(pool, masterKey)),
      pool,
      connections,
      connectionString,
      ownerConnectionString,
      claim,
      pruning,
      clock,
      leases,
      runningProcess: listed,
      close: () => parts.close(),
    };
  } catch (error) {
    await parts.close();
    throw error;
  }
}

function contextOf(
  { plans }: Settings,
  log: Pick<FoundationContext, 'events' | 'entities' | 'written'>,
  stores: Stores,
): FoundationContext {
  return {
    ...log,
    ...stores,
    clock: systemClock,
    ids: uuids,
    digest,
    settledWithin,
    spellDomain,
    passwords: createPasswordHasher(),
    plans,
    failpoint: armedFailpoint(process.env),
  };
}

function storesIn(pool: Pool, masterKey: MasterKeyring): Stores {
  return {
    vault: createPostgresVault({ pool, masterKey }),
    signingKeys: createPostgresSigningKeys({ pool, masterKey }),
    logKeys: createPostgresLogKeys({ pool, masterKey }),
    rotations: createPostgresMasterKeyRotations(pool),
    deviceRequests: createPostgresDeviceLoginRequests(pool),
    compactions: createPostgresLayerCompactions(pool),
    manifests: createPostgresManifestWrites(pool),
    refusedExchanges: createPostgresRefusedExchanges(pool),
    bucketFindings: createPostgresBucketFindings(pool),
    deliveries: createPostgresDeliveryStore(pool),
    sessions: createPostgresSessionStore(pool),
    challenges: createPostgresPasskeyChallenges(pool),
    budgets: createPostgresWebhookBudgets(pool),
    waiting: createPostgresWaitingDeliveries(pool),
  };
}

/** Returns the keys of the settings, or of the data directory. */
export function masterKeysOf({ dataDir, masterKey, masterKeyNew }: Settings) {
  const [configured, configuredNext] = [masterKey ?? undefined, masterKeyNew ?? undefined];
  return loadMasterKeys({ dataDir, configured, configuredNext });
}

/** A server with another key would fail at every account. */
function refuseForeignKey(cause: unknown): never {
  if (!(cause instanceof VaultError) || cause.code === 'vault-unavailable') throw cause;
  throw new SettingsError(`${cause.message} (docs/operating.md, A new master key)`, { cause });
}

/** Tells an operator whose database has one role for everything how to change that. */
async function warnOfMight(pool: Pool, log: Logger): Promise<void> {
  const advice = await tooMighty(pool);
  if (advice !== null) log.warn({}, advice);
}

/** Prepares the database and opens the connections to it, those of a command or those of a server. */
async function openConnections(
  { databaseUrl, databaseConnectionsMax, roles }: Settings,
  database: DatabaseRoles,
  { asCommand }: FoundationOptions,
): Promise<DatabaseConnections> {
  const ifAway = (error: unknown): never => {
    throw databaseUrl === null ? error : unlessPostgresIsAway(error, 'The PostgreSQL of STRATA_DATABASE_URL');
  };
  if (asCommand === true) {
    const patience = patienceOf(COMMAND_PATIENCE_MS, database.log);
    await whenConnectionsAreFree(patience, () => prepareDatabase(database)).catch(ifAway);
    return openCommandConnections(database, patience);
  }
  await prepareDatabase(database).catch(ifAway);
  return openServerConnections(database, sharesOf(databaseConnectionsMax, roles.includes('worker')));
}

interface OpenedDatabase {
  /** Connects as the role that serves. */
  readonly connectionString: string;
  /** Null: the operator named no owner. */
  readonly ownerConnectionString: string | null;
  close(): Promise<void>;
}

/** Locks the data directory before it opens the database. With `besideServer` a running server may hold the lock. */
async function openDatabase(settings: Settings, log: Logger, besideServer: boolean): Promise<OpenedDatabase> {
  const { dataDir, databaseUrl, databaseOwnerUrl } = settings;
  if (databaseUrl !== null) {
    const lock = besideServer ? null : await lockDataDirectory(dataDir);
    return {
      connectionString: databaseUrl,
      ownerConnectionString: databaseOwnerUrl,
      close: async () => lock?.release(),
    };
  }
  try {
    const lock = await lockDataDirectory(dataDir);
    try {
      const connectionsMax = settings.databaseConnectionsMax + EMBEDDED_CONNECTIONS_OF_OTHERS;
      const embedded = await startEmbeddedPostgres({ dataDir, processFacts, connectionsMax, log });
      const close = async (): Promise<void> => {
        await embedded.stop();
        await lock.release();
      };
      const { connectionString, ownerConnectionString } = embedded;
      return { connectionString, ownerConnectionString, close };
    } catch (error) {
      await lock.release();
      throw error;
    }
  } catch (error) {
    if (!(error instanceof DirectoryInUseError) || !besideServer) throw error;
    return { ...(await joinEmbeddedPostgres(dataDir)), close: async () => undefined };
  }
}
