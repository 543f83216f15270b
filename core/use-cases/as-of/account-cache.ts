/**
 * A cache of what is read for accounts, bounded in bytes: in all, and for each account.
 *
 * Invariants: an account that reads much makes others lose what they read only beyond the bound of all. The value
 * set last is kept, even if it alone is larger than a bound.
 */
import type { AccountId } from '../../kernel/ids.ts';
import { type OwnSize, ownSize, showCache } from '../../kernel/shown-caches.ts';

export interface KeptByAccount<Value> {
  get(account: AccountId, key: string): Value | undefined;
  set(account: AccountId, key: string, value: Value, sizeBytes: number): void;
  readonly sizeBytes: number;
}

interface Share<Value> {
  /** In the order of their last use, oldest first. */
  readonly values: Map<string, { readonly value: Value; readonly sizeBytes: number }>;
  sizeBytes: number;
}

/** The least that a value counts for: its entry in the maps, and its key. */
const ENTRY_BYTES = 1_000;

/** `name` is what the metrics call it. */
export function createKeptByAccount<Value>(
  name: string,
  bounds: { readonly sizeBytesMax: number; readonly accountSizeBytesMax: number },
): KeptByAccount<Value> {
  // In the order of their last use, oldest first.
  const shares = new Map<AccountId, Share<Value>>();
  const size: OwnSize = { taken: 0, max: bounds.sizeBytesMax };

  const remove = (account: AccountId, key: string): void => {
    const share = shares.get(account);
    const removed = share?.values.get(key);
    if (share === undefined || removed === undefined) return;
    share.values.delete(key);
    share.sizeBytes -= removed.sizeBytes;
    size.taken -= removed.sizeBytes;
    if (share.values.size === 0) shares.delete(account);
  };
  const removeOldest = (account: AccountId, { values }: Share<Value>): void => {
    for (const key of values.keys()) {
      remove(account, key);
      return;
    }
  };
  const used = (account: AccountId): Share<Value> => {
    const share = shares.get(account) ?? { values: new Map(), sizeBytes: 0 };
    shares.delete(account);
    shares.set(account, share);
    return share;
  };

  const looks = showCache(name, 'memory', size, ownSize);
  return {
    get(account, key) {
      const kept = shares.get(account)?.values.get(key);
      if (kept === undefined) {
        looks.misses += 1;
        return undefined;
      }
      looks.hits += 1;
      const { values } = used(account);
      values.delete(key);
      values.set(key, kept);
      return kept.value;
    },
    set(account, key, value, valueBytes) {
      const sizeBytes = valueBytes + ENTRY_BYTES;
      remove(account, key);
      const share = used(account);
      share.values.set(key, { value, sizeBytes });
      share.sizeBytes += sizeBytes;
      size.taken += sizeBytes;
      while (share.sizeBytes > bounds.accountSizeBytesMax && share.values.size > 1) removeOldest(account, share);
      for (const [other, its] of shares) {
        while (size.taken > bounds.sizeBytesMax && its.values.size > (other === account ? 1 : 0))
          removeOldest(other, its);
        if (size.taken <= bounds.sizeBytesMax) return;
      }
    },
    get sizeBytes() {
      return size.taken;
    },
  };
}
