/**
 * The tables of the usage ledger: its entries, and their sums by month, so that no answer adds up a whole month or
 * past.
 *
 * Invariants: a row is written from one stream's events, or is a sum that only the checkpoint's transaction adds to.
 * Which repositories lie in buckets of users is known from account streams alone, so queries leave those out.
 */
import type { ProjectionTable } from '../runner/projection.ts';
import { signInsTable } from '../sign-ins/table.ts';
import { minutesTable, recordedTable } from '../unsummed-transfer.ts';

const KEY = ['account_id', 'at', 'event_id', 'index'] as const;

/** The minute of an entry, without seconds. */
export const MINUTE = 'left(at, 16)';

/** Which entries say what a token did. */
export const IS_USE = 'token_id IS NOT NULL AND repository_id IS NOT NULL AND reads + writes > 0 AND NOT is_day_sum';

/** Which entries say who read or wrote a repository, by the minute or by the day. */
export const IS_ACCESS = 'repository_id IS NOT NULL AND reader_id IS NOT NULL AND reads + writes > 0';

const ENTRY_COLUMNS = `
  account_id uuid NOT NULL,
  at text COLLATE "C" NOT NULL,
  event_id uuid NOT NULL,
  index integer NOT NULL,
  member text NOT NULL,
  delta bigint NOT NULL,
  repository_id uuid,
  token_id uuid,
  reader_kind text COLLATE "C",
  reader_id text COLLATE "C",
  reads integer NOT NULL,
  writes integer NOT NULL,
  restores integer NOT NULL,
  address_refs text NOT NULL,
  stream text COLLATE "C",
  appended_on text COLLATE "C",
  position bigint,
  is_day_sum boolean NOT NULL,
  PRIMARY KEY (${KEY.join(', ')})`;

/**
 * `address_refs` are separated by commas. Only reads by the minute have a stream, the day on which they were appended,
 * and their place in the log.
 */
const entries: ProjectionTable = {
  name: 'ledger_entries',
  key: KEY,
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (${ENTRY_COLUMNS})`,
    `CREATE INDEX ON ${table} (token_id, (${MINUTE}), repository_id) WHERE ${IS_USE}`,
    `CREATE INDEX ON ${table} (repository_id, (${MINUTE})) WHERE ${IS_ACCESS}`,
    `CREATE INDEX ON ${table} (appended_on, stream) WHERE stream IS NOT NULL`,
  ],
};

/**
 * `storage_bytes` holds what lies in buckets of users as well, `transfer_bytes` and the `ingress_bytes` of refused
 * pushes only what daily sums hold. `month` is `YYYY-MM`.
 */
const months: ProjectionTable = {
  name: 'ledger_months',
  key: ['account_id', 'month'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      account_id uuid NOT NULL,
      month text COLLATE "C" NOT NULL,
      repos bigint NOT NULL,
      storage_bytes bigint NOT NULL,
      transfer_bytes bigint NOT NULL,
      ingress_bytes bigint NOT NULL,
      PRIMARY KEY (account_id, month))`,
  ],
};

/** The storage of each repository by itself. */
const storage: ProjectionTable = {
  name: 'ledger_storage',
  key: ['repository_id', 'month'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      repository_id uuid NOT NULL,
      month text COLLATE "C" NOT NULL,
      storage_bytes bigint NOT NULL,
      PRIMARY KEY (repository_id, month))`,
  ],
};

/** The repositories in buckets of users, also those that were deleted. */
const inBuckets: ProjectionTable = {
  name: 'ledger_in_buckets',
  key: ['repository_id'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (repository_id uuid PRIMARY KEY, account_id uuid NOT NULL)`,
    `CREATE INDEX ON ${table} (account_id)`,
  ],
};

export const usageLedgerTables: readonly ProjectionTable[] = [
  entries,
  months,
  storage,
  inBuckets,
  minutesTable('ledger_minutes'),
  recordedTable('ledger_recorded'),
  signInsTable,
];
