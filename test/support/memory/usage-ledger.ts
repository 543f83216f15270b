/** The usage ledger in memory: each read folds the whole log. */
import { accountEventKinds } from '../../../core/account/events.ts';
import { readEvent } from '../../../core/kernel/decider.ts';
import { categoryOf, LOG_START, type RecordedEvent } from '../../../core/kernel/envelope.ts';
import { timestamp } from '../../../core/kernel/ids.ts';
import { TOKEN_USE_ADDRESSES_MAX } from '../../../core/kernel/limits.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import type {
  LedgerEntry,
  LedgerMember,
  LedgerPlace,
  RepositoryUse,
  TokenUse,
  UsageLedgerReader,
} from '../../../core/ports/usage-ledger.ts';
import { usageEventKinds } from '../../../core/usage/events.ts';
import { type LedgerRow, ledgerRowsOf, monthOf } from '../../../core/usage/ledger.ts';

const byPlace = (a: LedgerPlace, b: LedgerPlace): number =>
  a.at < b.at ? -1 : a.at > b.at ? 1 : a.eventId < b.eventId ? -1 : a.eventId > b.eventId ? 1 : a.index - b.index;

function entryOf({ at, eventId, index, member, delta, repositoryId, tokenId, operational }: LedgerRow): LedgerEntry {
  return { at, eventId, index, member, delta, repositoryId, tokenId, operational };
}

/** Whether a `UsageRecorded` among the events sums an event. */
export function isSummedIn(all: readonly RecordedEvent[]): (event: RecordedEvent) => boolean {
  return (event) =>
    all.some((sum) => {
      if (categoryOf(sum.stream) !== 'usage' || sum.position < event.position) return false;
      return readEvent(usageEventKinds, sum).data.day >= event.occurredAt.slice(0, 10);
    });
}

export function createMemoryUsageLedger(events: Pick<EventStore, 'readAll'>): UsageLedgerReader {
  return {
    usageLedgerCaughtUp: async () => undefined,
    async usageLedger(account, month, { after, limit, minutesFrom }) {
      const all = (await events.readAll(LOG_START, Number.MAX_SAFE_INTEGER)).filter((one) => one.accountId === account);
      const inBuckets = new Set(
        all.flatMap((recorded) => {
          if (recorded.type !== 'RepositoryCreated') return [];
          const event = readEvent(accountEventKinds, recorded);
          const isInBucket = event.type === 'RepositoryCreated' && event.data.storage_bucket_id !== null;
          return isInBucket ? [event.data.repository_id] : [];
        }),
      );
      const isSummed = isSummedIn(all);
      const rows = all.flatMap((event) => {
        const summed = categoryOf(event.stream) === 'transfer' && isSummed(event);
        return ledgerRowsOf(event).map((row) => ({ ...row, summed }));
      });
      const counted = rows
        .filter(({ delta, at, summed, isDaySum }) => {
          return delta !== 0 && (isDaySum ? at < minutesFrom : !summed || at >= minutesFrom);
        })
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
        entries: left.slice(0, limit).map(entryOf),
        hasMore: left.length > limit,
        totals: {
          repos: sum('repos', until),
          storage_bytes: sum('storage_bytes', until),
          transfer_bytes: sum('transfer_bytes', within),
          ingress_bytes: sum('ingress_bytes', within),
        },
      };
    },
    async tokenUses(account, token, { after, limit }) {
      const all = (await events.readAll(LOG_START, Number.MAX_SAFE_INTEGER)).filter((one) => one.accountId === account);
      const uses = new Map<string, { -readonly [Member in keyof TokenUse]: TokenUse[Member] }>();
      for (const { at, repositoryId, tokenId, reads, writes, addressRefs: named, isDaySum } of all.flatMap((one) =>
        ledgerRowsOf(one),
      )) {
        if (isDaySum || tokenId !== token || repositoryId === null || reads + writes === 0) continue;
        const minute = timestamp(`${at.slice(0, 16)}:00.000Z`);
        const key = `${minute} ${repositoryId}`;
        const use = uses.get(key) ?? { minute, repositoryId, reads: 0, writes: 0, addressRefs: [] };
        const refs = new Set([...use.addressRefs, ...named]);
        const addressRefs = [...refs].toSorted().slice(0, TOKEN_USE_ADDRESSES_MAX);
        uses.set(key, { ...use, reads: use.reads + reads, writes: use.writes + writes, addressRefs });
      }
      const beginning = after === null ? '' : `${after.minute} ${after.repositoryId}`;
      const left = [...uses].filter(([key]) => key > beginning).toSorted(([a], [b]) => (a < b ? -1 : 1));
      return { uses: left.slice(0, limit).map(([, use]) => use), hasMore: left.length > limit };
    },
    async repositoryUses({ account, repository, since, until, minutesFrom }, { after, limit }) {
      const all = (await events.readAll(LOG_START, Number.MAX_SAFE_INTEGER)).filter((one) => one.accountId === account);
      const isSummed = isSummedIn(all);
      const uses = new Map<string, { -readonly [Member in keyof RepositoryUse]: RepositoryUse[Member] }>();
      for (const event of all) {
        const summed = categoryOf(event.stream) === 'transfer' && isSummed(event);
        for (const row of ledgerRowsOf(event)) {
          const { at, reader, reads, writes, restores, isDaySum: wholeDay } = row;
          const isShown = wholeDay ? at < minutesFrom : !summed || at >= minutesFrom;
          if (row.repositoryId !== repository || reader === null || reads + writes === 0 || !isShown) continue;
          const minute = timestamp(`${at.slice(0, 16)}:00.000Z`);
          const first = since === null ? '' : since.slice(0, wholeDay ? 10 : 16);
          if (minute < first || (until !== null && minute >= until)) continue;
          const { kind, id } = reader;
          const key = `${minute} ${wholeDay} ${kind} ${id}`;
          const use = uses.get(key) ?? {
            minute,
            wholeDay,
            kind,
            id,
            reads: 0,
            pushes: 0,
            restores: 0,
            addressRefs: [],
          };
          const addressRefs = [...new Set([...use.addressRefs, ...row.addressRefs])].toSorted();
          const writesSum = { pushes: use.pushes + writes - restores, restores: use.restores + restores };
          uses.set(key, { ...use, ...writesSum, reads: use.reads + reads, addressRefs });
        }
      }
      const beginning = after === null ? '' : `${after.minute} ${after.wholeDay} ${after.kind} ${after.id}`;
      const left = [...uses].filter(([key]) => key > beginning).toSorted(([a], [b]) => (a < b ? -1 : 1));
      const shown = left.slice(0, limit).map(([, use]) => ({
        ...{ ...use, addressRefs: use.addressRefs.slice(0, TOKEN_USE_ADDRESSES_MAX) },
      }));
      return { uses: shown, hasMore: left.length > limit };
    },
  };
}
