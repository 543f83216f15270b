/** The usage ledger in memory: each read folds the whole log. */
import { accountEventKinds } from '../../../core/account/events.ts';
import { readEvent } from '../../../core/kernel/decider.ts';
import { LOG_START } from '../../../core/kernel/envelope.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import type { LedgerEntry, LedgerMember, LedgerPlace, UsageLedgerReader } from '../../../core/ports/usage-ledger.ts';
import { ledgerEntriesOf, monthOf } from '../../../core/usage/ledger.ts';

const byPlace = (a: LedgerPlace, b: LedgerPlace): number =>
  a.at < b.at ? -1 : a.at > b.at ? 1 : a.eventId < b.eventId ? -1 : a.eventId > b.eventId ? 1 : a.index - b.index;

export function createMemoryUsageLedger(events: Pick<EventStore, 'readAll'>): UsageLedgerReader {
  return {
    usageLedgerCaughtUp: async () => undefined,
    async usageLedger(account, month, { after, limit }) {
      const all = (await events.readAll(LOG_START, Number.MAX_SAFE_INTEGER)).filter((one) => one.accountId === account);
      const inBuckets = new Set(
        all.flatMap((recorded) => {
          if (recorded.type !== 'RepositoryCreated') return [];
          const event = readEvent(accountEventKinds, recorded);
          const isInBucket = event.type === 'RepositoryCreated' && event.data.storage_bucket_id !== null;
          return isInBucket ? [event.data.repository_id] : [];
        }),
      );
      const counted = all
        .flatMap((event) => ledgerEntriesOf(event))
        .filter(({ delta }) => delta !== 0)
        .filter(({ member, repositoryId }) => member !== 'storage_bytes' || !inBuckets.has(repositoryId ?? ''))
        .toSorted(byPlace);
      const sum = (member: LedgerMember, isCounted: (entry: LedgerEntry) => boolean): number =>
        counted.filter((one) => one.member === member && isCounted(one)).reduce((total, { delta }) => total + delta, 0);
      const before = ({ at }: LedgerEntry) => monthOf(at) < month;
      const within = ({ at }: LedgerEntry) => monthOf(at) === month;
      const until = ({ at }: LedgerEntry) => monthOf(at) <= month;
      const left = counted.filter((entry) => within(entry) && (after === null || byPlace(entry, after) > 0));
      return {
        opening: { repos: sum('repos', before), storage_bytes: sum('storage_bytes', before) },
        entries: left.slice(0, limit),
        hasMore: left.length > limit,
        totals: {
          repos: sum('repos', until),
          storage_bytes: sum('storage_bytes', until),
          transfer_bytes: sum('transfer_bytes', within),
          ingress_bytes: sum('ingress_bytes', within),
        },
      };
    },
  };
}
