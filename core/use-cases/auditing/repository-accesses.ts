/**
 * Lists who read and wrote a repository, by the minute.
 *
 * Invariants: the answer holds every event that the caller has seen. Reads of the minute under way are in no event yet.
 * The cost of a page does not grow with the accesses before it.
 */
import type { LogPosition } from '../../kernel/envelope.ts';
import type { AccountId, RepositoryId, Timestamp } from '../../kernel/ids.ts';
import type { Clock } from '../../ports/clock.ts';
import type { RepositoryUse, RepositoryUsePlace, UsageLedgerReader } from '../../ports/usage-ledger.ts';
import type { Vault } from '../../ports/vault.ts';
import { firstDayByMinutes } from '../../usage/ledger.ts';
import { type Opened, withOpenedAddresses } from '../tokens/opened-addresses.ts';

/** Ways to see something of a repository that leave no row: no bytes of its contents are counted for them. */
export const NOT_METERED = [
  /** Branches, tags and other refs, over Git and the API. */
  'refs',
  /** Commits, their diffs and comparisons, over the API. */
  'commits',
  /** Pages of the website, other than raw files. */
  'pages',
  /** What webhooks were told of pushes: their deliveries are listed on their own. */
  'webhooks',
  /** Readers beyond the thousand that an event names. */
  'unnamed-readers',
] as const;

export interface RepositoryAccessesContext {
  readonly readModels: UsageLedgerReader;
  readonly vault: Pick<Vault, 'discloseAll'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly retentionMs: number;
}

export interface WantedAccesses {
  readonly account: AccountId;
  readonly repository: RepositoryId;
  /** The answer includes the log up to this position. */
  readonly seen: LogPosition;
  /** From the minute of this time on; null for the first one. */
  readonly since: Timestamp | null;
  /** Minutes that begin before this time; null for all. */
  readonly until: Timestamp | null;
  /** The place that the page begins behind; null for the first page. */
  readonly after: RepositoryUsePlace | null;
  readonly limit: number;
}

export interface ListedAccesses {
  /** Oldest first. */
  readonly accesses: readonly Opened<RepositoryUse>[];
  readonly hasMore: boolean;
}

export async function listRepositoryAccesses(
  { readModels, vault, clock, retentionMs }: RepositoryAccessesContext,
  { account, repository, seen, since, until, after, limit }: WantedAccesses,
): Promise<ListedAccesses> {
  await readModels.usageLedgerCaughtUp(seen);
  const wanted = { account, repository, since, until, minutesFrom: firstDayByMinutes(clock.now(), retentionMs) };
  const { uses, hasMore } = await readModels.repositoryUses(wanted, { after, limit });
  return { accesses: await withOpenedAddresses(vault, account, uses), hasMore };
}
