/**
 * Whose requests are worked on: a bounded number of each account at the same time, its others in their order, before
 * they cost anything.
 *
 * Invariants: all accounts share the connections to the database, so the requests of one that wait for them never
 * stand before those of another by hundreds. A place is given back exactly once, and passes by who has left.
 */
import type { AccountId } from '../../core/kernel/ids.ts';

/**
 * Requests of the API of one account that a node works on at the same time; the others wait for their turn, holding
 * nothing.
 */
export const ACCOUNT_REQUESTS_WORKED_ON_MAX = 32;

export interface RequestTurn {
  /** Null if the request may begin immediately. */
  readonly waits: Promise<void> | null;
  /** To be called when the answer is made, or nobody waits for it. Later calls do nothing. */
  readonly end: () => void;
}

export interface RequestTurns {
  begin(account: AccountId): RequestTurn;
}

interface Lane {
  running: number;
  /** Each begins a request, or returns false if nobody waits for it any more. */
  readonly waiting: (() => boolean)[];
}

export function createRequestTurns(): RequestTurns {
  const lanes = new Map<AccountId, Lane>();
  const laneOf = (account: AccountId): Lane => {
    const lane = lanes.get(account) ?? { running: 0, waiting: [] };
    lanes.set(account, lane);
    return lane;
  };
  const giveBack = (account: AccountId, lane: Lane): void => {
    for (let next = lane.waiting.shift(); next !== undefined; next = lane.waiting.shift()) if (next()) return;
    lane.running -= 1;
    if (lane.running === 0) lanes.delete(account);
  };
  return {
    begin(account) {
      const lane = laneOf(account);
      let holds = lane.running < ACCOUNT_REQUESTS_WORKED_ON_MAX;
      let ended = false;
      let go: (() => void) | null = null;
      let waits: Promise<void> | null = null;
      if (holds) lane.running += 1;
      else {
        waits = new Promise((resolve) => {
          go = resolve;
        });
        lane.waiting.push(() => {
          if (ended) return false;
          holds = true;
          go?.();
          return true;
        });
      }
      const end = (): void => {
        if (ended) return;
        ended = true;
        if (holds) giveBack(account, lane);
        else go?.();
      };
      return { waits, end };
    },
  };
}
