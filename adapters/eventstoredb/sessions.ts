/**
 * The one EventStoreDB client of the process, opened when first needed and replaced when it hangs.
 *
 * Invariants: `open` resolves only after the server has answered, so a call that fails before that was never sent;
 * every call on a session ends, by its own timer or with the session; nobody waits for a client that was given up.
 */
import { BACKWARDS, END, NotLeaderError } from '@eventstore/db-client';
import pRetry from 'p-retry';
import { EventStoreError } from '../../core/ports/event-store.ts';
import { AbandonableClient } from './client.ts';
import type { EventStoreDbConnection } from './connection.ts';
import { NoAnswerError } from './failures.ts';
import type { Outages } from './outages.ts';
import { type SilenceWatch, watchForSilence } from './silence.ts';

/**
 * The time for a new client doubles up to this, with every second one that got no answer. Internal: it is the pace of
 * attempts.
 */
const CONNECT_SPAN_MS_MAX = 5_000;
/** How often a new client asks whether its server leads. Internal: no caller can move the leader of the event log. */
const LEADER_MOVES_MAX = 5;

const LEADER_MOVE_MS = 20;

export interface Session {
  readonly client: AbandonableClient;
  /** Aborted when the client was given up. */
  readonly ended: AbortSignal;
  /** When the server last answered this client, by performance.now(). */
  lastAnswerMs: number;
  /** A call begins to wait for its answer. Returns what ends that. A silent server ends the session before that. */
  readonly waits: () => () => void;
}

export interface Sessions {
  /** Resolves with the connected session. Throws what `failureOf` calls an outage or a refusal. */
  open(): Promise<Session>;
  /** Gives up the session's client; the next `open` makes another. Its unfinished calls fail with `NoAnswerError`. */
  discard(session: Session, why: string): void;
  /** Gives up the client; `open` throws from then on. */
  close(): void;
}

export interface SessionsOptions {
  readonly connection: EventStoreDbConnection;
  readonly outages: Outages;
  /** How long the server may take to answer a new client; longer after each client that got no answer. */
  readonly connectSpanMs: number;
  /** How long nothing may be answered to calls that wait before the server is asked whether it lives. */
  readonly quietMs: number;
  /** How long it may take to answer that. */
  readonly askSpanMs: number;
}

interface OpenSession extends Session {
  readonly end: AbortController;
  silence: SilenceWatch | null;
}

export function createSessions({ connection, outages, connectSpanMs, quietMs, askSpanMs }: SessionsOptions): Sessions {
  let current: Promise<OpenSession> | null = null;
  let closed = false;
  /** How many clients in a row got no answer. */
  let unanswered = 0;

  async function connect(): Promise<OpenSession> {
    const session = newSession(connection);
    const { client } = session;
    try {
      const spanMs = Math.min(connectSpanMs * 2 ** Math.floor(unanswered / 2), CONNECT_SPAN_MS_MAX);
      await answerWithin(session, spanMs, findLeader(client));
      unanswered = 0;
      outages.reached();
      client.whenLost(() => discard(session, 'the connection was lost, or the leader has moved'));
      session.silence = watchForSilence({
        quietMs,
        lastAnswerMs: () => session.lastAnswerMs,
        ask: () => answersWithin(session, askSpanMs),
        onSilent: () => discard(session, 'it has fallen silent'),
      });
      return session;
    } catch (error) {
      if (error instanceof NoAnswerError) unanswered += 1;
      cut(session);
      throw error;
    }
  }

  function open(): Promise<OpenSession> {
    if (closed) throw new EventStoreError('log-unavailable', 'The event log was closed');
    if (current !== null) return current;
    const opening = connect().then(
      (session) => {
        if (current !== opening) cut(session);
        return session;
      },
      (error: unknown) => {
        if (current === opening) current = null;
        throw error;
      },
    );
    current = opening;
    return opening;
  }

  function discard(session: OpenSession, why: string): void {
    if (session.ended.aborted) return;
    outages.lost(session, { why }, 'Connecting to EventStoreDB again');
    current = null;
    cut(session);
  }

  return {
    open: async () => open(),
    discard: (session, why) => discard(session as OpenSession, why),
    close: () => {
      closed = true;
      const last = current;
      current = null;
      // It may still be connecting; a failure of that is reported to the callers of `open`.
      last?.then(cut, () => undefined);
    },
  };
}

/** Ends the session's calls, and its client. */
function cut(session: OpenSession): void {
  session.silence?.end();
  session.end.abort();
  session.client.abandon();
}

function newSession(connection: EventStoreDbConnection): OpenSession {
  const end = new AbortController();
  const session: OpenSession = {
    client: new AbandonableClient(connection),
    end,
    ended: end.signal,
    lastAnswerMs: performance.now(),
    silence: null,
    waits: () => session.silence?.waits() ?? (() => undefined),
  };
  return session;
}

/** A follower answers with the leader's address, and the client reconnects there: each new client repeats this. */
async function findLeader(client: AbandonableClient): Promise<void> {
  await pRetry(() => probe(client), {
    retries: LEADER_MOVES_MAX - 1,
    minTimeout: LEADER_MOVE_MS,
    factor: 1,
    shouldRetry: ({ error }) => error instanceof NotLeaderError,
  });
}

/** Checks that the server answers, and takes batches of appends. */
async function probe(client: AbandonableClient): Promise<void> {
  await readLast(client);
  if (!(await client.canBatch())) {
    throw new EventStoreError('log-unavailable', 'This EventStoreDB takes no batches of appends: it is before 22.6');
  }
}

/** Whether the server answers anything in time, be it a refusal. */
async function answersWithin(session: Session, spanMs: number): Promise<boolean> {
  try {
    await answerWithin(session, spanMs, readLast(session.client));
    return true;
  } catch (error) {
    return !(error instanceof NoAnswerError);
  }
}

/** Reads one event of the whole log, which Strata must be allowed to do anyway. */
async function readLast(client: AbandonableClient): Promise<void> {
  const read = client.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 1, requiresLeader: true });
  // Without a listener, an error after the end of the iteration would be thrown where nobody can catch it.
  read.on('error', () => undefined);
  for await (const _event of read) break;
}

/**
 * Settles as the call does, or rejects with `NoAnswerError` after `spanMs` or when the session ends. The call itself
 * goes on: the client has no way to cancel it.
 */
export function answerWithin<T>(session: Session, spanMs: number, call: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (why: string) => () => {
      settle();
      reject(new NoAnswerError(why));
    };
    const late = giveUp(`EventStoreDB gave no answer in ${spanMs} ms`);
    const ended = giveUp('The connection to EventStoreDB was given up');
    const timer = setTimeout(late, spanMs);
    const stopWaiting = session.waits();
    const settle = (): void => {
      clearTimeout(timer);
      stopWaiting();
      session.ended.removeEventListener('abort', ended);
    };
    session.ended.addEventListener('abort', ended);
    if (session.ended.aborted) ended();
    call.then(
      (value) => {
        settle();
        session.lastAnswerMs = performance.now();
        resolve(value);
      },
      (error: unknown) => {
        settle();
        reject(error);
      },
    );
  });
}
