/**
 * Events as a subscription passes them: those to deliver, and those that only move its position.
 *
 * Must stay true: every event that has a position is passed, whoever wrote it, since any may be the head.
 */
import { categoryOf, type LogPosition, type RecordedEvent } from '../../core/kernel/envelope.ts';
import type { Log } from '../../core/ports/log.ts';
import { isSystemStream, positionOf, type ReceivedEvent, toRecorded } from './event-form.ts';

/** What a subscriber is handed at once, at most. */
export const BATCH_EVENTS_MAX = 1_000;

export interface Passed {
  readonly position: LogPosition;
  /** Null for one that is not Strata's. */
  readonly event: RecordedEvent | null;
  /** The size of its data, near enough: only large events matter. */
  readonly sizeBytes: number;
}

/** The log is Strata's alone: an event that somebody else wrote is nothing of the record, and worth a line. */
export function toPassed(received: ReceivedEvent, log: Log): Passed {
  const position = positionOf(received);
  if (isSystemStream(received.streamId)) return { position, event: null, sizeBytes: 0 };
  const event = toRecorded(received);
  if (event !== null) return { position, event, sizeBytes: JSON.stringify(event.data).length };
  const { streamId: stream, revision } = received;
  log.warn({ stream, revision: String(revision) }, 'Passed over an event that Strata did not write');
  return { position, event: null, sizeBytes: 0 };
}

/** The events of some categories, or of all. */
export function wantedOf(passed: readonly Passed[], categories: ReadonlySet<string> | null): readonly RecordedEvent[] {
  const wanted: RecordedEvent[] = [];
  for (const { event } of passed) {
    if (event !== null && (categories === null || categories.has(categoryOf(event.stream)))) wanted.push(event);
  }
  return wanted;
}

/** The last event of Strata's: the log keeps those for ever, unlike the server's own. */
export function lastRecordedOf(passed: readonly Passed[]): RecordedEvent | null {
  return passed.findLast(({ event }) => event !== null)?.event ?? null;
}
