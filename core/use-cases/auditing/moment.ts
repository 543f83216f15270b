/**
 * Finds the place in the log that a moment names for a repository: a time, or one of its own events.
 *
 * Must stay true: an event of another stream is not found, whoever asks. So no moment tells anything about other
 * repositories or accounts.
 */
import { refuse } from '../../kernel/decider.ts';
import { type LogPosition, streamName } from '../../kernel/envelope.ts';
import type { EventId, Timestamp } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { AccountLogReader } from '../../ports/account-log.ts';
import type { FoundRepository } from '../accounts/repositories.ts';
import { logAsOf, type LogAsOfContext } from './as-of.ts';

export type Moment =
  | { readonly at: Timestamp }
  /** With this event. */
  | { readonly event: EventId }
  /** Without it and all after it. */
  | { readonly beforeEvent: EventId };

export interface MomentContext extends LogAsOfContext {
  readonly readModels: LogAsOfContext['readModels'] & Pick<AccountLogReader, 'entryPlaceOf'>;
}

/** Returns the last position that the moment includes. */
export async function positionOf(
  context: MomentContext,
  { id, accountId, entity }: FoundRepository,
  moment: Moment,
): Promise<{ readonly position: LogPosition } | { readonly refused: Refusal }> {
  if ('at' in moment) return logAsOf(context, accountId, moment.at, entity.position);
  await context.readModels.accountLogCaughtUp(entity.position);
  const event = 'event' in moment ? moment.event : moment.beforeEvent;
  const place = await context.readModels.entryPlaceOf(accountId, event);
  if (place === null || place.stream !== streamName('repository', id)) return refuse({ code: 'event-not-found' });
  return { position: 'event' in moment ? place.position : positionBefore(place.position) };
}

/** Positions have gaps, so no event need be there. */
export function positionBefore(position: LogPosition): LogPosition {
  return logPosition(position - 1n);
}

function logPosition(position: bigint): LogPosition {
  return position as LogPosition;
}
