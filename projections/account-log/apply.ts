/**
 * Numbers the record events of each account and grows the Merkle tree over them (core/audit/tree.ts).
 *
 * Invariants: an entry costs O(log n) hashes and rows, whatever the account's log holds. An event is hashed as it is
 * stored and its data is not interpreted, so that no event of any version can stop the model; if one could not be
 * applied, every later number would be wrong, and so the model halts.
 */
import { LRUCache } from 'lru-cache';
import { leafText } from '../../core/audit/entry.ts';
import { type Growing, grow, leafHash, NO_TREE } from '../../core/audit/tree.ts';
import type { Digest } from '../../core/kernel/digest.ts';
import { categoryOf, entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { later, parseUuid, type Timestamp } from '../../core/kernel/ids.ts';
import { isJsonArray } from '../../core/kernel/json.ts';
import { type CountedCache, countedCache } from '../../core/kernel/shown-caches.ts';
import type { Hash } from '../../core/ports/account-log.ts';
import { RECORD_CATEGORIES } from '../record-categories.ts';
import { prepared } from '../runner/bulk.ts';
import type { Projection, Queryable, TableOf, Write } from '../runner/projection.ts';
import { accountLogTables, NODE_LEVEL_MIN } from './table.ts';

export function createAccountLogProjection(digest: Digest): Projection {
  return {
    name: 'account_log',
    version: 3,
    categories: RECORD_CATEGORIES,
    tables: accountLogTables,
    onPoison: 'halt',
    asStored: true,
    open: (table) => {
      const known: KnownHeads = countedCache(
        'account_log_heads',
        'entries',
        new LRUCache<string, Head>({
          maxSize: KNOWN_HASHES_MAX,
          sizeCalculation: ({ hashes }) => 1 + hashes.length,
        }),
      );
      return {
        prepare: async (events, database) => {
          const entries = events.filter(({ isRecord, accountId }) => isRecord && accountId !== null);
          const accounts = [...new Set(entries.map(({ accountId }) => String(accountId)))];
          const rows = appended(digest, entries, await headsOf(database, table, accounts, known));
          const committed = (): void => rows.heads.forEach((head, account) => known.set(account, head));
          return { ...toWrite(table, rows), committed };
        },
      };
    },
  };
}

interface Head extends Growing {
  readonly logTime: Timestamp | null;
  readonly position: bigint;
}

/** The heads of accounts, as the last transaction left them. */
type KnownHeads = CountedCache<string, Head>;
/**
 * The hashes of all known heads together, where each head counts as one more. Internal: what is not kept is read again.
 */
const KNOWN_HASHES_MAX = 20_000;

const NO_HEAD: Head = { ...NO_TREE, logTime: null, position: 0n };

async function headsOf(
  database: Queryable,
  table: TableOf,
  accounts: readonly string[],
  known: KnownHeads,
): Promise<ReadonlyMap<string, Head>> {
  const heads = new Map<string, Head>();
  const unknown: string[] = [];
  for (const account of accounts) {
    const head = known.get(account);
    if (head === undefined) unknown.push(account);
    else heads.set(account, head);
  }
  if (unknown.length === 0) return heads;
  const text = `SELECT account_id, size, position, log_time, encode(hashes, 'hex') AS hashes
    FROM ${table('account_log_heads')} WHERE account_id = ANY($1::uuid[])`;
  const { rows } = await database.query(prepared(text, [unknown]));
  for (const row of rows) {
    heads.set(row['account_id'] as string, {
      size: Number(row['size']),
      position: BigInt(row['position'] as string),
      logTime: row['log_time'] as Timestamp,
      hashes: ((row['hashes'] as string).match(/.{64}/g) ?? []) as Hash[],
    });
  }
  return heads;
}

interface Appended {
  readonly entries: object[];
  readonly repositories: object[];
  readonly nodes: object[];
  readonly heads: ReadonlyMap<string, Head>;
}

function appended(digest: Digest, events: readonly RecordedEvent[], before: ReadonlyMap<string, Head>): Appended {
  const heads = new Map<string, Head>();
  const rows: Appended = { entries: [], repositories: [], nodes: [], heads };
  for (const event of events) {
    const account_id = String(event.accountId);
    const head = heads.get(account_id) ?? before.get(account_id) ?? NO_HEAD;
    const text = leafText(event);
    const leaf = leafHash(digest, text);
    const logTime = later(event.occurredAt, head.logTime);
    const sequence = head.size;
    rows.entries.push({
      account_id,
      sequence,
      position: String(event.position),
      event_id: event.id,
      stream: event.stream,
      revision: event.revision,
      type: event.type,
      actor_id: event.actor.id,
      request_id: event.requestId,
      log_time: logTime,
      leaf,
      length: text.length,
    });
    for (const repository_id of repositoriesOf(event)) rows.repositories.push({ account_id, repository_id, sequence });
    const grown = grow(digest, head, leaf, ({ level, index }, hash) => {
      if (level >= NODE_LEVEL_MIN) rows.nodes.push({ account_id, level, index, hash });
    });
    heads.set(account_id, { ...grown, logTime, position: event.position });
  }
  return rows;
}

/** Returns the repositories that an event is about or names, each once. */
function repositoriesOf({ stream, data }: RecordedEvent): ReadonlySet<string> {
  const { repository_id: one = null, repository_ids: several = [] } = data;
  const own = categoryOf(stream) === 'repository' ? [entityIdOf(stream)] : [];
  const named = [...own, one, ...(isJsonArray(several) ? several : [])];
  const ids = named.map((id) => (typeof id === 'string' ? parseUuid(id) : null));
  return new Set(ids.filter((id) => id !== null));
}

function toWrite(table: TableOf, { entries, repositories, nodes, heads }: Appended): Write {
  return {
    lists: [
      {
        items: entries,
        text: `INSERT INTO ${table('account_log_entries')} SELECT account_id, sequence, position, event_id, stream,
            revision, type, actor_id, request_id, log_time, decode(leaf, 'hex'), length
          FROM json_to_recordset($1) AS e(account_id uuid, sequence bigint, position bigint, event_id uuid, stream text,
            revision integer, type text, actor_id text, request_id text, log_time text, leaf text, length integer)`,
      },
      {
        items: repositories,
        text: `INSERT INTO ${table('account_log_repositories')} SELECT * FROM json_to_recordset($1)
          AS r(account_id uuid, repository_id uuid, sequence bigint)`,
      },
      {
        items: nodes,
        text: `INSERT INTO ${table('account_log_nodes')} SELECT account_id, level, index, decode(hash, 'hex')
          FROM json_to_recordset($1) AS n(account_id uuid, level smallint, index bigint, hash text)`,
      },
      {
        items: [...heads].map(([account_id, { size, position, logTime, hashes }]) => ({
          account_id,
          size,
          position: String(position),
          log_time: logTime,
          hashes: hashes.join(''),
        })),
        text: `INSERT INTO ${table('account_log_heads')} SELECT account_id, size, position, log_time,
            decode(hashes, 'hex')
          FROM json_to_recordset($1) AS h(account_id uuid, size bigint, position bigint, log_time text, hashes text)
          ON CONFLICT (account_id) DO UPDATE SET size = excluded.size, position = excluded.position,
            log_time = excluded.log_time, hashes = excluded.hashes`,
      },
    ],
  };
}
