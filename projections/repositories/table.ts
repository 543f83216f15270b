/**
 * The tables that repositories are listed from.
 *
 * Must stay true: each table is written from streams of one category, so either may be behind by parked events
 * without the other going wrong; they are joined when they are read.
 */
import type { ProjectionTable } from '../runner/projection.ts';

/** From account streams. */
const accounts: ProjectionTable = {
  name: 'repository_owners',
  key: ['account_id'],
  compare: 'exact',
  create: (table) => [`CREATE TABLE ${table} (account_id uuid PRIMARY KEY, username text NOT NULL)`],
};

/** From account streams: what exists under which name. `name_key` is the name as it is unique and sorted. */
const repositories: ProjectionTable = {
  name: 'repositories',
  key: ['id'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      id uuid PRIMARY KEY,
      account_id uuid NOT NULL,
      name text NOT NULL,
      name_key text COLLATE "C" NOT NULL,
      description text,
      initial_default_branch text,
      storage_bucket_id uuid,
      created_at text NOT NULL)`,
    `CREATE UNIQUE INDEX ON ${table} (account_id, name_key)`,
  ],
};

/** From repository streams: what was pushed there. A closed one is gone for readers; its name follows. */
const contents: ProjectionTable = {
  name: 'repository_contents',
  key: ['id'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      id uuid PRIMARY KEY,
      default_branch text,
      size_bytes bigint NOT NULL DEFAULT 0,
      pushed_at text,
      closed boolean NOT NULL DEFAULT false)`,
    // Looked for every few seconds (readHalfDeleted), and next to none at any time.
    `CREATE INDEX ON ${table} (id) WHERE closed`,
  ],
};

export const repositoryTables: readonly ProjectionTable[] = [accounts, repositories, contents];
