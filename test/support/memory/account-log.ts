/** Accounts' logs in memory: each read numbers and hashes the whole log again, by the definition of RFC 6962. */
import { leafText } from '../../../core/audit/entry.ts';
import { leafHash, nodeHash } from '../../../core/audit/tree.ts';
import type { Digest } from '../../../core/kernel/digest.ts';
import { LOG_START, type RecordedEvent, streamName } from '../../../core/kernel/envelope.ts';
import { type AccountId, later, type Timestamp } from '../../../core/kernel/ids.ts';
import type { AccountLogReader, EntryFilter, EntryPlace, Hash } from '../../../core/ports/account-log.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { isEntryOf } from '../../../core/runtime/log-time.ts';

const UNFILTERED: EntryFilter = {
  ...{ type: null, stream: null, repositoryId: null, actorId: null, requestId: null, since: null, until: null },
};

interface Entry extends EntryPlace {
  readonly event: RecordedEvent;
}

export function createMemoryAccountLog({
  events,
  digest,
}: {
  readonly events: EventStore;
  readonly digest: Digest;
}): AccountLogReader {
  async function logOf(account: AccountId): Promise<readonly Entry[]> {
    const entries: Entry[] = [];
    let logTime: Timestamp | null = null;
    for (const event of await events.readAll(LOG_START, Number.MAX_SAFE_INTEGER)) {
      if (!isEntryOf(account, event)) continue;
      logTime = later(event.occurredAt, logTime);
      const { id: eventId, stream, revision, position } = event;
      const text = leafText(event);
      const place = { eventId, stream, revision, position, logTime };
      entries.push({
        ...{ sequence: entries.length, ...place, leaf: leafHash(digest, text) },
        ...{ length: text.length, event },
      });
    }
    return entries;
  }

  const placeOf = ({ event: _event, ...place }: Entry): EntryPlace => place;

  return {
    accountLogCaughtUp: async () => {},
    async logPrefix(account, at) {
      const entries = (await logOf(account)).filter(({ logTime }) => at === null || logTime <= at);
      const last = entries.at(-1);
      return { size: entries.length, position: last?.position ?? LOG_START, logTime: last?.logTime ?? null };
    },
    async entryPlaces(account, filter, { from, to, limit, newestFirst = false }) {
      const { type, stream, repositoryId, actorId, requestId, since, until } = filter ?? UNFILTERED;
      const names = ({ stream: at, data }: RecordedEvent): boolean =>
        repositoryId === null ||
        at === streamName('repository', repositoryId) ||
        data['repository_id'] === repositoryId ||
        (Array.isArray(data['repository_ids']) && data['repository_ids'].includes(repositoryId));
      const met = (await logOf(account)).filter(
        ({ sequence, event, logTime }) =>
          sequence >= from &&
          sequence < to &&
          (type === null || event.type === type) &&
          (stream === null || event.stream === stream) &&
          (actorId === null || event.actor.id === actorId) &&
          (requestId === null || event.requestId === requestId) &&
          (since === null || logTime >= since) &&
          (until === null || logTime < until) &&
          names(event),
      );
      return (newestFirst ? met.toReversed() : met).slice(0, limit).map(placeOf);
    },
    async entryPlaceOf(account, id) {
      const found = (await logOf(account)).find(({ eventId }) => eventId === id);
      return found === undefined ? null : placeOf(found);
    },
    async accountLogs(after, limit) {
      const sizes = new Map<AccountId, number>();
      for (const { accountId, isRecord } of await events.readAll(LOG_START, Number.MAX_SAFE_INTEGER)) {
        if (accountId !== null && isRecord) sizes.set(accountId, (sizes.get(accountId) ?? 0) + 1);
      }
      const logs = [...sizes].map(([account, size]) => ({ account, size }));
      const inOrder = logs.toSorted((a, b) => (a.account < b.account ? -1 : 1));
      return inOrder.filter(({ account }) => after === null || account > after).slice(0, limit);
    },
    async treeHashes(account, subtrees) {
      const leaves = (await logOf(account)).map(({ leaf }) => leaf);
      return subtrees.map(({ level, index }) => {
        const within = leaves.slice(index * 2 ** level, (index + 1) * 2 ** level);
        if (within.length < 2 ** level) throw new TypeError(`The tree of ${account} lacks ${level} ${index}`);
        return rootOf(digest, within);
      });
    },
  };
}

/** MTH of RFC 6962, section 2.1, for the hashes of one leaf or more. */
export function rootOf(digest: Digest, leaves: readonly Hash[]): Hash {
  const [only] = leaves;
  if (only === undefined) throw new TypeError('No leaves');
  if (leaves.length === 1) return only;
  const split = 2 ** Math.floor(Math.log2(leaves.length - 1));
  return nodeHash(digest, rootOf(digest, leaves.slice(0, split)), rootOf(digest, leaves.slice(split)));
}
