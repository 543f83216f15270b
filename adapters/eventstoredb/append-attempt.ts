/**
 * One attempt to append to EventStoreDB: reads the guards, sends the events, and finds out what a refusal means.
 *
 * Invariants:
 * - a retry carries the same event ids and the same expected revision, so the server recognises it;
 * - the server compares event ids only, so the content of events that were stored before is compared here;
 * - each attempt reads the guards first, and sends nothing later than `GUARD_AGE_MS_MAX` after it began to read them
 *   (docs/architecture.md, Guards): when a guard's stream moves, only an append that is already sent may still land;
 * - the deadline of the append is asked last before it is handed to the client.
 */
import { MaxAppendSizeExceededError, StreamDeletedError, WrongExpectedVersionError } from '@eventstore/db-client';
import { AbortError } from 'p-retry';
import { LOG_START, type LogPosition } from '../../core/kernel/envelope.ts';
import { canonicalJson } from '../../core/kernel/json.ts';
import { APPEND_SIZE_BYTES_MAX } from '../../core/kernel/limits.ts';
import { tooLate } from '../../core/ports/append-check.ts';
import {
  type AppendRequest,
  type AppendResult,
  EventStoreError,
  type ExpectedRevision,
  type StreamGuard,
} from '../../core/ports/event-store.ts';
import { type ProposedEvent, toLogPosition } from './event-form.ts';
import { failureOf, NoAnswerError, refusalOf } from './failures.ts';
import type { LogReader } from './log-reader.ts';
import { answerWithin, type Session, type Sessions } from './sessions.ts';

/**
 * How long ago the guards of an append may have been read when it is sent. Internal: an attempt with older guards is
 * repeated.
 */
const GUARD_AGE_MS_MAX = 2_000;

/** An append whose caller waits for its result. */
export interface PendingAppend {
  readonly request: AppendRequest;
  readonly proposed: readonly ProposedEvent[];
  /** The last position this process knew of before the append: an event at or before it was not written by it. */
  readonly knownBefore: LogPosition;
  /** By performance.now(): no attempt starts later. */
  readonly deadlineMs: number;
  /** True after an attempt got no answer: it may have landed, or may still land. */
  outcomeUnknown: boolean;
}

export interface AppendAttemptOptions {
  readonly sessions: Sessions;
  readonly reader: LogReader;
  /** How long an attempt may take before its outcome counts as unknown. */
  readonly attemptSpanMs: number;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number;
}

interface MovedGuard {
  readonly guard: StreamGuard;
  readonly actual: ExpectedRevision;
}

export class AppendAttempts {
  readonly #sessions: Sessions;
  readonly #reader: LogReader;
  readonly #attemptSpanMs: number;
  readonly #nowMs: () => number;

  constructor({ sessions, reader, attemptSpanMs, nowMs }: AppendAttemptOptions) {
    this.#sessions = sessions;
    this.#reader = reader;
    this.#attemptSpanMs = attemptSpanMs;
    this.#nowMs = nowMs;
  }

  /** Throws what `failureOf` calls an outage when the append should be attempted again. */
  async attempt(append: PendingAppend): Promise<AppendResult> {
    // While the server hangs, this fails all queued appends together instead of one attempt span after another.
    if (performance.now() > append.deadlineMs) throw new NoAnswerError('It waited too long for its turn');
    const session = await this.#sessions.open();
    const { guards = [] } = append.request;
    const guardsReadMs = this.#nowMs();
    const moved = await this.#movedGuard(session, guards);
    if (moved !== null) return this.#guardMoved(session, append, moved);
    if (guards.length > 0 && this.#nowMs() - guardsReadMs > GUARD_AGE_MS_MAX) {
      throw new NoAnswerError('The guards were read too long ago');
    }
    if (append.request.isTooLate?.() === true) {
      const late = tooLate(append.request);
      throw new AbortError(append.outcomeUnknown ? outcomeUnknown(append, late) : late);
    }
    return this.#send(session, append);
  }

  async #send(session: Session, append: PendingAppend): Promise<AppendResult> {
    const { stream, expected } = append.request;
    const expectedRevision = expected === 'none' ? 'no_stream' : BigInt(expected);
    try {
      const call = session.client.appendToStream(stream, [...append.proposed], {
        expectedRevision,
        requiresLeader: true,
      });
      const { nextExpectedRevision, position } = await answerWithin(session, this.#attemptSpanMs, call);
      const reached = position === undefined ? LOG_START : toLogPosition(position.commit);
      // The events may have been stored before this append: the server then compared their ids only.
      if (reached <= append.knownBefore) return await this.#compareStored(session, append);
      return { outcome: 'appended', revision: Number(nextExpectedRevision), position: reached };
    } catch (error) {
      if (error instanceof WrongExpectedVersionError) return conflictOf(append, error);
      // It was pruned. A stream cannot begin a second time, so that is no conflict for who expects none.
      if (error instanceof StreamDeletedError && expected !== 'none')
        return { outcome: 'conflict', stream, actual: 'none' };
      if (error instanceof MaxAppendSizeExceededError) {
        throw new AbortError(tooLarge('This EventStoreDB takes smaller appends only', error));
      }
      if (failureOf(error) === 'outage') append.outcomeUnknown = true;
      // The client keeps using a stream of appends that the server has ended: later appends would get no answer either.
      if (error instanceof NoAnswerError) this.#sessions.discard(session, 'an append got no answer');
      throw error;
    }
  }

  /** The first guard whose stream is not at the guard's revision; null when all are. */
  async #movedGuard(session: Session, guards: readonly StreamGuard[]): Promise<MovedGuard | null> {
    const revisions = await Promise.all(
      guards.map(async (guard) => ({ guard, actual: await this.#reader.revisionOf(session, guard.stream) })),
    );
    return revisions.find(({ guard, actual }) => actual !== guard.revision) ?? null;
  }

  async #guardMoved(session: Session, append: PendingAppend, moved: MovedGuard): Promise<AppendResult> {
    const found = await this.#findStored(session, append);
    if (found !== null) return found;
    // An earlier attempt may still land, so a conflict could be wrong.
    if (append.outcomeUnknown) throw new AbortError(appendFailure(append, new Error('A guard moved')));
    return { outcome: 'conflict', stream: moved.guard.stream, actual: moved.actual };
  }

  /** For events whose ids the server found at their revisions: a conflict unless their content is as requested. */
  async #compareStored(session: Session, append: PendingAppend): Promise<AppendResult> {
    const { stream } = append.request;
    const found = await this.#findStored(session, append);
    return found ?? { outcome: 'conflict', stream, actual: await this.#reader.revisionOf(session, stream) };
  }

  /** The result of this very append if the log holds its events with the same content, else null. */
  async #findStored(session: Session, { request }: PendingAppend): Promise<AppendResult | null> {
    const { stream, expected, events } = request;
    const from = expected === 'none' ? 0 : expected + 1;
    const range = { direction: 'forwards', from, limit: events.length } as const;
    const stored = await this.#reader.readStream(session, stream, range);
    const last = stored[events.length - 1];
    if (last === undefined) return null;
    for (const [index, event] of events.entries()) {
      const recorded = stored[index];
      if (recorded === undefined || contentOf(recorded) !== contentOf(event)) return null;
    }
    return { outcome: 'appended', revision: last.revision, position: last.position };
  }
}

function conflictOf({ request }: PendingAppend, { actualVersion }: WrongExpectedVersionError): AppendResult {
  const actual = typeof actualVersion === 'bigint' ? Number(actualVersion) : 'none';
  return { outcome: 'conflict', stream: request.stream, actual };
}

/** Everything an appender decides of an event, as canonical JSON. */
function contentOf(event: AppendRequest['events'][number]): string {
  const { id, type, version, accountId, occurredAt, requestId, sourceAddressRef, causationId, isRecord, data } = event;
  const actor = { kind: event.actor.kind, id: event.actor.id };
  const envelope = { id, type, version, accountId, occurredAt, actor, requestId, sourceAddressRef, causationId };
  return canonicalJson({ ...envelope, isRecord, data });
}

export function tooLarge(what: string, cause?: unknown): EventStoreError {
  return new EventStoreError('append-too-large', `${what}; it must stay below ${APPEND_SIZE_BYTES_MAX}`, { cause });
}

/** The error that the caller of an append gets after the last attempt failed with `cause`. */
export function appendFailure(append: PendingAppend, cause: unknown): EventStoreError {
  if (cause instanceof EventStoreError) return cause;
  const { stream } = append.request;
  if (append.outcomeUnknown) return outcomeUnknown(append, cause);
  // It reads the streams of its guards as well.
  const why = refusalOf(cause, 'read and write streams') ?? `EventStoreDB did not take an append to ${stream}`;
  return new EventStoreError('log-unavailable', why, { cause });
}

function outcomeUnknown({ request: { stream } }: PendingAppend, cause: unknown): EventStoreError {
  return new EventStoreError('append-outcome-unknown', `An append to ${stream} got no answer`, { cause });
}
