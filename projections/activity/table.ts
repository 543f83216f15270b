/**
 * The tables of ref changes: the changes in runs of a few to a row, one row for each event that made some and one more
 * if its request had an idempotency key, and the names of access tokens, which stay when a token is revoked.
 *
 * Invariants: nothing is removed when a repository is deleted, because it may be restored with its past.
 */
import type { ProjectionTable } from '../runner/projection.ts';

/**
 * `first_change` is the number of the first of its `changes`; `counts` is a JSON list of `[kind, thing, count]`, so
 * that a page of pushes reads none of the changes but those that it shows.
 */
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
      first_change integer NOT NULL,
      changes integer NOT NULL,
      counts text NOT NULL,
      PRIMARY KEY (repository_id, revision))`,
  ],
};

/**
 * This many short names make a row that PostgreSQL need not compress, which would take longer than the rest of the row.
 * Internal: both ways give the same answers.
 */
export const RUN_CHANGES_MAX = 12;

/**
 * Consecutive changes of one event: a row for each would be most of what a wide push costs. `number` is that of the
 * first; `changes` is a JSON list of `[ref, kind, before, after, target]`, where ids are hex, null for no object, and
 * `target` is what the ref pointed to from then on, a tag peeled. `has_targets` is false if all of them are deletions.
 */
const changes: ProjectionTable = {
  name: 'activity_changes',
  key: ['repository_id', 'number'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      repository_id uuid NOT NULL,
      number integer NOT NULL,
      count integer NOT NULL,
      revision integer NOT NULL,
      has_targets boolean NOT NULL,
      changes text NOT NULL,
      PRIMARY KEY (repository_id, number))`,
  ],
};

const tokens: ProjectionTable = {
  name: 'activity_tokens',
  key: ['id'],
  compare: 'exact',
  create: (table) => [`CREATE TABLE ${table} (id uuid PRIMARY KEY, name text NOT NULL)`],
};

const keyedPushes: ProjectionTable = {
  name: 'activity_keyed_pushes',
  key: ['push_id'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      push_id uuid PRIMARY KEY,
      repository_id uuid NOT NULL,
      revision integer NOT NULL,
      request_digest text COLLATE "C" NOT NULL)`,
  ],
};

export const activityTables: readonly ProjectionTable[] = [pushes, changes, tokens, keyedPushes];
