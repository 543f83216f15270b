/**
 * Appends to EventStoreDB, retried until their outcome is known or their time is over.
 *
 * Must stay true:
 * - a retry carries the same event ids and the same expectation, which the server recognises;
 * - the server recognises ids alone, so what was there before is compared with what was asked for;
 * - guards are read right before each attempt, and no attempt starts later than `GUARD_AGE_MS_MAX` after that
 *   (architecture, Guards): only an append already under way when a guard moved may land;
 * - `append-outcome-unknown` is said whenever an attempt may have landed, and only then.
 */
import { MaxAppendSizeExceededError, WrongExpectedVersionError } from '@eventstore/db-client';
import pRetry, { AbortError } from 'p-retry';
import { LOG_START, type LogPosition } from '../../core/kernel/envelope.ts';
import { canonicalJson } from '../../core/kernel/json.ts';
import { APPEND_SIZE_BYTES_MAX } from '../../core/kernel/limits.ts';
import { createTurns } from '../../core/kernel/concurrency-limit.ts';
import { checkAppend } from '../../core/ports/append-check.ts';
import {
  type AppendRequest,
  type AppendResult,
  EventStoreError,
  type ExpectedRevision,
  type StreamGuard,
} from '../../core/ports/event-store.ts';
import { type ProposedEvent, storedBytes, toLogPosition, toProposed } from './event-form.ts';
import { failureOf, isRaw, NoAnswerError } from './failures.ts';
import type { LogReader } from './log-reader.ts';
import { type Session, type Sessions, within } from './sessions.ts';

/**
 * The client's stream of appends holds 16 messages. Beyond, it queues them where an error of the stream rejects them
 * with nobody to catch it, which ends the process: so fewer are under way at a time.
 */
const APPENDS_UNDER_WAY_MAX = 15;
/** Beyond this the server is too slow for its callers; more waiting would only use up memory. */
const WAITING_APPENDS_MAX = 10_000;
const RETRY_DELAY_MS_MIN = 20;
const RETRY_DELAY_MS_MAX = 1_000;
const GUARD_AGE_MS_MAX = 2_000;

export interface AppenderOptions {
  readonly sessions: Sessions;
  readonly reader: LogReader;
  /** How long an attempt may take before its outcome counts as unknown. */
  readonly attemptSpanMs: number;
  /** How long an append is retried before its caller is told. */
  readonly retrySpanMs: number;
  /** The last position of the log that this process knows of. */
  readonly known: () => LogPosition;
  readonly learn: (position: LogPosition) => void;
  /** By a clock that does not jump, in milliseconds. */
  readonly nowMs: () => number;
}

export interface Appender {
  append(request: AppendRequest): Promise<AppendResult>;
  /** Refuses new appends and resolves when those under way were answered. */
  close(): Promise<void>;
}

interface Append {
  readonly request: AppendRequest;
  readonly proposed: readonly ProposedEvent[];
  /** What the log was known to reach when the append came: what stands there is no work of this append. */
  readonly knownBefore: LogPosition;
  /** By performance.now(): no attempt starts later. */
  readonly giveUpMs: number;
  /** An attempt got no answer, and may have landed or still land. */
  outcomeUnknown: boolean;
}

export function createAppender(options: AppenderOptions): Appender {
  const { sessions, reader, attemptSpanMs, retrySpanMs, known, learn, nowMs } = options;
  const inTurn = createTurns(APPENDS_UNDER_WAY_MAX);
  const underWay = new Set<Promise<unknown>>();
  let closed = false;

  async function append(request: AppendRequest): Promise<AppendResult> {
    const { dataTexts } = checkAppend(request);
    if (closed) throw new EventStoreError('log-unavailable', 'The event log was closed');
    if (underWay.size >= WAITING_APPENDS_MAX) {
      throw new EventStoreError('log-unavailable', `${underWay.size} appends are waiting already`);
    }
    const storedSize = request.events.reduce((sum, event, n) => sum + storedBytes(event, dataTexts[n] ?? ''), 0);
    if (storedSize > APPEND_SIZE_BYTES_MAX) throw tooLarge(`An append of ${storedSize} bytes in EventStoreDB`);
    const proposed = request.events.map((event, n) => toProposed(event, dataTexts[n] ?? ''));
    const giveUpMs = performance.now() + retrySpanMs;
    const entry: Append = { request, proposed, knownBefore: known(), giveUpMs, outcomeUnknown: false };
    const answer = settle(entry);
    underWay.add(answer);
    const forget = (): boolean => underWay.delete(answer);
    answer.then(forget, forget);
    return answer;
  }

  async function settle(entry: Append): Promise<AppendResult> {
    try {
      const result = await pRetry(() => inTurn(() => attempt(entry)), {
        retries: Number.POSITIVE_INFINITY,
        minTimeout: RETRY_DELAY_MS_MIN,
        maxTimeout: RETRY_DELAY_MS_MAX,
        maxRetryTime: retrySpanMs,
        shouldRetry: ({ error }) => failureOf(error) === 'outage',
      });
      if (result.outcome === 'appended') learn(result.position);
      return result;
    } catch (error) {
      if (failureOf(error) === 'other') throw error;
      throw failed(entry, error);
    }
  }

  async function attempt(entry: Append): Promise<AppendResult> {
    // While the server hangs, those that wait for a slot would be told one after the other.
    if (performance.now() > entry.giveUpMs) throw new NoAnswerError('It waited too long for its turn');
    const session = await sessions.open();
    const { guards = [] } = entry.request;
    const guardsReadMs = nowMs();
    const moved = await movedGuard(session, guards);
    if (moved !== null) return guardMoved(session, entry, moved);
    if (guards.length > 0 && nowMs() - guardsReadMs > GUARD_AGE_MS_MAX) {
      throw new NoAnswerError('The guards were read too long ago');
    }
    return send(session, entry);
  }

  async function send(session: Session, entry: Append): Promise<AppendResult> {
    const { stream, expected } = entry.request;
    const expectedRevision = expected === 'none' ? 'no_stream' : BigInt(expected);
    try {
      const call = session.client.appendToStream(stream, [...entry.proposed], {
        expectedRevision,
        requiresLeader: true,
      });
      const { nextExpectedRevision, position } = await within(session, attemptSpanMs, call);
      const reached = position === undefined ? LOG_START : toLogPosition(position.commit);
      // It may have been there before: then only its ids were compared.
      if (reached <= entry.knownBefore) return await foundAgain(session, entry);
      return { outcome: 'appended', revision: Number(nextExpectedRevision), position: reached };
    } catch (error) {
      if (error instanceof WrongExpectedVersionError) {
        const { actualVersion } = error;
        return {
          outcome: 'conflict',
          stream,
          actual: typeof actualVersion === 'bigint' ? Number(actualVersion) : 'none',
        };
      }
      if (error instanceof MaxAppendSizeExceededError) {
        throw new AbortError(tooLarge('This EventStoreDB takes smaller appends only', error));
      }
      if (failureOf(error) === 'outage') entry.outcomeUnknown = true;
      // A stream of appends that the server has left stays in the client, and takes every later append with it.
      if (error instanceof NoAnswerError || isRaw(error)) sessions.discard(session, 'an append got no answer');
      throw error;
    }
  }

  /** The first guard whose stream stands elsewhere. */
  async function movedGuard(
    session: Session,
    guards: readonly StreamGuard[],
  ): Promise<{ readonly guard: StreamGuard; readonly actual: ExpectedRevision } | null> {
    const seen = await Promise.all(
      guards.map(async (guard) => ({ guard, actual: await reader.revisionOf(session, guard.stream) })),
    );
    return seen.find(({ guard, actual }) => actual !== guard.revision) ?? null;
  }

  async function guardMoved(
    session: Session,
    entry: Append,
    moved: { readonly guard: StreamGuard; readonly actual: ExpectedRevision },
  ): Promise<AppendResult> {
    const found = await committed(session, entry);
    if (found !== null) return found;
    // It may still land: to say that it did not would be a guess.
    if (entry.outcomeUnknown) throw new AbortError(failed(entry, new Error('A guard moved meanwhile')));
    return { outcome: 'conflict', stream: moved.guard.stream, actual: moved.actual };
  }

  /** The server says that the ids stand at their places: is what stands there what was asked for? */
  async function foundAgain(session: Session, entry: Append): Promise<AppendResult> {
    const { stream } = entry.request;
    const found = await committed(session, entry);
    return found ?? { outcome: 'conflict', stream, actual: await reader.revisionOf(session, stream) };
  }

  /** The result of this very append, if it stands in the log. */
  async function committed(session: Session, { request }: Append): Promise<AppendResult | null> {
    const { stream, expected, events } = request;
    const from = expected === 'none' ? 0 : expected + 1;
    const there = await reader.readStream(session, stream, { direction: 'forwards', from, limit: events.length });
    const last = there.at(-1);
    if (last === undefined || there.length !== events.length) return null;
    for (const [index, event] of events.entries()) {
      const recorded = there[index];
      if (recorded === undefined || contentOf(recorded) !== contentOf(event)) return null;
    }
    return { outcome: 'appended', revision: last.revision, position: last.position };
  }

  return {
    append,
    close: async () => {
      closed = true;
      await Promise.allSettled(underWay);
    },
  };
}

function contentOf(event: AppendRequest['events'][number]): string {
  const { id, type, version, accountId, occurredAt, requestId, sourceAddressRef, causationId, data } = event;
  const actor = { kind: event.actor.kind, id: event.actor.id };
  const envelope = { id, type, version, accountId, occurredAt, actor, requestId, sourceAddressRef, causationId };
  return canonicalJson({ ...envelope, data });
}

function tooLarge(what: string, cause?: unknown): EventStoreError {
  return new EventStoreError('append-too-large', `${what}; it must stay below ${APPEND_SIZE_BYTES_MAX}`, { cause });
}

function failed({ request: { stream }, outcomeUnknown }: Append, cause: unknown): EventStoreError {
  if (cause instanceof EventStoreError) return cause;
  return outcomeUnknown
    ? new EventStoreError('append-outcome-unknown', `An append to ${stream} got no answer`, { cause })
    : new EventStoreError('log-unavailable', `EventStoreDB did not take an append to ${stream}`, { cause });
}
