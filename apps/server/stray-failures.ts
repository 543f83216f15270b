/**
 * Failures that nobody caught: rejected promises without a handler, and exceptions thrown in a callback.
 *
 * A rejection in the work for a request fails that request alone: nothing else waits for its promise. Without a request
 * it may have ended a loop that the service lives by, so the process ends in order, and whoever started it starts it
 * again; but for a client that left, or work that was called off, which is what such a rejection says. After an
 * exception the state of the process is unknown (Node's documentation of `uncaughtException`), so it ends too.
 *
 * Invariants: no failure passes without a line in the log and a count. The line has no value that was rejected which
 * is no Error. A request that is over is not kept in memory by what it started.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import type { Log } from '../../core/ports/log.ts';
import type { StrayKind } from './run-record.ts';

interface Exchange {
  /** Null once the response is closed. */
  response: ServerResponse | null;
}

export interface StrayFailuresOptions {
  readonly log: Log & { fatal(fields: object, message: string): void };
  readonly count: (kind: StrayKind) => void;
  /** Ends the process in order. */
  readonly end: (reason: 'uncaught-exception' | 'unhandled-rejection') => void;
}

interface Emitter {
  on(event: 'unhandledRejection' | 'uncaughtException', listener: (cause: unknown) => void): unknown;
}

const exchanges = new AsyncLocalStorage<Exchange>();

/** Calls `handle`, so that rejections in all the work that it starts are known to be this request's. */
export function withinRequest(response: ServerResponse, handle: () => void): void {
  const exchange: Exchange = { response };
  response.once('close', () => {
    exchange.response = null;
  });
  exchanges.run(exchange, handle);
}

/** Takes the failures of the process from now on. */
export function takeStrayFailures({ log, count, end }: StrayFailuresOptions, emitter: Emitter = process): void {
  emitter.on('unhandledRejection', (cause) => {
    count('rejection');
    const exchange = exchanges.getStore();
    if (exchange !== undefined) {
      log.error({ err: cause }, 'A promise was rejected and nobody handled it: the request fails');
      exchange.response?.destroy();
    } else if (isCalledOff(cause)) {
      log.error({ err: cause }, 'A promise was rejected and nobody handled it: its work was called off');
    } else {
      log.fatal({ err: cause }, 'A promise was rejected and nobody handled it: the process ends');
      end('unhandled-rejection');
    }
  });
  emitter.on('uncaughtException', (cause) => {
    count('exception');
    log.fatal({ err: cause }, 'An exception was not caught: the process ends');
    end('uncaught-exception');
  });
}

/** The codes of a connection or stream that ended while somebody used it. */
const CALLED_OFF =
  /^(ABORT_ERR|ECONNRESET|ECONNABORTED|EPIPE|ERR_STREAM_\w+|ERR_HTTP_\w+|UND_ERR_(ABORTED|SOCKET|DESTROYED))$/;

function isCalledOff(cause: unknown): boolean {
  if (!(cause instanceof Error)) return false;
  return (
    cause.name === 'AbortError' || ('code' in cause && typeof cause.code === 'string' && CALLED_OFF.test(cause.code))
  );
}
