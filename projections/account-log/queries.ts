/** The queries of core/ports/account-log.ts. */
import { nodeHash } from '../../core/audit/tree.ts';
import type { Digest } from '../../core/kernel/digest.ts';
import { LOG_START, type LogPosition } from '../../core/kernel/envelope.ts';
import type { AccountId, EventId, Timestamp } from '../../core/kernel/ids.ts';
import type { EntryFilter, EntryPlace, EntryRange, Hash, LogPrefix, Subtree } from '../../core/ports/account-log.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';
import { NODE_LEVEL_MIN } from './table.ts';

const NOTHING_PARKED = () => ({ streams: [] });

/** Positions as text: JSON's numbers would lose digits of them. */
const PLACE_JSON = `json_build_object('sequence', e.sequence, 'eventId', e.event_id, 'stream', e.stream,
  'revision', e.revision, 'position', e.position::text, 'logTime', e.log_time, 'leaf', encode(e.leaf, 'hex'),
  'length', e.length)`;

const headQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object('size', size, 'position', position::text, 'logTime', log_time)
    FROM ${table('account_log_heads')} WHERE account_id = $1`,
};

/** The last entry whose log time is not later: log time never decreases along the sequence. */
const asOfQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object('size', sequence + 1, 'position', position::text, 'logTime', log_time)
    FROM ${table('account_log_entries')} WHERE account_id = $1 AND log_time <= $2
    ORDER BY log_time DESC, sequence DESC LIMIT 1`,
};

export async function readLogPrefix(reader: LiveReader, account: AccountId, at: Timestamp | null): Promise<LogPrefix> {
  const { value } = await (at === null
    ? reader.read(headQuery, [account], NOTHING_PARKED)
    : reader.read(asOfQuery, [account, at], NOTHING_PARKED));
  if (value === null) return { size: 0, position: LOG_START, logTime: null };
  const row = value as { readonly size: number; readonly position: string; readonly logTime: Timestamp };
  return { ...row, position: BigInt(row.position) as LogPosition };
}

/** Every condition has the index that its column leads, and the first page of each reads little more than its rows. */
const CONDITIONS = {
  type: 'e.type = $P',
  stream: 'e.stream = $P',
  actorId: 'e.actor_id = $P',
  requestId: 'e.request_id = $P',
  since: 'e.log_time >= $P',
  until: 'e.log_time < $P',
  repositoryId: 'r.repository_id = $P',
} as const;

type Condition = keyof typeof CONDITIONS;

/** One query for each set of conditions and each order: at most 256 texts. */
const entryQueries = new Map<string, ReadQuery>();

function entriesQuery(wanted: readonly Condition[], order: 'ASC' | 'DESC'): ReadQuery {
  const key = [order, ...wanted].join();
  const known = entryQueries.get(key);
  if (known !== undefined) return known;
  const conditions = wanted.map((name, at) => ` AND ${CONDITIONS[name].replace('$P', `$${at + 5}`)}`).join('');
  const query: ReadQuery = {
    answer: (table) => {
      const named = wanted.includes('repositoryId')
        ? `JOIN ${table('account_log_repositories')} AS r
           ON r.account_id = e.account_id AND r.sequence = e.sequence`
        : '';
      return `SELECT coalesce(json_agg(${PLACE_JSON} ORDER BY e.sequence ${order}), '[]') FROM (
        SELECT e.* FROM ${table('account_log_entries')} AS e ${named}
        WHERE e.account_id = $1 AND e.sequence >= $2 AND e.sequence < $3${conditions}
        ORDER BY e.sequence ${order} LIMIT $4) AS e`;
    },
  };
  entryQueries.set(key, query);
  return query;
}

export async function readEntryPlaces(
  reader: LiveReader,
  account: AccountId,
  filter: EntryFilter | null,
  range: EntryRange,
): Promise<readonly EntryPlace[]> {
  const wanted = (Object.keys(CONDITIONS) as Condition[]).filter((name) => filter !== null && filter[name] !== null);
  const values = wanted.map((name) => filter?.[name]);
  const { value } = await reader.read(
    entriesQuery(wanted, range.newestFirst === true ? 'DESC' : 'ASC'),
    [account, range.from, range.to, range.limit, ...values],
    NOTHING_PARKED,
  );
  return (value as readonly PlaceRow[]).map(placeOf);
}

const placeQuery: ReadQuery = {
  answer: (table) => `SELECT ${PLACE_JSON} FROM ${table('account_log_entries')} AS e
    WHERE e.event_id = $2 AND e.account_id = $1`,
};

export async function readEntryPlaceOf(
  reader: LiveReader,
  account: AccountId,
  event: EventId,
): Promise<EntryPlace | null> {
  const { value } = await reader.read(placeQuery, [account, event], NOTHING_PARKED);
  return value === null ? null : placeOf(value as PlaceRow);
}

type PlaceRow = Omit<EntryPlace, 'position'> & { readonly position: string };

function placeOf(row: PlaceRow): EntryPlace {
  return { ...row, position: BigInt(row.position) as LogPosition };
}

const hashesQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object(
    'nodes', (SELECT coalesce(json_object_agg(n.level || ' ' || n.index, encode(n.hash, 'hex')), '{}')
      FROM json_to_recordset($2) AS w(level smallint, index bigint)
      JOIN ${table('account_log_nodes')} AS n ON n.account_id = $1 AND n.level = w.level AND n.index = w.index),
    'leaves', (SELECT coalesce(json_object_agg(e.sequence, encode(e.leaf, 'hex')), '{}')
      FROM json_to_recordset($3) AS w(first bigint, past bigint)
      JOIN ${table('account_log_entries')} AS e
        ON e.account_id = $1 AND e.sequence >= w.first AND e.sequence < w.past))`,
};

/** Throws TypeError if the tree lacks one. */
export async function readTreeHashes(
  reader: LiveReader,
  digest: Digest,
  account: AccountId,
  subtrees: readonly Subtree[],
): Promise<readonly Hash[]> {
  const kept = subtrees.filter(({ level }) => level >= NODE_LEVEL_MIN);
  const hashed = subtrees.filter(({ level }) => level < NODE_LEVEL_MIN);
  const ranges = hashed.map(({ level, index }) => ({ first: index * 2 ** level, past: (index + 1) * 2 ** level }));
  const { value } = await reader.read(
    hashesQuery,
    [account, JSON.stringify(kept), JSON.stringify(ranges)],
    NOTHING_PARKED,
  );
  const { nodes, leaves } = value as Record<'nodes' | 'leaves', Readonly<Record<string, Hash>>>;
  const hashOf = ({ level, index }: Subtree): Hash => {
    const known = level === 0 ? leaves[index] : level >= NODE_LEVEL_MIN ? nodes[`${level} ${index}`] : undefined;
    if (known !== undefined) return known;
    if (level === 0 || level >= NODE_LEVEL_MIN) throw new TypeError(`The tree of ${account} lacks ${level} ${index}`);
    const left = hashOf({ level: level - 1, index: 2 * index });
    return nodeHash(digest, left, hashOf({ level: level - 1, index: 2 * index + 1 }));
  };
  return subtrees.map(hashOf);
}

const logsQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(json_build_object('account', account_id, 'size', size)
      ORDER BY account_id), '[]')
    FROM (SELECT account_id, size FROM ${table('account_log_heads')}
      WHERE $1::uuid IS NULL OR account_id > $1 ORDER BY account_id LIMIT $2) AS l`,
};

export async function readAccountLogs(
  reader: LiveReader,
  after: AccountId | null,
  limit: number,
): Promise<readonly { readonly account: AccountId; readonly size: number }[]> {
  const { value } = await reader.read(logsQuery, [after, limit], NOTHING_PARKED);
  return value as readonly { readonly account: AccountId; readonly size: number }[];
}
