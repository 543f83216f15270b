/** What waits to leave storage (core/ports/usage.ts), in memory: each read folds the whole log. */
import { accountEventKinds } from '../../../core/account/events.ts';
import { readEvent } from '../../../core/kernel/decider.ts';
import { categoryOf, entityIdOf, LOG_START, type LogPosition } from '../../../core/kernel/envelope.ts';
import type { AccountId, Timestamp } from '../../../core/kernel/ids.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import type { RemovedThrough, WaitingStorageReader } from '../../../core/ports/usage.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../../../core/repository/events.ts';
import { type TakenOut, waitingChangeOf } from '../../../core/usage/waiting-storage.ts';

interface Waiting extends TakenOut {
  readonly account: AccountId | null;
  readonly repository: string;
  readonly takenAt: Timestamp;
  /** The position of the compaction. */
  readonly position: LogPosition | null;
  readonly letGo: { readonly at: Timestamp; readonly position: LogPosition | null } | null;
}

export function createMemoryWaitingStorage(events: Pick<EventStore, 'readAll'>): WaitingStorageReader {
  async function fold() {
    const waiting = new Map<string, Waiting>();
    const buckets = new Map<string, string>();
    for (const recorded of await events.readAll(LOG_START, Number.MAX_SAFE_INTEGER)) {
      if (categoryOf(recorded.stream) === 'account' && recorded.type === 'RepositoryCreated') {
        const event = readEvent(accountEventKinds, recorded);
        if (event.type === 'RepositoryCreated' && event.data.storage_bucket_id !== null)
          buckets.set(event.data.repository_id, event.data.storage_bucket_id);
      }
      if (categoryOf(recorded.stream) !== 'repository') continue;
      const { position, occurredAt: at, accountId: account } = recorded;
      const event = readEvent<RepositoryEvent>(repositoryEventKinds, recorded);
      const { replaced, purged, letGo, isPurge } = waitingChangeOf(recorded, event);
      const about = { account, repository: entityIdOf(recorded.stream), takenAt: at };
      if (replaced !== null) waiting.set(replaced.layerId, { ...replaced, ...about, position, letGo: null });
      const leaves = { at, position: isPurge ? position : null };
      for (const id of letGo) {
        const waited = waiting.get(id);
        if (waited !== undefined) waiting.set(id, { ...waited, letGo: leaves });
      }
      if (purged !== null) waiting.set(purged.layerId, { ...purged, ...about, position: null, letGo: leaves });
    }
    const isHeld = ({ position, letGo }: Waiting, removed: RemovedThrough) =>
      (position === null || position > removed.replaced) &&
      (letGo === null || letGo.position === null || letGo.position > removed.purged);
    const held = (account: AccountId, removed: RemovedThrough, bucket?: string) =>
      [...waiting.values()].filter(
        (one) => one.account === account && buckets.get(one.repository) === bucket && isHeld(one, removed),
      );
    return { all: [...waiting.values()], held };
  }

  return {
    async waitingStorageBytes(account, removed) {
      return (await fold()).held(account, removed).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    },
    async purgesOf({ account, repository, removed, quota }) {
      const { all, held } = await fold();
      const rewritten = all.filter((one) => one.repository === repository && one.byPurge && one.position !== null);
      const purged = held(account, removed).flatMap(({ byPurge, letGo, sizeBytes }) =>
        byPurge && letGo !== null && letGo.position !== null ? [{ at: letGo.at, sizeBytes }] : [],
      );
      let bytes = 0;
      let letGoUntil: Timestamp | null = null;
      for (const { at, sizeBytes } of purged.toSorted((a, b) => (a.at > b.at ? -1 : 1))) {
        bytes += sizeBytes;
        if (quota !== null && bytes > quota) letGoUntil ??= at;
      }
      return {
        letGoUntil,
        rewrittenAt:
          rewritten
            .map(({ takenAt }) => takenAt)
            .sort()
            .at(-1) ?? null,
      };
    },
    async purgedInBucket({ account, bucket, removed }) {
      const { held } = await fold();
      let sizeBytes = 0;
      let letGoUntil: Timestamp | null = null;
      for (const { letGo, ...one } of held(account, removed, bucket)) {
        if (letGo === null || letGo.position === null) continue;
        sizeBytes += one.sizeBytes;
        if (letGoUntil === null || letGo.at > letGoUntil) letGoUntil = letGo.at;
      }
      return { sizeBytes, letGoUntil };
    },
  };
}
