/** The queries of ref changes and of the pushes that made them. */
import type { ActivityRow, PushRow, PushTip } from '../../core/ports/activity.ts';
import type { RepositoryId } from '../../core/kernel/ids.ts';
import type { Page, PageOf } from '../../core/kernel/page.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';
import type { TableOf } from '../runner/projection.ts';

/** A push as JSON, from `activity_pushes AS p` and its token's name. */
const PUSH_JSON = `json_build_object('revision', p.revision, 'eventId', p.event_id, 'at', p.occurred_at,
  'actor', json_build_object('kind', p.actor_kind, 'id', p.actor_id), 'tokenName', t.name)`;

function pushesWithTokens(table: TableOf): string {
  return `${table('activity_pushes')} AS p LEFT JOIN ${table('activity_tokens')} AS t
    ON t.id = CASE WHEN p.actor_kind = 'token' THEN p.actor_id::uuid END`;
}

const activityQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object('total', n.total, 'items', coalesce((
      SELECT json_agg(json_build_object('number', c.number, 'push', ${PUSH_JSON}, 'ref', c.ref,
        'before', encode(c.before, 'hex'), 'after', encode(c.after, 'hex'),
        'kind', CASE WHEN p.restored THEN 'restore' ELSE c.kind END) ORDER BY c.number DESC)
      FROM ${table('activity_changes')} AS c JOIN ${pushesWithTokens(table)}
        ON p.repository_id = c.repository_id AND p.revision = c.revision
      WHERE c.repository_id = $1 AND c.number < n.total - $2 AND c.number >= n.total - $2 - $3), '[]'))
    FROM (SELECT coalesce(max(number) + 1, 0)::bigint AS total FROM ${table('activity_changes')}
      WHERE repository_id = $1) AS n`,
};

const pushesQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(${PUSH_JSON}), '[]') FROM ${pushesWithTokens(table)}
    WHERE p.repository_id = $1 AND p.revision = ANY($2::integer[])`,
};

/** Triples of number, revision and target, which parse faster than objects. */
const tipsQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(json_build_array(number, revision, encode(target, 'hex'))
      ORDER BY number), '[]')
    FROM (SELECT number, revision, target FROM ${table('activity_changes')}
      WHERE repository_id = $1 AND number >= $2 AND target IS NOT NULL ORDER BY number LIMIT $3) AS c`,
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
