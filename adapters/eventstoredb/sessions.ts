/**
 * The one client of the process, opened when first needed and replaced when it hangs.
 *
 * Must stay true: a session is handed out only after its server has answered, so what fails before was never sent;
 * every call on it ends, by its own timer or with the session; nobody waits for a given-up client.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { BACKWARDS, END, NotLeaderError } from '@eventstore/db-client';
import { EventStoreError } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import { AbandonableClient } from './client.ts';
import type { EventStoreDbConnection } from './connection.ts';
import { NoAnswerError } from './failures.ts';

const LEADER_MOVES_MAX = 5;
const LEADER_MOVE_MS = 20;

export interface Session {
  readonly client: AbandonableClient;
  /** Aborted when the client was given up. */
  readonly ended: AbortSignal;
  /** When it was last heard of, by performance.now(). */
  heardMs: number;
}

export interface Sessions {
  /** The session, connected. Throws what `failureOf` calls an outage, or a refusal. */
  open(): Promise<Session>;
  /** Gives its client up; the next `open` makes another. Calls under way end with `NoAnswerError`. */
  discard(session: Session, why: string): void;
  /** Gives the client up for good. */
  close(): void;
}

export interface SessionsOptions {
  readonly connection: EventStoreDbConnection;
  readonly log: Log;
  /** How long a new client may take to be answered. */
  readonly connectSpanMs: number;
}

interface OpenSession extends Session {
  readonly end: AbortController;
}

export function createSessions({ connection, log, connectSpanMs }: SessionsOptions): Sessions {
  let current: Promise<OpenSession> | null = null;
  let closed = false;

  async function connect(): Promise<OpenSession> {
    const end = new AbortController();
    const client = new AbandonableClient(connection);
    const session: OpenSession = { client, end, ended: end.signal, heardMs: performance.now() };
    try {
      await within(session, connectSpanMs, findLeader(client));
      session.heardMs = performance.now();
      return session;
    } catch (error) {
      cut(session);
      throw error;
    }
  }

  function cut(session: OpenSession): void {
    session.end.abort();
    session.client.abandon();
  }

  function open(): Promise<OpenSession> {
    if (closed) throw new EventStoreError('log-unavailable', 'The event log was closed');
    if (current !== null) return current;
    const mine = connect().then(
      (session) => {
        if (current !== mine) cut(session);
        return session;
      },
      (error: unknown) => {
        if (current === mine) current = null;
        throw error;
      },
    );
    current = mine;
    return mine;
  }

  return {
    open: async () => open(),
    discard: (session, why) => {
      if (session.ended.aborted) return;
      log.warn({ why }, 'Connecting to EventStoreDB anew');
      current = null;
      cut(session as OpenSession);
    },
    close: () => {
      closed = true;
      const last = current;
      current = null;
      // It may still be connecting; that it failed is said to whoever waits for it.
      last?.then(cut, () => undefined);
    },
  };
}

/** A node that does not lead says who does, and the client goes there by itself, but only this client. */
async function findLeader(client: AbandonableClient): Promise<void> {
  for (let move = 1; ; move += 1) {
    try {
      await probe(client);
      return;
    } catch (error) {
      if (!(error instanceof NotLeaderError) || move === LEADER_MOVES_MAX) throw error;
      await sleep(LEADER_MOVE_MS);
    }
  }
}

/** Any answer will do for a sign of life; that it may read the whole log is needed anyway. */
async function probe(client: AbandonableClient): Promise<void> {
  const read = client.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 1, requiresLeader: true });
  // One that comes after the iteration has ended would be thrown where nobody can catch it.
  read.on('error', () => undefined);
  for await (const _event of read) break;
  if (!(await client.canBatch())) {
    throw new EventStoreError('log-unavailable', 'This EventStoreDB takes no batches of appends: it is before 22.6');
  }
}

/**
 * The outcome of a call, or `NoAnswerError` when there is none in its time or the session ends before. The call
 * itself goes on: the client cannot be stopped, only left.
 */
export function within<T>(session: Session, spanMs: number, call: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (why: string) => () => {
      settle();
      reject(new NoAnswerError(why));
    };
    const late = giveUp(`EventStoreDB gave no answer in ${spanMs} ms`);
    const ended = giveUp('The connection to EventStoreDB was given up');
    const timer = setTimeout(late, spanMs);
    const settle = (): void => {
      clearTimeout(timer);
      session.ended.removeEventListener('abort', ended);
    };
    session.ended.addEventListener('abort', ended);
    if (session.ended.aborted) ended();
    call.then(
      (value) => {
        settle();
        session.heardMs = performance.now();
        resolve(value);
      },
      (error: unknown) => {
        settle();
        reject(error);
      },
    );
  });
}
