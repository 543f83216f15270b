/**
 * Lists what the figures of an account's usage are the sum of, in a calendar month.
 *
 * Invariants: the answer holds every event that the caller has seen, and its totals are those of the usage that is
 * read at the same moment, but for what a node has sent and not yet written to the log.
 */
import { refuse } from '../../kernel/decider.ts';
import type { LogPosition } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Clock } from '../../ports/clock.ts';
import type { LedgerPage, LedgerPlace, UsageLedgerReader } from '../../ports/usage-ledger.ts';
import { firstDayByMinutes, monthOf } from '../../usage/ledger.ts';

export interface UsageLedgerContext {
  readonly readModels: UsageLedgerReader;
  readonly clock: Pick<Clock, 'now'>;
  readonly retentionMs: number;
}

export interface WantedLedger {
  readonly account: AccountId;
  readonly seen: LogPosition;
  /** `YYYY-MM`; null: the current one. */
  readonly month: string | null;
  /** The place that the page begins behind; null for the month's beginning. */
  readonly after: LedgerPlace | null;
  readonly limit: number;
}

/** Refused with `moment-in-future` for a month that has not begun. */
export async function listUsageLedger(
  { readModels, clock, retentionMs }: UsageLedgerContext,
  { account, seen, month, after, limit }: WantedLedger,
): Promise<(LedgerPage & { readonly month: string }) | { readonly refused: Refusal }> {
  await readModels.usageLedgerCaughtUp(seen);
  const now = clock.now();
  const wanted = month ?? monthOf(now);
  if (wanted > monthOf(now)) return refuse({ code: 'moment-in-future' });
  const page = { after, limit, minutesFrom: firstDayByMinutes(now, retentionMs) };
  return { month: wanted, ...(await readModels.usageLedger(account, wanted, page)) };
}
