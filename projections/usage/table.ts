/**
 * The tables that an account's usage is summed from.
 *
 * Invariants: a row is written from one stream's events, or is a sum that only the checkpoint's transaction adds
 * to. So nothing is counted twice.
 */
import type { ProjectionTable } from '../runner/projection.ts';
import { minutesTable, recordedTable } from '../unsummed-transfer.ts';

/**
 * How long a read model knows of layers that were let go: they leave storage long before, unless no worker runs.
 * Internal: only layers that have left already are forgotten.
 */
const LEAVING_LAYERS_KNOWN_MS = 7 * 24 * 60 * 60_000;

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
 * From repository streams: layers that a compaction took out of the list and that no event has let go, as one row for
 * each compaction, under the id of the first layer. `position` is the compaction's.
 */
const waiting: ProjectionTable = {
  name: 'usage_waiting',
  key: ['layer_id'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      layer_id uuid PRIMARY KEY,
      repository_id uuid NOT NULL,
      account_id uuid NOT NULL,
      size_bytes bigint NOT NULL,
      by_purge boolean NOT NULL,
      taken_at text COLLATE "C" NOT NULL,
      position bigint NOT NULL)`,
    `CREATE INDEX ON ${table} (account_id)`,
    `CREATE INDEX ON ${table} (repository_id) WHERE by_purge`,
  ],
};

/**
 * Those that an event let go since, and the layers of deleted repositories that a purge let go, whose `position` is
 * null. `leaves_position` is that of the event at which they are removed; null where that is the compaction.
 */
export const leaving: ProjectionTable = {
  name: 'usage_leaving',
  key: ['layer_id'],
  compare: 'exact',
  ages: { column: 'leaves_at', keptMs: LEAVING_LAYERS_KNOWN_MS },
  create: (table) => [
    `CREATE TABLE ${table} (
      layer_id uuid PRIMARY KEY,
      repository_id uuid NOT NULL,
      account_id uuid NOT NULL,
      size_bytes bigint NOT NULL,
      by_purge boolean NOT NULL,
      taken_at text COLLATE "C" NOT NULL,
      position bigint,
      leaves_at text COLLATE "C" NOT NULL,
      leaves_position bigint)`,
    `CREATE INDEX ON ${table} (account_id)`,
    `CREATE INDEX ON ${table} (repository_id) WHERE by_purge`,
    `CREATE INDEX ON ${table} (leaves_at)`,
  ],
};

/**
 * Bytes by calendar day in UTC; `day` is `YYYY-MM-DD`. Deleting a repository subtracts nothing from them. Transfer is
 * that of the daily sums.
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
  waiting,
  leaving,
  traffic,
  minutesTable('usage_minutes'),
  recordedTable('usage_recorded'),
];
