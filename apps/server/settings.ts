/**
 * The server's settings: `STRATA_*` in the environment, read once at start.
 *
 * Invariants: an unusable value stops the start with the setting's name, its value unless it is a secret, and the
 * expected value. No other code reads these variables, but for STRATA_FAILPOINT (apps/server/failpoints.ts).
 */
import { totalmem } from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { parseEventStoreDbAddress, UnusableAddressError } from '../../adapters/eventstoredb/connection.ts';
import { DEFAULT_PLANS, type PlanQuotas, type Plans } from '../../core/account/plans.ts';
import { GIB, MIB } from '../../core/kernel/byte-units.ts';
import { PUSH_MEMORY_BYTES_MAX, READ_LEASE_SPAN_MS_MAX } from '../../core/kernel/limits.ts';
import { DATABASE_CONNECTIONS_DEFAULT, DATABASE_CONNECTIONS_MIN } from './database-connections.ts';
import { FORWARDED_HEADERS, type ForwardedHeader } from './forwarded-hops.ts';
import { type LayerStoreSettings, readLayerStoreSettings } from './layer-storage/stores.ts';
import { type MisspeltSetting, misspeltSettings } from './misspelt-settings.ts';
import { createSettingsReader, type Environment, SettingsError, type SettingsReader } from './settings-reader.ts';
import { readTemporalSettings, type TemporalSettings } from './temporal-settings.ts';
import type { TlsPair } from './tls-renewal.ts';
import { readTracing } from './tracing-settings.ts';

/**
 * How long a process answers from memory without asking the log, if it cannot renew its lease. Internal: only
 * the operator's setting changes it.
 */
export const READ_LEASE_SPAN_MS = 1_000;
/** The least that STRATA_PUSH_MEMORY_BYTES_MAX may say. */
export const PUSH_MEMORY_BYTES_MIN = 256 * MIB;
/** How long the bodies of deliveries are kept, unless a setting changes it. Internal: it is a default. */
export const RETENTION_DAYS_DEFAULT = 30;
/**
 * The retention is at least this long, of 0 days too: attempts at a delivery go on for 17 minutes, and what a drop
 * rewrites for one forced push is a whole repository. Internal: only the operator's setting reaches it.
 */
export const RETENTION_MS_MIN = 60 * 60_000;

export interface Settings {
  readonly port: number;
  readonly host: string;
  readonly dataDir: string;
  /** The store of the platform's layers. */
  readonly layerStore: LayerStoreSettings;
  /** Without a path and a trailing slash. */
  readonly baseUrl: string;
  readonly webUrl: string;
  readonly tls: TlsPair | null;
  /** Null: the embedded PostgreSQL. */
  readonly databaseUrl: string | null;
  /** The owner of that database; null: not known, or the embedded PostgreSQL, which knows its own. */
  readonly databaseOwnerUrl: string | null;
  /** How many connections to PostgreSQL the server may hold. */
  readonly databaseConnectionsMax: number;
  /** Null: the event log is in PostgreSQL too, like everything else. */
  readonly eventStoreDb: { readonly address: string; readonly folder: string } | null;
  /** Null: the embedded workflow engine. */
  readonly temporal: TemporalSettings | null;
  /** Null: the key in the data directory. */
  readonly masterKey: string | null;
  /** The key that a rotation replaces it with; null outside of one. */
  readonly masterKeyNew: string | null;
  readonly cacheBytesMax: number;
  /** Memory of the processes that check packs, all together. */
  readonly pushMemoryBytesMax: number;
  readonly plans: Plans;
  /** How long the server keeps the bodies of webhook deliveries. */
  readonly retentionMs: number;
  /** Whether webhooks may be sent to addresses that are not public. */
  readonly allowPrivateTargets: boolean;
  /** Whether strangers may make accounts on the website. */
  readonly signUpOpen: boolean;
  /** Says how to reach who runs the service, on the pages where people need to know; null if not set. */
  readonly operatorContact: string | null;
  /** The URI by which weaknesses are reported; null if not set. */
  readonly securityContact: string | null;
  /** The token service that gives credentials of roles in users' clouds; null: Amazon's. */
  readonly stsEndpoint: string | null;
  /** The S3 endpoint of buckets with a role; null: Amazon's. */
  readonly oidcS3Endpoint: string | null;
  /** Multiplies the rates of callers. */
  readonly rateFactor: number;
  /** Addresses of the peers whose word on their clients the server trusts. */
  readonly trustedProxies: readonly string[];
  /** The header in which they say it. */
  readonly forwardedHeader: ForwardedHeader;
  /** Addresses of those who may read the metrics, beside loopback. */
  readonly metricsPeers: readonly string[];
  /** The roles of this process; never empty, in the order of `ROLES`. */
  readonly roles: readonly Role[];
  /** How long the process may answer from memory without asking the log; 0: never. */
  readonly readLeaseMs: number;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  /** Whether the settings of OpenTelemetry name a collector of traces. */
  readonly tracing: boolean;
  /** Variables that were probably meant to be settings. */
  readonly misspelt: readonly MisspeltSetting[];
}

/**
 * - `api`, `git`, `website`: the process answers these requests;
 * - `worker`: the process maintains the read models and runs workflows, webhooks and sweeps. A service needs at least
 *   one worker.
 */
export const ROLES = ['api', 'git', 'website', 'worker'] as const;
export type Role = (typeof ROLES)[number];

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
const DAY_MS = 24 * 60 * 60_000;

export function readSettings(environment: Environment, workingDirectory: string): Settings {
  const reader = createSettingsReader(environment, workingDirectory);
  const { faults, fault, text, integer, oneOf, someOf, url, origin, file } = reader;
  const port = integer('STRATA_PORT', 8080, 1, 65_535);
  const host = text('STRATA_HOST') ?? '127.0.0.1';
  const tls = readTls(reader);
  // One origin by default.
  const baseUrl = origin('STRATA_BASE_URL', `${tls === null ? 'http' : 'https'}://localhost:${port}`);
  const eventStore = oneOf('STRATA_EVENT_STORE', ['postgres', 'eventstoredb'], 'postgres');
  const eventStoreUrl = text('STRATA_EVENTSTORE_URL');
  const eventStoreDb =
    eventStore === 'eventstoredb' ? { address: eventStoreUrl ?? '', folder: workingDirectory } : null;
  if (eventStoreDb !== null || eventStoreUrl !== null) {
    const why = eventStoreUrl === null ? 'not set' : unusableAddress(eventStoreUrl, workingDirectory);
    if (why !== null) {
      fault('STRATA_EVENTSTORE_URL', why, 'the address of an EventStoreDB, esdb://user:password@host:2113');
    }
  }
  const dataDir = path.resolve(workingDirectory, text('STRATA_DATA_DIR') ?? './data');
  const plans = plansOf(file('STRATA_PLANS'), fault);
  const settings: Settings = {
    port,
    host,
    dataDir,
    layerStore: readLayerStoreSettings(reader, dataDir),
    baseUrl,
    webUrl: origin('STRATA_WEB_URL', baseUrl),
    tls,
    ...readDatabase(reader),
    databaseConnectionsMax: integer(
      'STRATA_DATABASE_CONNECTIONS_MAX',
      DATABASE_CONNECTIONS_DEFAULT,
      DATABASE_CONNECTIONS_MIN,
      10_000,
    ),
    eventStoreDb,
    temporal: readTemporalSettings(reader),
    ...readMasterKeys(reader),
    cacheBytesMax: integer('STRATA_CACHE_BYTES_MAX', 10 * GIB, 1024 * 1024, Number.MAX_SAFE_INTEGER),
    pushMemoryBytesMax: integer(
      'STRATA_PUSH_MEMORY_BYTES_MAX',
      defaultPushMemoryBytes(),
      PUSH_MEMORY_BYTES_MIN,
      Number.MAX_SAFE_INTEGER,
    ),
    plans: oneOf('STRATA_BYO_REQUIRES_PLAN', ['true', 'false'], 'true') === 'true' ? plans : withOwnStorage(plans),
    trustedProxies: reader.addresses('STRATA_TRUSTED_PROXIES'),
    forwardedHeader: oneOf('STRATA_FORWARDED_HEADER', FORWARDED_HEADERS, 'x-forwarded-for'),
    metricsPeers: reader.addresses('STRATA_METRICS_PEERS'),
    rateFactor: integer('STRATA_RATE_FACTOR', 1, 1, 1_000_000),
    signUpOpen: oneOf('STRATA_SIGN_UP', ['open', 'closed'], 'open') === 'open',
    operatorContact: contactOf(text('STRATA_OPERATOR_CONTACT'), fault),
    securityContact: securityContactOf(reader),
    allowPrivateTargets: oneOf('STRATA_ALLOW_PRIVATE_TARGETS', ['true', 'false'], 'false') === 'true',
    oidcS3Endpoint: text('STRATA_OIDC_S3_ENDPOINT') === null ? null : url('STRATA_OIDC_S3_ENDPOINT', ''),
    stsEndpoint: text('STRATA_STS_ENDPOINT') === null ? null : url('STRATA_STS_ENDPOINT', ''),
    roles: someOf('STRATA_ROLES', ROLES),
    retentionMs: Math.max(
      RETENTION_MS_MIN,
      integer('STRATA_RETENTION_DAYS', RETENTION_DAYS_DEFAULT, 0, 3_650) * DAY_MS,
    ),
    readLeaseMs: integer('STRATA_READ_LEASE_MS', READ_LEASE_SPAN_MS, 0, READ_LEASE_SPAN_MS_MAX),
    logLevel: oneOf('STRATA_LOG_LEVEL', LOG_LEVELS, 'info'),
    tracing: readTracing(reader),
    misspelt: [],
  };
  if (faults.length > 0) throw new SettingsError(`Strata cannot start with these settings:\n  ${faults.join('\n  ')}`);
  return { ...settings, misspelt: misspeltSettings(environment, reader.known) };
}

function readMasterKeys({ faults, fault, text }: SettingsReader): Pick<Settings, 'masterKey' | 'masterKeyNew'> {
  const key = (name: string): string | null => {
    const value = text(name);
    if (value !== null && !isMasterKey(value)) {
      fault(name, 'set, but not a key', '32 bytes as 64 hex digits or 44 characters of base64');
    }
    return value;
  };
  const [masterKey, masterKeyNew] = [key('STRATA_MASTER_KEY'), key('STRATA_MASTER_KEY_NEW')];
  if (masterKeyNew !== null && masterKey === null) {
    faults.push('STRATA_MASTER_KEY_NEW goes with STRATA_MASTER_KEY, which it is to replace');
  }
  return { masterKey, masterKeyNew };
}

/** At most a quarter of the machine's memory, unless that is less than a push needs. */
function defaultPushMemoryBytes(): number {
  return Math.max(PUSH_MEMORY_BYTES_MIN, Math.min(PUSH_MEMORY_BYTES_MAX, Math.floor(totalmem() / 4)));
}

function readTls({ faults, text, file, filePath }: SettingsReader): TlsPair | null {
  const [cert, certFile] = [file('STRATA_TLS_CERT'), filePath('STRATA_TLS_CERT')];
  const [key, keyFile] = [file('STRATA_TLS_KEY'), filePath('STRATA_TLS_KEY')];
  if ((text('STRATA_TLS_CERT') === null) !== (text('STRATA_TLS_KEY') === null)) {
    faults.push('STRATA_TLS_CERT and STRATA_TLS_KEY go together: set both or neither');
  }
  if (cert === null || certFile === null || key === null || keyFile === null) return null;
  return { cert, key, certFile, keyFile };
}

function readDatabase({ faults, fault, text }: SettingsReader): Pick<Settings, 'databaseUrl' | 'databaseOwnerUrl'> {
  const address = (name: string): string | null => {
    const value = text(name);
    if (value !== null && !/^postgres(ql)?:\/\//.test(value)) {
      fault(name, 'set, but no such address', 'postgresql://user:password@host:port/database');
    }
    return value;
  };
  const databaseUrl = address('STRATA_DATABASE_URL');
  const databaseOwnerUrl = address('STRATA_DATABASE_OWNER_URL');
  if (databaseOwnerUrl !== null && databaseUrl === null) {
    faults.push('STRATA_DATABASE_OWNER_URL goes with STRATA_DATABASE_URL, which names the role that serves');
  }
  return { databaseUrl, databaseOwnerUrl };
}

/** Returns why the address cannot be used, or null if it can. */
function unusableAddress(address: string, folder: string): string | null {
  try {
    parseEventStoreDbAddress(address, folder);
    return null;
  } catch (error) {
    if (!(error instanceof UnusableAddressError)) throw error;
    return `set, but ${error.message}`;
  }
}

function isMasterKey(text: string): boolean {
  return /^[0-9a-fA-F]{64}$/.test(text) || /^[A-Za-z0-9+/]{43}=$/.test(text);
}

/** Pages show the text as it is, so it has one short line. */
function contactOf(contact: string | null, fault: (name: string, value: string, expected: string) => void) {
  if (contact !== null && !/^[^\p{Cc}\p{Cs}]{1,200}$/u.test(contact)) {
    fault('STRATA_OPERATOR_CONTACT', JSON.stringify(contact.slice(0, 50)), 'one line of at most 200 characters');
  }
  return contact;
}

/** An email address becomes a URI, which security.txt needs (RFC 9116, section 2.5.3). */
function securityContactOf({ text, fault }: SettingsReader): string | null {
  const contact = text('STRATA_SECURITY_CONTACT');
  if (contact === null) return null;
  const uri = /^[^\s:/]+@[^\s:/]+$/.test(contact) ? `mailto:${contact}` : contact;
  if (/^(https:\/\/|mailto:|tel:)[\x21-\x7e]{1,200}$/.test(uri)) return uri;
  fault(
    'STRATA_SECURITY_CONTACT',
    JSON.stringify(contact.slice(0, 50)),
    'an email address, or an https, mailto or tel URI',
  );
  return null;
}

/** Every plan may bind repositories to buckets of the account. */
function withOwnStorage({ FREE, PRO, PLATFORM }: Plans): Plans {
  const byo_storage = true;
  return {
    FREE: { ...FREE, byo_storage },
    PRO: { ...PRO, byo_storage },
    PLATFORM: { ...PLATFORM, byo_storage },
  };
}

const QUOTA = z.number().int().nonnegative().nullable();
const PLAN = z.strictObject({
  repos: QUOTA,
  storage_bytes: QUOTA,
  transfer_bytes: QUOTA,
  ingress_bytes: QUOTA,
  byo_storage: z.boolean(),
  /** Absent in files of older versions: that of the plan as it is shipped. */
  deliveries_per_hour: z.number().int().positive().nullable().optional(),
  /** Absent in files of older versions: null. */
  changes_per_month: QUOTA.default(null),
});
const PLANS = z.strictObject({ FREE: PLAN, PRO: PLAN, PLATFORM: PLAN }).partial();

function quotasOf(stated: z.output<typeof PLAN> | undefined, shipped: PlanQuotas): PlanQuotas {
  if (stated === undefined) return shipped;
  const { deliveries_per_hour = shipped.deliveries_per_hour, ...quotas } = stated;
  return { ...quotas, deliveries_per_hour };
}

function plansOf(file: Buffer | null, fault: (name: string, value: string, expected: string) => void): Plans {
  if (file === null) return DEFAULT_PLANS;
  let parsed: unknown;
  try {
    parsed = JSON.parse(file.toString('utf8'));
  } catch {
    fault('STRATA_PLANS', 'a file that is not JSON', 'a JSON object of quotas by plan');
    return DEFAULT_PLANS;
  }
  const plans = PLANS.safeParse(parsed);
  if (!plans.success) {
    const issue = plans.error.issues[0];
    const where = issue?.path.join('.') ?? '';
    fault('STRATA_PLANS', `a file whose ${where || 'content'} is wrong`, issue?.message ?? 'quotas by plan');
    return DEFAULT_PLANS;
  }
  const { FREE, PRO, PLATFORM } = plans.data;
  return {
    FREE: quotasOf(FREE, DEFAULT_PLANS.FREE),
    PRO: quotasOf(PRO, DEFAULT_PLANS.PRO),
    PLATFORM: quotasOf(PLATFORM, DEFAULT_PLANS.PLATFORM),
  };
}
