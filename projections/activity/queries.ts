/** The queries of ref changes and of the pushes that made them. */
import { type PushId, type RepositoryId, ZERO_OBJECT_ID } from '../../core/kernel/ids.ts';
import type { Page, PageOf } from '../../core/kernel/page.ts';
import type {
  ActivityRow,
  CountedChanges,
  KeyedPush,
  PushActivity,
  PushRow,
  PushTip,
  WantedPushes,
} from '../../core/ports/activity.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';
import type { TableOf } from '../runner/projection.ts';
import { RUN_CHANGES_MAX } from './table.ts';

/** A push as JSON, from `activity_pushes AS p` and its token's name. */
const PUSH_JSON = `json_build_object('revision', p.revision, 'eventId', p.event_id, 'at', p.occurred_at,
  'actor', json_build_object('kind', p.actor_kind, 'id', p.actor_id), 'tokenName', t.name)`;

const TOKEN_OF_PUSH = `t.id = CASE WHEN p.actor_kind = 'token' THEN p.actor_id::uuid END`;

function pushesWithTokens(table: TableOf): string {
  return `${table('activity_pushes')} AS p LEFT JOIN ${table('activity_tokens')} AS t ON ${TOKEN_OF_PUSH}`;
}

/** The number of a change that `changesOf` gives. */
const NUMBER = '(c.number + change.place - 1)';

/** The changes of runs, from `activity_changes AS c`: `change.value` is the list that table.ts describes. */
function changesOf(runs: string): string {
  return `${runs} AS c CROSS JOIN LATERAL json_array_elements(c.changes::json) WITH ORDINALITY AS change(value, place)`;
}

const idAt = (place: number) => `coalesce(change.value->>${place}, '${ZERO_OBJECT_ID}')`;

/** A change as JSON, with its push. */
const CHANGE_JSON = `json_build_object('number', ${NUMBER}, 'push', ${PUSH_JSON}, 'ref', change.value->>0,
  'before', ${idAt(2)}, 'after', ${idAt(3)},
  'kind', CASE WHEN p.restored THEN 'restore' ELSE change.value->>1 END)`;

const activityQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object('total', n.total, 'items', coalesce((
      SELECT json_agg(${CHANGE_JSON} ORDER BY ${NUMBER} DESC)
      FROM ${changesOf(table('activity_changes'))} JOIN ${pushesWithTokens(table)}
        ON p.repository_id = c.repository_id AND p.revision = c.revision
      WHERE c.repository_id = $1 AND c.number < n.total - $2 AND c.number > n.total - $2 - $3 - ${RUN_CHANGES_MAX}
        AND ${NUMBER} < n.total - $2 AND ${NUMBER} >= n.total - $2 - $3), '[]'))
    FROM (SELECT coalesce((SELECT number + count FROM ${table('activity_changes')}
      WHERE repository_id = $1 ORDER BY number DESC LIMIT 1), 0)::bigint AS total) AS n`,
};

/** A push begins with a run of its own, so no run before its first change is read. */
const pushActivityQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(json_build_object('push', ${PUSH_JSON}, 'counts', p.counts::json,
      'first', p.first_change, 'count', p.changes, 'changes', coalesce((SELECT
        json_agg(${CHANGE_JSON} ORDER BY ${NUMBER} DESC) FROM ${changesOf(table('activity_changes'))}
        WHERE c.repository_id = p.repository_id AND c.number >= p.first_change AND c.number < p.first_change + p.changes
          AND c.number > p.first_change + p.changes - $4 - ${RUN_CHANGES_MAX}
          AND ${NUMBER} >= p.first_change + p.changes - $4), '[]')) ORDER BY p.revision DESC), '[]')
    FROM (SELECT * FROM ${table('activity_pushes')} WHERE repository_id = $1 AND changes > 0
        AND ($2::integer IS NULL OR revision < $2::integer) ORDER BY revision DESC LIMIT $3) AS p
      LEFT JOIN ${table('activity_tokens')} AS t ON ${TOKEN_OF_PUSH}`,
};

const changesQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(${CHANGE_JSON} ORDER BY ${NUMBER} DESC), '[]')
    FROM ${changesOf(table('activity_changes'))} JOIN ${pushesWithTokens(table)}
      ON p.repository_id = c.repository_id AND p.revision = c.revision
    WHERE c.repository_id = $1 AND c.number > $2::bigint - ${RUN_CHANGES_MAX} AND c.number < $2::bigint + $3::bigint
      AND ${NUMBER} >= $2::bigint AND ${NUMBER} < $2::bigint + $3::bigint`,
};

const pushesQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(${PUSH_JSON}), '[]') FROM ${pushesWithTokens(table)}
    WHERE p.repository_id = $1 AND p.revision = ANY($2::integer[])`,
};

/**
 * Triples of number, revision and target, which parse faster than objects. Of the runs that are read, all but the first
 * have a target that counts. Ordered by the two numbers and not by their sum, it opens no more runs than fill the page.
 */
const tipsQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(json_build_array(number, revision, target) ORDER BY number), '[]')
    FROM (SELECT ${NUMBER} AS number, c.revision, change.value->>4 AS target
      FROM ${changesOf(`(SELECT number, revision, changes FROM ${table('activity_changes')}
        WHERE repository_id = $1 AND number > $2 - ${RUN_CHANGES_MAX} AND has_targets ORDER BY number LIMIT $3 + 1)`)}
      WHERE ${NUMBER} >= $2 AND change.value->>4 IS NOT NULL ORDER BY c.number, change.place LIMIT $3) AS tips`,
};

const keyedQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object('revision', p.revision, 'eventId', p.event_id, 'at', p.occurred_at,
      'requestDigest', k.request_digest)
    FROM ${table('activity_keyed_pushes')} AS k JOIN ${table('activity_pushes')} AS p USING (repository_id, revision)
    WHERE k.push_id = $2 AND k.repository_id = $1`,
};

const concerning = (repository: RepositoryId) => () => ({ streams: [`repository-${repository}`] });

export async function readActivity(
  reader: LiveReader,
  repository: RepositoryId,
  { offset, limit }: Page,
): Promise<PageOf<ActivityRow>> {
  const { value } = await reader.read(activityQuery, [repository, offset, limit], concerning(repository));
  return value as PageOf<ActivityRow>;
}

export async function readPushActivity(
  reader: LiveReader,
  repository: RepositoryId,
  { before, limit, changes }: WantedPushes,
): Promise<readonly PushActivity[]> {
  const { value } = await reader.read(pushActivityQuery, [repository, before, limit, changes], concerning(repository));
  type Counted = readonly [CountedChanges['kind'], CountedChanges['thing'], number];
  const rows = value as readonly (Omit<PushActivity, 'counts'> & { readonly counts: readonly Counted[] })[];
  return rows.map((row) => ({ ...row, counts: row.counts.map(([kind, thing, count]) => ({ kind, thing, count })) }));
}

export async function readRefChanges(
  reader: LiveReader,
  repository: RepositoryId,
  first: number,
  count: number,
): Promise<readonly ActivityRow[]> {
  const { value } = await reader.read(changesQuery, [repository, first, count], concerning(repository));
  return value as readonly ActivityRow[];
}

export async function readPushes(
  reader: LiveReader,
  repository: RepositoryId,
  revisions: readonly number[],
): Promise<readonly PushRow[]> {
  const { value } = await reader.read(pushesQuery, [repository, revisions], concerning(repository));
  return value as readonly PushRow[];
}

export async function readPushTips(
  reader: LiveReader,
  repository: RepositoryId,
  from: number,
  limit: number,
): Promise<readonly PushTip[]> {
  const { value } = await reader.read(tipsQuery, [repository, from, limit], concerning(repository));
  const rows = value as readonly (readonly [number, number, PushTip['target']])[];
  return rows.map(([number, revision, target]) => ({ number, revision, target }));
}

export async function readKeyedPush(
  reader: LiveReader,
  repository: RepositoryId,
  push: PushId,
): Promise<KeyedPush | null> {
  const { value } = await reader.read(keyedQuery, [repository, push], concerning(repository));
  return value as KeyedPush | null;
}
