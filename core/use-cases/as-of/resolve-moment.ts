/**
 * Finds the place in the log that a moment names for a repository: a time, or one of its own events.
 *
 * Invariants: an event of another stream is not found, whoever asks. So no moment tells anything about other
 * repositories or accounts.
 */
import type { Moment } from '../../audit/moment.ts';
import { refuse } from '../../kernel/decider.ts';
import { type LogPosition, positionBefore, streamName } from '../../kernel/envelope.ts';
import type { EventId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { AccountLogReader, EntryPlace } from '../../ports/account-log.ts';
import { repositories } from '../../repository/evolve.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { type LogAsOfContext, logAsOf } from './as-of.ts';

/** What refs may be set back to. */
export type RestorePoint =
  | Moment
  /** Without that event and all after it. */
  | { readonly beforeEvent: EventId };

export interface MomentContext extends LogAsOfContext {
  readonly readModels: LogAsOfContext['readModels'] & Pick<AccountLogReader, 'entryPlaceOf'>;
}

/** Returns the last position that is included. */
export async function positionOf(
  context: MomentContext,
  repository: FoundRepository,
  point: RestorePoint,
): Promise<{ readonly position: LogPosition } | { readonly refused: Refusal }> {
  const seen = repository.entity.position;
  if ('at' in point) return logAsOf(context, repository.accountId, point.at, seen);
  const place = await ownEvent(context, repository, 'event' in point ? point.event : point.beforeEvent, seen);
  if (place === null) return refuse({ code: 'event-not-found' });
  return { position: 'event' in point ? place.position : positionBefore(place.position) };
}

/**
 * Returns the place of an event of the repository's own stream, if the log had it at `seen`; null for any other event.
 */
export async function ownEvent(
  { readModels }: Pick<MomentContext, 'readModels'>,
  { id, accountId }: FoundRepository,
  event: EventId,
  seen: LogPosition,
): Promise<EntryPlace | null> {
  await readModels.accountLogCaughtUp(seen);
  const place = await readModels.entryPlaceOf(accountId, event);
  return place?.stream === streamName(repositories.category, id) ? place : null;
}
