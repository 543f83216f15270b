/**
 * Refs of a running server's repository as a log from before has them: written straight to the log, so that a test can
 * record names which no push may create any more.
 */
import { randomUUID } from 'node:crypto';
import { createPostgresEventStore } from '../../adapters/postgres/event-store.ts';
import { streamName } from '../../core/kernel/envelope.ts';
import { type AccountId, timestamp, uuid, ZERO_OBJECT_ID } from '../../core/kernel/ids.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { newEvent } from './events.ts';
import { keepLog } from './log.ts';
import type { SharedParts } from './strata-on-postgres.ts';

export interface RecordedRefs {
  readonly account: string;
  readonly repository: string;
  /** The refs from then on, by full name: commits that the repository's layers hold. All others are deleted. */
  readonly refs: Readonly<Record<string, string>>;
  /** Recorded as the owner's choice. */
  readonly defaultBranch?: string;
}

/** Returns the id of the last event, after which the refs are these. The log must be on PostgreSQL. */
export async function recordRefs(shared: SharedParts, recorded: RecordedRefs): Promise<string> {
  const connectionString = shared.env['STRATA_DATABASE_URL'] ?? '';
  const events = createPostgresEventStore({ connectionString, log: keepLog() });
  try {
    return await recordRefsIn(events, recorded);
  } finally {
    await events.close();
  }
}

/** Does what `recordRefs` does, in a log that the test has open. */
export async function recordRefsIn(
  events: Pick<EventStore, 'readStream' | 'append'>,
  { account, repository, refs, defaultBranch }: RecordedRefs,
): Promise<string> {
  const stream = streamName('repository', repository);
  const recorded = await events.readStream(stream, { direction: 'forwards', from: 0, limit: 10_000 });
  const current = new Map<string, string>();
  for (const { type, data } of recorded) {
    if (type !== 'RefsUpdated') continue;
    const { updates } = data as { updates: readonly { ref: string; after: string }[] };
    for (const { ref, after } of updates) {
      if (after === ZERO_OBJECT_ID) current.delete(ref);
      else current.set(ref, after);
    }
  }
  const names = [...new Set([...current.keys(), ...Object.keys(refs)])].sort();
  const updates = names.flatMap((ref) => {
    const [before = ZERO_OBJECT_ID, after = ZERO_OBJECT_ID] = [current.get(ref), refs[ref]];
    if (before === after) return [];
    const kind = after === ZERO_OBJECT_ID ? 'delete' : before === ZERO_OBJECT_ID ? 'create' : 'force-push';
    return [{ ref, before, after, type: after === ZERO_OBJECT_ID ? null : 'commit', peeled: null, kind }];
  });
  const push = { push_id: randomUUID(), updates, parts: null, layer: null };
  const moved = { ...push, push_options: [], refused: 0, received_bytes: 1_000 };
  const about = { accountId: uuid<AccountId>(account), occurredAt: timestamp(new Date().toISOString()) };
  const chosen =
    defaultBranch === undefined
      ? []
      : [newEvent({ ...about, type: 'DefaultBranchChanged', data: { default_branch: defaultBranch } })];
  const appended = [newEvent({ ...about, type: 'RefsUpdated', data: moved }), ...chosen];
  const result = await events.append({ stream, expected: recorded.length - 1, events: appended });
  if (result.outcome === 'conflict') throw new Error(`${stream} was changed first`);
  return appended.at(-1)?.id ?? '';
}
