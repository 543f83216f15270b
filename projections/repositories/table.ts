/**
 * The tables that repositories are listed from.
 *
 * Invariants: each table is written from streams of one category. So parked events may delay one table without
 * making the other wrong; queries join them.
 */
import type { ProjectionTable } from '../runner/projection.ts';

/** From account streams. */
const accounts: ProjectionTable = {
  name: 'repository_owners',
  key: ['account_id'],
  compare: 'exact',
  create: (table) => [`CREATE TABLE ${table} (account_id uuid PRIMARY KEY, username text NOT NULL)`],
};

/**
 * From account streams: the repositories and their names. `name_key` is the form in which names are unique and sorted.
 */
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

/**
 * From repository streams: the content. Readers do not see a closed repository; its account releases the name
 * afterwards.
 */
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
    // Queried every few seconds (readHalfDeleted); at any time next to no row is closed.
    `CREATE INDEX ON ${table} (id) WHERE closed`,
  ],
};

export const repositoryTables: readonly ProjectionTable[] = [accounts, repositories, contents];
