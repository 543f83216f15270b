/**
 * Whether an account has room for more deliveries that have not ended.
 *
 * Invariants: it never says yes when the account has more than the bound. What it counts itself is at least what is
 * pending; it reads the read model only when that count reaches the bound, or for an account that it does not know.
 */
import { LOG_START, type LogPosition } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import { type CacheSize, showCache } from '../../kernel/shown-caches.ts';
import type { PendingDeliveries } from '../../ports/due-deliveries.ts';

export interface PendingRoom {
  hasRoom(account: AccountId, count: number): Promise<boolean>;
  /** Whether enough have ended that pushes which waited may go on. */
  mayResume(account: AccountId): Promise<boolean>;
  /** Counts deliveries that were requested, the last at the position. */
  requested(account: AccountId, count: number, position: LogPosition): void;
}

export interface PendingBounds {
  readonly pendingMax: number;
  /** At most `pendingMax`. */
  readonly resumed: number;
}

/**
 * Deliveries of one account that were requested and have not ended. With this many its pushes are expanded no further,
 * until the second number of them is left.
 */
export const WEBHOOK_PENDING_DELIVERIES_MAX = 100_000;
export const WEBHOOK_PENDING_DELIVERIES_RESUMED = 90_000;

export const PENDING_BOUNDS: PendingBounds = {
  pendingMax: WEBHOOK_PENDING_DELIVERIES_MAX,
  resumed: WEBHOOK_PENDING_DELIVERIES_RESUMED,
};

/** Accounts whose count is known; others are read again. Internal: what is not kept is read again. */
const KNOWN_ACCOUNTS_MAX = 10_000;

interface Known {
  pending: number;
  /** The read model must have reached it before it is asked again. */
  position: LogPosition;
}

export function createPendingRoom(due: PendingDeliveries, { pendingMax, resumed }: PendingBounds): PendingRoom {
  const accounts = new Map<AccountId, Known>();
  const looks = showCache('pending_deliveries', 'entries', accounts, sizeOf);

  async function read(account: AccountId): Promise<Known> {
    const position = accounts.get(account)?.position ?? LOG_START;
    await due.deliveriesCaughtUp(position);
    const known = { pending: await due.pendingOfAccount(account, pendingMax), position };
    accounts.delete(account);
    accounts.set(account, known);
    const [oldest] = accounts.keys();
    if (accounts.size > KNOWN_ACCOUNTS_MAX && oldest !== undefined) accounts.delete(oldest);
    return known;
  }

  return {
    async hasRoom(account, count) {
      const counted = accounts.get(account);
      if (counted === undefined) looks.misses += 1;
      else looks.hits += 1;
      const known = counted ?? (await read(account));
      if (known.pending + count <= pendingMax) return true;
      return (await read(account)).pending + count <= pendingMax;
    },
    async mayResume(account) {
      return (await read(account)).pending <= resumed;
    },
    requested(account, count, position) {
      const known = accounts.get(account);
      if (known === undefined) return;
      known.pending += count;
      if (position > known.position) known.position = position;
    },
  };
}

function sizeOf({ size }: ReadonlyMap<AccountId, Known>): CacheSize {
  return { taken: size, max: KNOWN_ACCOUNTS_MAX };
}
