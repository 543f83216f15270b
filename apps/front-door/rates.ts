/**
 * Rate limits, counted in this node's memory.
 *
 * Must stay true: memory is bounded, and the least recently used keys are evicted first. A refusal does not count, so
 * a caller that waits for the returned time is admitted.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/ports/clock.ts';

export interface Rate {
  /** Counts the call and returns null if it is within the limit, else returns the seconds to wait, 1 or more. */
  take(key: string): number | null;
}

export interface RateOptions {
  /** Calls within the span. */
  readonly timesMax: number;
  readonly spanMs: number;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

const KEYS_MAX = 100_000;

export function createRate({ timesMax, spanMs, clock }: RateOptions): Rate {
  const taken = new LRUCache<string, readonly number[]>({ max: KEYS_MAX });
  return {
    take(key) {
      const now = clock.monotonicMs();
      const recent = (taken.get(key) ?? []).filter((at) => now - at < spanMs);
      const [oldest] = recent;
      if (oldest !== undefined && recent.length >= timesMax) {
        return Math.max(1, Math.ceil((oldest + spanMs - now) / 1_000));
      }
      taken.set(key, [...recent, now]);
      return null;
    },
  };
}

/**
 * The key that an address is counted under: in IPv6 its network. One customer has all of a /64, and may have all of a
 * /48 (RFC 6177).
 */
export function rateKeyOf(address: string, ipv6Bits: 48 | 64 = 64): string {
  if (!address.includes(':')) return address;
  const [head = '', tail = null] = (address.split('%', 1)[0] ?? '').split('::');
  const first = groupsOf(head);
  const last = tail === null ? [] : groupsOf(tail);
  const zeros = Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => '0');
  const groups = [...first, ...zeros, ...last].slice(0, ipv6Bits / 16);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/${ipv6Bits}`;
}

function groupsOf(text: string): readonly string[] {
  return text === '' ? [] : text.split(':');
}
