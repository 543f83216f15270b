/** Refused exchanges in memory. */
import { type AccountId, plusMs } from '../../../core/kernel/ids.ts';
import { REFUSED_EXCHANGE_KEPT_MS, REFUSED_EXCHANGES_MAX } from '../../../core/kernel/limits.ts';
import type { CountedRefusal, RefusedExchanges } from '../../../core/ports/refused-exchanges.ts';

export function createMemoryRefusedExchanges(): RefusedExchanges {
  let rows: readonly (CountedRefusal & { readonly account: AccountId })[] = [];
  const newestFirst = (account: AccountId, rule: string) =>
    rows
      .filter((row) => row.account === account && row.rule === rule)
      .toSorted((a, b) => b.lastAt.localeCompare(a.lastAt));
  return {
    note: async (account, refusals, at) => {
      rows = rows.filter((row) => row.account === account || row.lastAt >= plusMs(at, -REFUSED_EXCHANGE_KEPT_MS));
      for (const { rule, fault, claim, found } of refusals) {
        const same = (row: CountedRefusal & { readonly account: AccountId }): boolean =>
          [row.account === account, row.rule === rule, row.fault === fault].every(Boolean) &&
          row.claim === claim &&
          row.found === found;
        const known = rows.find(same);
        const row = {
          ...{ account, rule, fault, claim, found, firstAt: known?.firstAt ?? at, lastAt: at },
          times: (known?.times ?? 0) + 1,
        };
        rows = [...rows.filter((other) => !same(other)), row];
        const beyond = new Set(newestFirst(account, rule).slice(REFUSED_EXCHANGES_MAX));
        rows = rows.filter((other) => !beyond.has(other));
      }
    },
    list: async (account, rule) => newestFirst(account, rule).map(({ account: _account, ...row }) => row),
    remove: async (account, rule) => {
      rows = rows.filter((row) => row.account !== account || (rule !== null && row.rule !== rule));
    },
  };
}
