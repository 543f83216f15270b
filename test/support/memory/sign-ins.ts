/** The in-memory counterpart of the read model of sign-ins: reads the whole log each time. */
import { categoryOf, LOG_START } from '../../../core/kernel/envelope.ts';
import { timestamp } from '../../../core/kernel/ids.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { type SignInsReader, UNSUMMED_REFUSED_READS_MAX, UNSUMMED_SIGN_INS_MAX } from '../../../core/ports/sign-ins.ts';
import { type SignInRow, signInRowsOf } from '../../../projections/sign-ins/row.ts';
import { isSummedIn } from './usage-ledger.ts';

/** Adds counts up by a key, the largest first, and equal ones in the order of their keys. */
function summed(rows: readonly SignInRow[], keyOf: (row: SignInRow) => string): readonly SignInRow[] {
  const sums = new Map<string, SignInRow>();
  for (const row of rows) {
    const key = keyOf(row);
    sums.set(key, { ...row, count: (sums.get(key)?.count ?? 0) + row.count });
  }
  const inOrder = [...sums].toSorted(([a, { count: m }], [b, { count: n }]) => n - m || (a < b ? -1 : 1));
  return inOrder.map(([, row]) => row);
}

export function createMemorySignIns(events: Pick<EventStore, 'readAll'>): SignInsReader {
  return {
    async unsummedSignIns(account) {
      const all = (await events.readAll(LOG_START, Number.MAX_SAFE_INTEGER)).filter((one) => one.accountId === account);
      const isSummed = isSummedIn(all);
      const rows = all
        .filter((event) => ['signIn', 'transfer'].includes(categoryOf(event.stream)) && !isSummed(event))
        .flatMap(signInRowsOf);
      const of = (kind: SignInRow['kind']) => rows.filter((row) => row.kind === kind);
      const signIns = of('sign-in').toSorted((a, b) =>
        a.at < b.at ? 1 : a.at > b.at ? -1 : a.event_id < b.event_id ? 1 : -1,
      );
      const byToken = summed(of('refused-read'), ({ token_id, reason }) => `${token_id ?? '~'} ${reason}`);
      const named = byToken.toSorted((a, b) => Number(a.token_id === null) - Number(b.token_id === null));
      const refused = named.map((row, place) =>
        place < UNSUMMED_REFUSED_READS_MAX ? row : { ...row, token_id: null },
      );
      return {
        signIns: signIns.slice(0, UNSUMMED_SIGN_INS_MAX).map((row) => ({
          at: timestamp(row.at),
          factors: row.factors.split(','),
          sourceAddressRef: row.source_address_ref,
          userAgentRef: row.user_agent_ref,
        })),
        moreSignIns: Math.max(0, signIns.length - UNSUMMED_SIGN_INS_MAX),
        failures: summed(of('failure'), ({ factors, reason }) => `${factors} ${reason ?? '~'}`).map(
          ({ factors: factor, reason, count }) => ({ factor, reason, count }),
        ),
        refusedReads: summed(refused, ({ token_id, reason }) => `${token_id ?? '~'} ${reason}`).map(
          ({ token_id: tokenId, reason, count }) => ({ tokenId, reason: String(reason), count }),
        ),
      };
    },
  };
}
