/** The sums of rates that nodes tell each other, in memory (core/ports/rate-sums.ts). */
import type { RateSumsExchange } from '../../../core/ports/rate-sums.ts';

interface Told {
  readonly name: string;
  readonly span: number;
  readonly key: string;
  readonly node: string;
  readonly amount: number;
}

export function createMemoryRateSums(): RateSumsExchange & { told(): readonly Told[] } {
  const rows = new Map<string, Told>();
  return {
    told: () => [...rows.values()],
    async exchange(node, sums) {
      for (const { name, span, sums: own } of sums) {
        for (const { key, amount } of own) {
          rows.set(JSON.stringify([name, span, key, node]), { name, span, key, node, amount });
        }
      }
      return sums.map(({ name, span }) => {
        const byKey = new Map<string, number>();
        for (const row of rows.values()) {
          if (row.node === node || row.name !== name || row.span !== span) continue;
          byKey.set(row.key, (byKey.get(row.key) ?? 0) + row.amount);
        }
        return { name, span, sums: [...byKey].map(([key, amount]) => ({ key, amount })) };
      });
    },
  };
}
