/**
 * The tables of repositories' histories: refs, commits, the default branch's order, and the layers that hold the
 * objects.
 *
 * Invariants: refs, order and the commits they name change in one transaction, so a reader of one snapshot finds
 * every commit that a branch or the order names.
 */
import type { ProjectionTable } from '../runner/projection.ts';

/**
 * One row for each repository that is not removed. `ordered_tip` is the default branch's tip, null while that branch
 * does not exist; `ordered_commits` is the number of its rows in the order. `incomplete` marks a repository whose
 * objects of this revision do not exist any more, because a later event, not yet applied, replaced them.
 */
const repositories: ProjectionTable = {
  name: 'history_repositories',
  key: ['repository_id'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      repository_id uuid PRIMARY KEY,
      account_id uuid NOT NULL,
      initial_default_branch text,
      default_branch text,
      revision integer NOT NULL,
      storage_bucket_id uuid,
      shrink_epoch integer NOT NULL,
      ordered_tip bytea,
      ordered_commits integer NOT NULL,
      incomplete boolean NOT NULL)`,
  ],
};

/** Every ref by its full name, in byte order. `peeled` is set for annotated tags. */
const refs: ProjectionTable = {
  name: 'history_refs',
  key: ['repository_id', 'name'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      repository_id uuid NOT NULL,
      name text COLLATE "C" NOT NULL,
      id bytea NOT NULL,
      type text NOT NULL,
      peeled bytea,
      PRIMARY KEY (repository_id, name))`,
  ],
};

/** Every commit that any branch or tag ever pushed reaches; `entry` is its JSON (entry.ts). */
const commits: ProjectionTable = {
  name: 'history_commits',
  key: ['repository_id', 'id'],
  compare: 'leftovers',
  create: (table) => [
    `CREATE TABLE ${table} (
      repository_id uuid NOT NULL,
      id bytea NOT NULL,
      entry text NOT NULL,
      PRIMARY KEY (repository_id, id))`,
  ],
};

/** The default branch in the order of `git log`, numbered from the root's end: the tip has the highest number. */
const order: ProjectionTable = {
  name: 'history_order',
  key: ['repository_id', 'number'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      repository_id uuid NOT NULL,
      number integer NOT NULL,
      id bytea NOT NULL,
      PRIMARY KEY (repository_id, number))`,
  ],
};

/** The committed layers in order: the object database reads the commits from them. */
const layers: ProjectionTable = {
  name: 'history_layers',
  key: ['repository_id', 'number'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      repository_id uuid NOT NULL,
      number integer NOT NULL,
      id uuid NOT NULL,
      key text NOT NULL,
      size_bytes bigint NOT NULL,
      sha256 text NOT NULL,
      pack text NOT NULL,
      PRIMARY KEY (repository_id, number))`,
  ],
};

export const historyTables: readonly ProjectionTable[] = [repositories, refs, commits, order, layers];
