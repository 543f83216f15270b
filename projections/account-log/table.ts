/**
 * The tables of accounts' logs: a row for each entry, one for each larger complete subtree, one for each account's
 * head, and the repositories that entries name.
 *
 * Invariants: rows are only added, but for the head. No event is read back to make them, and they hold nothing of an
 * event's data but ids.
 */
import type { ProjectionTable } from '../runner/projection.ts';

/**
 * Subtrees of a lower level are hashed again from at most `2 ** NODE_LEVEL_MIN - 1` leaves when a proof needs them. A
 * row for each of them would double the model. Internal: both ways give the same proof.
 */
export const NODE_LEVEL_MIN = 4;

const entries: ProjectionTable = {
  name: 'account_log_entries',
  key: ['account_id', 'sequence'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      account_id uuid NOT NULL,
      sequence bigint NOT NULL,
      position bigint NOT NULL,
      event_id uuid NOT NULL,
      stream text COLLATE "C" NOT NULL,
      revision integer NOT NULL,
      type text COLLATE "C" NOT NULL,
      actor_id text COLLATE "C" NOT NULL,
      request_id text COLLATE "C" NOT NULL,
      log_time text COLLATE "C" NOT NULL,
      leaf bytea NOT NULL,
      length integer NOT NULL,
      PRIMARY KEY (account_id, sequence))`,
    `CREATE INDEX ON ${table} (event_id)`,
    `CREATE INDEX ON ${table} (account_id, log_time, sequence)`,
    `CREATE INDEX ON ${table} (account_id, type, sequence)`,
    `CREATE INDEX ON ${table} (account_id, actor_id, sequence)`,
    `CREATE INDEX ON ${table} (account_id, request_id, sequence)`,
    `CREATE INDEX ON ${table} (stream, sequence)`,
  ],
};

const repositories: ProjectionTable = {
  name: 'account_log_repositories',
  key: ['account_id', 'repository_id', 'sequence'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      account_id uuid NOT NULL,
      repository_id uuid NOT NULL,
      sequence bigint NOT NULL,
      PRIMARY KEY (account_id, repository_id, sequence))`,
  ],
};

const nodes: ProjectionTable = {
  name: 'account_log_nodes',
  key: ['account_id', 'level', 'index'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      account_id uuid NOT NULL,
      level smallint NOT NULL,
      index bigint NOT NULL,
      hash bytea NOT NULL,
      PRIMARY KEY (account_id, level, index))`,
  ],
};

/** `hashes`: those of the complete subtrees of the whole tree, from left to right, 32 bytes each. */
const heads: ProjectionTable = {
  name: 'account_log_heads',
  key: ['account_id'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      account_id uuid PRIMARY KEY,
      size bigint NOT NULL,
      position bigint NOT NULL,
      log_time text COLLATE "C" NOT NULL,
      hashes bytea NOT NULL)`,
  ],
};

export const accountLogTables: readonly ProjectionTable[] = [entries, repositories, nodes, heads];
