/** Rate limits in memory, on a test's clock. Nodes of one test that are to share them share the object. */
import type { Clock } from '../../../core/ports/clock.ts';
import type { RateCount, RateLimits } from '../../../core/ports/rate-limits.ts';

interface Row {
  points: number;
  readonly expiresMs: number;
}

export function createMemoryRateLimits(clock: Pick<Clock, 'monotonicMs'>): RateLimits {
  const rows = new Map<string, Row>();
  const rowOf = ({ limit, key }: RateCount): Row => {
    const name = `${limit.name}:${key}`;
    const known = rows.get(name);
    if (known !== undefined && known.expiresMs > clock.monotonicMs()) return known;
    const row = { points: 0, expiresMs: clock.monotonicMs() + limit.spanMs };
    rows.set(name, row);
    return row;
  };
  return {
    take: async (counts) => {
      for (const count of counts) {
        const row = rowOf(count);
        if (row.points < count.limit.timesMax) continue;
        return Math.max(1, Math.ceil((row.expiresMs - clock.monotonicMs()) / 1_000));
      }
      for (const count of counts) rowOf(count).points += 1;
      return null;
    },
    giveBack: async (counts) => {
      for (const count of counts) rowOf(count).points = Math.max(0, rowOf(count).points - 1);
    },
  };
}
