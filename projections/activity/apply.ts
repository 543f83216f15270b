/**
 * Folds the pushes of repositories into their ref changes, and access tokens into their names.
 *
 * Invariants: changes of a repository are numbered without gaps, in the order of its stream and of each event.
 * The number of statements does not grow with a push's refs.
 */
import { LRUCache } from 'lru-cache';
import { accessTokenEventKinds } from '../../core/access-token/events.ts';
import { readEvent } from '../../core/kernel/decider.ts';
import { categoryOf, entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { ZERO_OBJECT_ID } from '../../core/kernel/ids.ts';
import { type CountedCache, countedCache } from '../../core/kernel/shown-caches.ts';
import type { ActivityKind, ChangedThing } from '../../core/ports/activity.ts';
import { repositoryEventKinds, type StoredRefUpdate } from '../../core/repository/events.ts';
import { prepared } from '../runner/bulk.ts';
import type { Projection, Queryable, TableOf, Write } from '../runner/projection.ts';
import { activityTables, RUN_CHANGES_MAX } from './table.ts';

export const activityProjection: Projection = {
  name: 'activity',
  version: 4,
  categories: ['repository', 'accessToken'],
  tables: activityTables,
  onPoison: 'park',
  weight: ({ data }) => (Array.isArray(data['updates']) ? Math.max(1, data['updates'].length) : 1),
  open: (table) => {
    const known: KnownNumbers = countedCache(
      'activity_numbers',
      'entries',
      new LRUCache<string, number>({ max: KNOWN_REPOSITORIES_MAX }),
    );
    return {
      prepare: async (events, database) => {
        const folded = fold(events);
        const repositories = [...new Set(folded.pushes.map(({ repository_id }) => repository_id))];
        const next = await nextNumbers(database, table, repositories, known);
        const write = toWrite(table, folded, next);
        const committed = (): void => next.forEach((number, id) => known.set(id, number));
        return { ...write, committed };
      },
    };
  },
};

/** The number of the next change of repositories, as the last transaction left it. */
type KnownNumbers = CountedCache<string, number>;
/** Repositories whose number is known. Internal: what is not kept is read again. */
const KNOWN_REPOSITORIES_MAX = 10_000;

interface PushFields {
  readonly repository_id: string;
  readonly revision: number;
  readonly event_id: string;
  readonly actor_kind: string;
  readonly actor_id: string;
  readonly occurred_at: string;
  readonly restored: boolean;
  readonly changes: number;
  readonly counts: string;
}

/** A row of changes; the next number of the repository is not known yet. */
interface RunFields {
  readonly repository_id: string;
  readonly revision: number;
  readonly count: number;
  readonly has_targets: boolean;
  readonly changes: readonly Change[];
}

type Change = readonly [
  ref: string,
  kind: StoredRefUpdate['kind'],
  before: string | null,
  after: string | null,
  target: string | null,
];

interface KeyedFields {
  readonly push_id: string;
  readonly repository_id: string;
  readonly revision: number;
  readonly request_digest: string;
}

interface Folded {
  readonly pushes: PushFields[];
  readonly keyed: KeyedFields[];
  readonly runs: RunFields[];
  /** The last name of each token. */
  readonly tokens: Map<string, string>;
}

function fold(events: readonly RecordedEvent[]): Folded {
  const folded: Folded = { pushes: [], keyed: [], runs: [], tokens: new Map() };
  for (const recorded of events) {
    if (categoryOf(recorded.stream) === 'repository') foldPush(folded, recorded);
    else foldToken(folded, recorded);
  }
  return folded;
}

function foldPush({ pushes, keyed, runs }: Folded, recorded: RecordedEvent): void {
  const event = readEvent(repositoryEventKinds, recorded);
  if (event.type !== 'RefsUpdated') return;
  const repository_id = entityIdOf(recorded.stream);
  const { revision, actor } = recorded;
  const { updates, push_id, request_digest } = event.data;
  pushes.push({
    repository_id,
    revision,
    event_id: recorded.id,
    actor_kind: actor.kind,
    actor_id: actor.id,
    occurred_at: recorded.occurredAt,
    restored: event.data.restored !== null,
    changes: updates.length,
    counts: countsOf(updates, event.data.restored !== null),
  });
  if (request_digest !== null) keyed.push({ push_id, repository_id, revision, request_digest });
  for (let start = 0; start < updates.length; start += RUN_CHANGES_MAX) {
    const changes = updates.slice(start, start + RUN_CHANGES_MAX).map(changeOf);
    const has_targets = changes.some(([, , , , target]) => target !== null);
    runs.push({ repository_id, revision, count: changes.length, has_targets, changes });
  }
}

/** Each change of a restoration has the kind `restore`. */
function countsOf(updates: readonly StoredRefUpdate[], restored: boolean): string {
  const counts = new Map<string, [kind: ActivityKind, thing: ChangedThing, count: number]>();
  for (const { ref, kind } of updates) {
    const thing = ref.startsWith('refs/heads/') ? 'branch' : ref.startsWith('refs/tags/') ? 'tag' : 'ref';
    const shown = restored ? 'restore' : kind;
    const key = `${shown} ${thing}`;
    const counted = counts.get(key) ?? [shown, thing, 0];
    counted[2] += 1;
    counts.set(key, counted);
  }
  return JSON.stringify([...counts.values()]);
}

function changeOf({ ref, kind, before, after, peeled }: StoredRefUpdate): Change {
  return [ref, kind, idOrNull(before), idOrNull(after), kind === 'delete' ? null : (peeled ?? after)];
}

function idOrNull(id: string): string | null {
  return id === ZERO_OBJECT_ID ? null : id;
}

function foldToken({ tokens }: Folded, recorded: RecordedEvent): void {
  const event = readEvent(accessTokenEventKinds, recorded);
  if (event.type === 'AccessTokenRevoked' || event.type === 'AccessTokenExchanged') return;
  if (event.data.name === undefined) return;
  tokens.set(entityIdOf(recorded.stream), event.data.name);
}

/** Returns the number of the next change of each repository. */
async function nextNumbers(
  database: Queryable,
  table: TableOf,
  repositories: readonly string[],
  known: KnownNumbers,
): Promise<Map<string, number>> {
  const next = new Map<string, number>();
  const unknown: string[] = [];
  for (const id of repositories) {
    const number = known.get(id);
    if (number === undefined) unknown.push(id);
    else next.set(id, number);
  }
  if (unknown.length === 0) return next;
  const text = `SELECT r.id, coalesce((SELECT number + count FROM ${table('activity_changes')}
      WHERE repository_id = r.id ORDER BY number DESC LIMIT 1), 0) AS next FROM unnest($1::uuid[]) AS r(id)`;
  const { rows } = await database.query(prepared(text, [unknown]));
  for (const row of rows) next.set(row['id'] as string, Number(row['next']));
  return next;
}

function toWrite(table: TableOf, { pushes, keyed, runs, tokens }: Folded, next: Map<string, number>): Write {
  /** The number of the first change of each push that has some. */
  const firsts = new Map<string, number>();
  const keyOf = ({ repository_id, revision }: Pick<RunFields, 'repository_id' | 'revision'>) =>
    `${repository_id} ${revision}`;
  const numbered = runs.map((run) => {
    const number = next.get(run.repository_id) ?? 0;
    next.set(run.repository_id, number + run.count);
    const key = keyOf(run);
    if (!firsts.has(key)) firsts.set(key, number);
    return { ...run, number };
  });
  return {
    lists: [
      {
        items: pushes.map((push) => ({ ...push, first_change: firsts.get(keyOf(push)) ?? 0 })),
        text: `INSERT INTO ${table('activity_pushes')} SELECT * FROM json_to_recordset($1) AS p(repository_id uuid,
          revision integer, event_id uuid, actor_kind text, actor_id text, occurred_at text, restored boolean,
          first_change integer, changes integer, counts text)`,
      },
      {
        items: keyed,
        text: `INSERT INTO ${table('activity_keyed_pushes')} SELECT * FROM json_to_recordset($1) AS k(push_id uuid,
          repository_id uuid, revision integer, request_digest text) ON CONFLICT (push_id) DO NOTHING`,
      },
      {
        items: numbered,
        text: `INSERT INTO ${table('activity_changes')} SELECT * FROM json_to_recordset($1) AS c(repository_id uuid,
          number integer, count integer, revision integer, has_targets boolean, changes text)`,
      },
      {
        items: [...tokens].map(([id, name]) => ({ id, name })),
        text: `INSERT INTO ${table('activity_tokens')} SELECT * FROM json_to_recordset($1) AS t(id uuid, name text)
          ON CONFLICT (id) DO UPDATE SET name = excluded.name`,
      },
    ],
  };
}
