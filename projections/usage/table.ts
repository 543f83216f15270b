/**
 * The tables that an account's usage is summed from.
 *
 * Must stay true: a row is written from one stream's events, or is a sum that only the checkpoint's transaction adds
 * to. So nothing is counted twice.
 */
import type { ProjectionTable } from '../runner/projection.ts';
import { minutesTable, recordedTable } from '../unsummed-transfer.ts';

/** From account streams: every repository of an account, also those that were deleted, whose layers still count. */
const repositories: ProjectionTable = {
  name: 'usage_repositories',
  key: ['repository_id'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      repository_id uuid PRIMARY KEY,
      account_id uuid NOT NULL,
      storage_bucket_id uuid,
      deleted boolean NOT NULL)`,
    `CREATE INDEX ON ${table} (account_id) WHERE storage_bucket_id IS NOT NULL`,
  ],
};

/** From repository streams: bytes of current layers. A row of 0 stays when all of them have left storage. */
const storage: ProjectionTable = {
  name: 'usage_storage',
  key: ['repository_id'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (repository_id uuid PRIMARY KEY, account_id uuid NOT NULL, size_bytes bigint NOT NULL)`,
    `CREATE INDEX ON ${table} (account_id) INCLUDE (size_bytes) WHERE size_bytes <> 0`,
  ],
};

/** The sum of an account's rows of `usage_storage`, so that a push need not add up repositories. */
const stored: ProjectionTable = {
  name: 'usage_stored',
  key: ['account_id'],
  compare: 'exact',
  create: (table) => [`CREATE TABLE ${table} (account_id uuid PRIMARY KEY, size_bytes bigint NOT NULL)`],
};

/**
 * Bytes by calendar day in UTC; `day` is `YYYY-MM-DD`. Deleting a repository subtracts nothing from them. Transfer is that
 * of the daily sums.
 */
const traffic: ProjectionTable = {
  name: 'usage_traffic',
  key: ['account_id', 'day'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      account_id uuid NOT NULL,
      day text COLLATE "C" NOT NULL,
      ingress_bytes bigint NOT NULL,
      transfer_bytes bigint NOT NULL,
      PRIMARY KEY (account_id, day))`,
  ],
};

export const usageTables: readonly ProjectionTable[] = [
  repositories,
  storage,
  stored,
  traffic,
  minutesTable('usage_minutes'),
  recordedTable('usage_recorded'),
];
