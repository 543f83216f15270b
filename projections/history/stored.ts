/**
 * Reads a generation's history tables for one batch of its applier, which writes after the last read.
 *
 * Invariants: nothing here reads Git. Object ids are returned as 40 hex digits, whatever form the tables hold.
 */
import type { OrderCommit } from '../../core/git/history/commit-queue.ts';
import type { StoredOrder } from '../../core/git/history/stored-commits.ts';
import type { ObjectType } from '../../core/git/objects.ts';
import { type LayerId, type ObjectId, objectId, type RepositoryId, type Uuid, uuid } from '../../core/kernel/ids.ts';
import type { Layer } from '../../core/repository/layer.ts';
import { layerKey } from '../../core/repository/layer.ts';
import { prepared } from '../runner/bulk.ts';
import type { Queryable, Row, TableOf } from '../runner/projection.ts';
import { orderCommitOf } from './entry.ts';
import type { RefValue } from './fold.ts';

/** A repository's row in `history_repositories`. */
export interface Head {
  readonly accountId: string;
  readonly initialDefaultBranch: string | null;
  readonly defaultBranch: string | null;
  /** -1 before its own stream's first event. */
  readonly revision: number;
  /** The bucket that holds its layers; null: platform storage. */
  readonly storageBucketId: Uuid | null;
  readonly shrinkEpoch: number;
  readonly orderedTip: ObjectId | null;
  readonly orderedCommits: number;
  readonly incomplete: boolean;
}

/** Entries read in one statement: each has at most a thousand parents and a few kilobytes of text. */
const ENTRIES_AT_ONCE = 512;
/** An entry, without its message if it is long: the order needs only date and parents. */
const ORDER_ENTRY = `CASE WHEN octet_length(c.entry) <= 4096 THEN c.entry
  ELSE jsonb_set(c.entry::jsonb, '{1}', '""')::text END`;

export class StoredHistory {
  readonly #database: Queryable;
  readonly #table: TableOf;
  /** Whether commits have a row, as `askKnown` found. */
  readonly #asked = new Map<RepositoryId, Map<ObjectId, boolean>>();

  constructor(database: Queryable, table: TableOf) {
    this.#database = database;
    this.#table = table;
  }

  async #rows(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    return (await this.#database.query(prepared(text, values))).rows;
  }

  async heads(ids: readonly RepositoryId[]): Promise<ReadonlyMap<RepositoryId, Head>> {
    const rows = await this.#rows(
      `SELECT *, encode(ordered_tip, 'hex') AS tip FROM ${this.#table('history_repositories')}
        WHERE repository_id = ANY($1::uuid[])`,
      [ids],
    );
    return new Map(rows.map((row) => [row['repository_id'] as RepositoryId, headOf(row)]));
  }

  async layers(repository: RepositoryId): Promise<readonly Layer[]> {
    const rows = await this.#rows(
      `SELECT id, key, size_bytes, sha256, pack FROM ${this.#table('history_layers')}
        WHERE repository_id = $1 ORDER BY number`,
      [repository],
    );
    return rows.map((row) => ({
      id: uuid<LayerId>(row['id'] as string),
      key: layerKey(row['key'] as string),
      sizeBytes: Number(row['size_bytes']),
      sha256: row['sha256'] as string,
      pack: row['pack'] as string,
    }));
  }

  async refs(repository: RepositoryId, name: string | null): Promise<ReadonlyMap<string, RefValue>> {
    const rows = await this.#rows(
      `SELECT name, encode(id, 'hex') AS id, type, encode(peeled, 'hex') AS peeled
        FROM ${this.#table('history_refs')} WHERE repository_id = $1 AND ($2::text IS NULL OR name = $2)`,
      [repository, name],
    );
    return new Map(rows.map((row) => [row['name'] as string, refOf(row)]));
  }

  /**
   * Asks in one statement which of these commits of several repositories have a row: `known` then answers for them
   * without asking.
   */
  async askKnown(wanted: ReadonlyMap<RepositoryId, readonly ObjectId[]>): Promise<void> {
    const pairs = [...wanted].flatMap(([repository, ids]) => ids.map((id) => [repository, id] as const));
    if (pairs.length === 0) return;
    const rows = await this.#rows(
      `SELECT c.repository_id, encode(c.id, 'hex') AS id FROM ${this.#table('history_commits')} AS c
        JOIN unnest($1::uuid[], $2::text[]) AS w(repository_id, id)
          ON c.repository_id = w.repository_id AND c.id = decode(w.id, 'hex')`,
      [pairs.map(([repository]) => repository), pairs.map(([, id]) => id)],
    );
    for (const [repository, ids] of wanted) this.#asked.set(repository, new Map(ids.map((id) => [id, false])));
    for (const row of rows) this.#asked.get(row['repository_id'] as RepositoryId)?.set(row['id'] as ObjectId, true);
  }

  /** Returns which of the ids have a row; all ancestors of those have one, too. */
  async known(repository: RepositoryId, ids: readonly ObjectId[]): Promise<ReadonlySet<ObjectId>> {
    const asked = this.#asked.get(repository);
    const known = new Set(ids.filter((id) => asked?.get(id) === true));
    const unasked = ids.filter((id) => asked?.has(id) !== true);
    if (unasked.length === 0) return known;
    const rows = await this.#rows(
      `SELECT encode(id, 'hex') AS id FROM ${this.#table('history_commits')}
        WHERE repository_id = $1 AND id = ANY(ARRAY(SELECT decode(t, 'hex') FROM unnest($2::text[]) AS t))`,
      [repository, unasked],
    );
    for (const row of rows) known.add(row['id'] as ObjectId);
    return known;
  }

  /** Returns the stored order of a repository, which is `count` commits long, for an update of it. */
  order(repository: RepositoryId, count: number): StoredOrder {
    const join = `${this.#table('history_commits')} AS c`;
    return {
      commits: async (ids) => {
        const read: OrderCommit[] = [];
        for (let at = 0; at < ids.length; at += ENTRIES_AT_ONCE) {
          const rows = await this.#rows(
            `SELECT ${ORDER_ENTRY} AS entry FROM ${join}
              WHERE repository_id = $1 AND id = ANY(ARRAY(SELECT decode(t, 'hex') FROM unnest($2::text[]) AS t))`,
            [repository, ids.slice(at, at + ENTRIES_AT_ONCE)],
          );
          for (const row of rows) read.push(commitOf(row));
        }
        return read;
      },
      fromTip: async (offset, limit) => {
        const read: OrderCommit[] = [];
        for (let at = offset; at < offset + limit; at += ENTRIES_AT_ONCE) {
          const end = Math.min(at + ENTRIES_AT_ONCE, offset + limit);
          const rows = await this.#rows(
            `SELECT ${ORDER_ENTRY} AS entry FROM ${this.#table('history_order')} AS o JOIN ${join} USING (repository_id, id)
              WHERE repository_id = $1 AND number < $2 AND number >= $3 ORDER BY number DESC`,
            [repository, count - at, count - end],
          );
          for (const row of rows) read.push(commitOf(row));
          if (rows.length < end - at) break;
        }
        return read;
      },
    };
  }
}

function headOf(row: Row): Head {
  const tip = row['tip'] as string | null;
  return {
    accountId: row['account_id'] as string,
    initialDefaultBranch: row['initial_default_branch'] as string | null,
    defaultBranch: row['default_branch'] as string | null,
    revision: row['revision'] as number,
    storageBucketId: row['storage_bucket_id'] as Uuid | null,
    shrinkEpoch: row['shrink_epoch'] as number,
    orderedTip: tip === null ? null : objectId(tip),
    orderedCommits: row['ordered_commits'] as number,
    incomplete: row['incomplete'] as boolean,
  };
}

function refOf(row: Row): RefValue {
  const peeled = row['peeled'] as string | null;
  return {
    id: objectId(row['id'] as string),
    type: row['type'] as ObjectType,
    peeled: peeled === null ? null : objectId(peeled),
  };
}

function commitOf(row: Row): OrderCommit {
  return orderCommitOf(row['entry'] as string);
}
