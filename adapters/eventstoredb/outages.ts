/**
 * Says in one line that EventStoreDB is lost to this process, however many subscriptions notice it.
 *
 * Invariants: a client that is given up has one line, and so has a span in which none can be opened. Subscriptions that
 * break while their client goes on have one line for each client, since they may break again and again.
 */
import type { Log } from '../../core/ports/log.ts';

type Fields = Readonly<Record<string, unknown>>;

export interface Outages {
  /** The client was given up. */
  lost(client: object, fields: Fields, message: string): void;
  /** A subscription broke. `client` is what it used; null: none could be opened. */
  broke(client: object | null, fields: Fields, message: string): void;
  /** A new client got an answer. */
  reached(): void;
}

/** A client is given up this soon after its subscriptions broke, if that is one outage. */
const ONE_OUTAGE_MS = 5_000;

export function createOutages(log: Log, nowMs: () => number = () => performance.now()): Outages {
  let isAway = false;
  const toldMs = new WeakMap<object, number>();
  const tell = (client: object, fields: Fields, message: string): void => {
    toldMs.set(client, nowMs());
    log.warn(fields, message);
  };
  return {
    lost: (client, fields, message) => {
      isAway = true;
      if (nowMs() - (toldMs.get(client) ?? -Infinity) > ONE_OUTAGE_MS) tell(client, fields, message);
    },
    broke: (client, fields, message) => {
      if (client !== null) {
        if (!toldMs.has(client)) tell(client, fields, message);
      } else if (!isAway) {
        isAway = true;
        log.warn(fields, message);
      }
    },
    reached: () => {
      isAway = false;
    },
  };
}
