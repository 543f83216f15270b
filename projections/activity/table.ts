/**
 * The tables of ref changes: one row for each change of a ref, one for each event that made some, and the names of
 * access tokens, which stay when a token is revoked.
 *
 * Must stay true: nothing is removed when a repository is deleted, because it may be restored with its past.
 */
import type { ProjectionTable } from '../runner/projection.ts';

const pushes: ProjectionTable = {
  name: 'activity_pushes',
  key: ['repository_id', 'revision'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      repository_id uuid NOT NULL,
      revision integer NOT NULL,
      event_id uuid NOT NULL,
      actor_kind text NOT NULL,
      actor_id text NOT NULL,
      occurred_at text COLLATE "C" NOT NULL,
      restored boolean NOT NULL,
      PRIMARY KEY (repository_id, revision))`,
  ],
};

/** `target` is what the ref pointed to from then on, a tag peeled; null for a deletion. */
const changes: ProjectionTable = {
  name: 'activity_changes',
  key: ['repository_id', 'number'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      repository_id uuid NOT NULL,
      number integer NOT NULL,
      revision integer NOT NULL,
      ref text COLLATE "C" NOT NULL,
      before bytea NOT NULL,
      after bytea NOT NULL,
      target bytea,
      kind text NOT NULL,
      PRIMARY KEY (repository_id, number))`,
  ],
};

const tokens: ProjectionTable = {
  name: 'activity_tokens',
  key: ['id'],
  compare: 'exact',
  create: (table) => [`CREATE TABLE ${table} (id uuid PRIMARY KEY, name text NOT NULL)`],
};

export const activityTables: readonly ProjectionTable[] = [pushes, changes, tokens];
