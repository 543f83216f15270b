/**
 * Finds the revision of a repository's stream that a moment names: a time, or an event of the stream.
 *
 * Must stay true: a time selects the entries of the account's log with this log time or an earlier one
 * (core/runtime/log-time.ts), so the same time always names the same revision. An event of another stream is not found,
 * whoever asks.
 */
import { refuse } from '../../kernel/decider.ts';
import { type LogPosition, streamName } from '../../kernel/envelope.ts';
import type { EventId, Timestamp } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { AccountLogReader } from '../../ports/account-log.ts';
import type { ExpectedRevision } from '../../ports/event-store.ts';
import type { Context } from '../../runtime/execute.ts';
import type { FoundRepository } from '../accounts/repositories.ts';

export type Moment =
  | { readonly at: Timestamp }
  /** With this event. */
  | { readonly event: EventId }
  /** Without it and all after it. */
  | { readonly beforeEvent: EventId };

export interface PastRevisionContext extends Pick<Context, 'events' | 'clock'> {
  readonly readModels: Pick<AccountLogReader, 'accountLogCaughtUp' | 'logPrefix' | 'entryPlaceOf'>;
}

/** `none`: after the repository was made, and before the first event of its stream. */
type Found = { readonly revision: ExpectedRevision } | { readonly refused: Refusal };

export async function pastRevision(
  context: PastRevisionContext,
  repository: FoundRepository,
  moment: Moment,
): Promise<Found> {
  await context.readModels.accountLogCaughtUp(repository.entity.position);
  if ('at' in moment) return revisionAsOf(context, repository, moment.at);
  const event = 'event' in moment ? moment.event : moment.beforeEvent;
  const place = await context.readModels.entryPlaceOf(repository.accountId, event);
  if (place === null || place.stream !== streamName('repository', repository.id)) {
    return refuse({ code: 'event-not-found' });
  }
  return { revision: revisionOf('event' in moment ? place.revision : place.revision - 1) };
}

async function revisionAsOf(
  { events, clock, readModels }: PastRevisionContext,
  { accountId, owned, entity }: FoundRepository,
  at: Timestamp,
): Promise<Found> {
  if (at > clock.now()) {
    const { logTime } = await readModels.logPrefix(accountId, null);
    if (logTime === null || at > logTime) return refuse({ code: 'moment-in-future' });
  }
  if (at < owned.createdAt) return refuse({ code: 'repository-not-yet-made' });
  const { position } = await readModels.logPrefix(accountId, at);
  if (entity.revision === 'none' || entity.position <= position) return { revision: entity.revision };
  return { revision: revisionOf(await lastUpTo(events, entity, entity.revision, position)) };
}

/** Returns the stream's last revision at or before the position, by binary search; -1 if there is none. */
async function lastUpTo(
  events: PastRevisionContext['events'],
  { stream }: FoundRepository['entity'],
  beyond: number,
  position: LogPosition,
): Promise<number> {
  let [low, high] = [-1, beyond];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    const [event] = await events.readStream(stream, { direction: 'forwards', from: middle, limit: 1 });
    if (event !== undefined && event.position <= position) low = middle;
    else high = middle;
  }
  return low;
}

function revisionOf(revision: number): ExpectedRevision {
  return revision < 0 ? 'none' : revision;
}
