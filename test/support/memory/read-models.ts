/**
 * The read models in memory: each read folds the whole log.
 *
 * Invariants: they return what the projections return; only the cost differs.
 */
import type { AccessTokenEvent } from '../../../core/access-token/events.ts';
import { accessTokens } from '../../../core/access-token/evolve.ts';
import type { AccessToken } from '../../../core/access-token/state.ts';
import { accountEventKinds } from '../../../core/account/events.ts';
import { accounts } from '../../../core/account/evolve.ts';
import type { Account } from '../../../core/account/state.ts';
import type { CommitRow } from '../../../core/git/commit-row.ts';
import { listedPage } from '../../../core/git/history/listed-commit.ts';
import type { Commit } from '../../../core/git/objects.ts';
import { byRefOrder } from '../../../core/git/ref-name.ts';
import { type Decider, type DomainEvent, readEvent, readEvent as readStored } from '../../../core/kernel/decider.ts';
import type { Digest } from '../../../core/kernel/digest.ts';
import { categoryOf, entityIdOf, LOG_START, type LogPosition } from '../../../core/kernel/envelope.ts';
import {
  type AccessTokenId,
  type AccountId,
  type ObjectId,
  type RepositoryId,
  type StorageBucketId,
  type Timestamp,
  uuid,
} from '../../../core/kernel/ids.ts';
import type { JsonObject } from '../../../core/kernel/json.ts';
import type { Page, PageOf } from '../../../core/kernel/page.ts';
import type { AccessTokenRow } from '../../../core/ports/access-token-lists.ts';
import type { Clock } from '../../../core/ports/clock.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import type { ReadModels } from '../../../core/ports/read-models.ts';
import { ReadModelError } from '../../../core/ports/read-models.ts';
import type { RepositoryRow } from '../../../core/ports/repository-lists.ts';
import type { AccountUsage, BucketStorage, DayTraffic } from '../../../core/ports/usage.ts';
import { repositories } from '../../../core/repository/evolve.ts';
import type { OpenRepository, Repository } from '../../../core/repository/state.ts';
import { isOfChange } from '../../../core/usage/changes.ts';
import { transferEventKinds } from '../../../core/usage/events.ts';
import { withUpdatesInPlace } from '../../../core/use-cases/pushing/restore-wide-updates.ts';
import { storableText } from '../../../projections/runner/bulk.ts';
import { createMemoryAccountLog } from './account-log.ts';
import { createMemoryActivity } from './activity.ts';
import { createMemoryBucketErrors } from './bucket-errors.ts';
import { createMemoryDeliveries } from './deliveries.ts';
import type { MemoryObjects } from './object-database.ts';
import { createMemorySignIns } from './sign-ins.ts';
import { createMemoryUsageLedger } from './usage-ledger.ts';
import { createMemoryWaitingStorage } from './waiting-storage.ts';

interface Folded<State> {
  readonly state: State;
  readonly revision: number;
  readonly firstAt: Timestamp;
}

interface Fold {
  readonly position: LogPosition;
  readonly accounts: ReadonlyMap<AccountId, Folded<Account>>;
  readonly repositories: ReadonlyMap<RepositoryId, Folded<Repository>>;
  readonly tokens: ReadonlyMap<AccessTokenId, Folded<AccessToken>>;
  readonly sent: readonly { readonly account: AccountId; readonly minute: string; readonly bytes: number }[];
  /** Every repository that an account made, and its bucket. */
  readonly made: ReadonlyMap<RepositoryId, { readonly account: AccountId; readonly bucket: StorageBucketId | null }>;
  /** The month of each request that changed an account. */
  readonly changes: ReadonlyMap<AccountId, ReadonlyMap<string, string>>;
  readonly received: readonly { readonly account: AccountId; readonly at: string; readonly bytes: number }[];
}

export interface MemoryReadModels extends ReadModels {
  /** Makes every later read fail with this error; null ends that. */
  failWith(error: ReadModelError | null): void;
  /** The number of reads of branches so far. */
  branchReads(): number;
}

export function createMemoryReadModels(options: {
  readonly events: EventStore;
  readonly digest: Digest;
  readonly clock: Pick<Clock, 'now'>;
  readonly objects: Pick<MemoryObjects, 'find' | 'walk'>;
}): MemoryReadModels {
  const { events, objects, clock } = options;
  let failure: ReadModelError | null = null;
  let branchReads = 0;
  const deliveries = createMemoryDeliveries(events);

  async function accessTokenRows(account: AccountId, now: Timestamp): Promise<readonly AccessTokenRow[]> {
    const all = await fold();
    const rows = [...all.tokens].flatMap(([id, { state }]): AccessTokenRow[] => {
      if (state.status !== 'active' || state.account !== account) return [];
      if (state.expiresAt !== null && state.expiresAt <= now) return [];
      const { name, scope, grants, repositoryIds, expiresAt, createdAt, tokenPrefix } = state;
      return [{ id, name, scope, grants, repositoryIds, expiresAt, createdAt, tokenPrefix }];
    });
    return rows.reverse();
  }

  async function fold(): Promise<Fold> {
    if (failure !== null) throw failure;
    const folded = {
      position: LOG_START,
      accounts: new Map<AccountId, Folded<Account>>(),
      repositories: new Map<RepositoryId, Folded<Repository>>(),
      tokens: new Map<AccessTokenId, Folded<AccessToken>>(),
      made: new Map<RepositoryId, { account: AccountId; bucket: StorageBucketId | null }>(),
      sent: new Array<Fold['sent'][number]>(),
      changes: new Map<AccountId, Map<string, string>>(),
      received: new Array<Fold['received'][number]>(),
    };
    for (const recorded of await events.readAll(LOG_START, Number.MAX_SAFE_INTEGER)) {
      const event = await withUpdatesInPlace(options, recorded);
      folded.position = event.position;
      const id = entityIdOf(event.stream);
      if (event.accountId !== null && isOfChange(event)) {
        const requests = folded.changes.get(event.accountId) ?? new Map<string, string>();
        if (!requests.has(event.requestId)) requests.set(event.requestId, event.occurredAt.slice(0, 7));
        folded.changes.set(event.accountId, requests);
      }
      switch (categoryOf(event.stream)) {
        case 'account':
          apply(folded.accounts, uuid<AccountId>(id), accounts, event);
          if (event.type === 'RepositoryCreated') {
            const made = readStored(accountEventKinds, event);
            if (made.type !== 'RepositoryCreated') throw new TypeError('The event changed its type');
            const { repository_id, storage_bucket_id } = made.data;
            const bucket = storage_bucket_id === null ? null : uuid<StorageBucketId>(storage_bucket_id);
            folded.made.set(uuid(repository_id), { account: uuid(id), bucket });
          }
          break;
        case 'repository':
          apply(folded.repositories, uuid<RepositoryId>(id), repositories, event);
          if (event.type === 'RefsUpdated' && event.accountId !== null) {
            const bytes = Number(event.data['received_bytes']);
            folded.received.push({ account: event.accountId, at: event.occurredAt, bytes });
          }
          break;
        case 'accessToken':
          apply<AccessToken, AccessTokenEvent, AccessTokenId>(folded.tokens, uuid(id), accessTokens, event);
          break;
        case 'transfer':
          if (event.accountId !== null) {
            const { data } = readStored(transferEventKinds, event);
            folded.sent.push({ account: event.accountId, minute: data.minute, bytes: data.sent_bytes });
            const refused = { account: event.accountId, at: data.minute, bytes: data.received_bytes };
            folded.received.push(refused);
          }
          break;
      }
    }
    return folded;
  }

  function rowOf({ id, message, author, committer, parents }: Commit): CommitRow {
    return {
      id,
      message: storableText(message),
      author: { name: storableText(author.name), email: storableText(author.email) },
      committer: { name: storableText(committer.name), email: storableText(committer.email) },
      authoredAt: author.seconds,
      committedAt: committer.seconds,
      parents,
    };
  }

  function commitRow(id: ObjectId): CommitRow {
    const commit = objects.find(id);
    if (commit === null) throw new Error(`The test made no commit ${id}`);
    return rowOf(commit);
  }

  async function findRepository(id: RepositoryId) {
    const all = await fold();
    const { state, revision } = all.repositories.get(id) ?? { state: repositories.initial, revision: -1 };
    if (state.status === 'closed') return null;
    const owned = [...all.accounts.values()].flatMap((account) =>
      account.state.status === 'open' ? (account.state.repositories.get(id) ?? []) : [],
    )[0];
    if (owned === undefined) return null;
    return { state, revision, defaultBranch: state.defaultBranch ?? owned.initialDefaultBranch ?? 'master' };
  }

  const storedBytes = ({ repositories: folded }: Fold, id: RepositoryId): number => {
    const { state } = folded.get(id) ?? { state: repositories.initial };
    return (state.status === 'open' ? state : state.before).layersSizeBytes;
  };

  async function bucketStorage(account: AccountId): Promise<readonly BucketStorage[]> {
    const all = await fold();
    const state = all.accounts.get(account)?.state;
    const made = [...all.made].filter(([, repository]) => repository.account === account);
    return [...new Set(made.flatMap(([, { bucket }]) => bucket ?? []))].flatMap((storageBucketId) => {
      const inBucket = made.filter(([, { bucket }]) => bucket === storageBucketId).map(([id]) => id);
      const listed = inBucket.filter((id) => state?.status === 'open' && state.repositories.has(id)).length;
      const storageBytes = sum(inBucket.map((id) => storedBytes(all, id)));
      return listed === 0 && storageBytes === 0 ? [] : [{ storageBucketId, repositories: listed, storageBytes }];
    });
  }

  async function usageOf(account: AccountId): Promise<AccountUsage> {
    const all = await fold();
    const month = clock.now().slice(0, 7);
    const onPlatform = [...all.made].filter(([, made]) => made.account === account && made.bucket === null);
    const sizes = onPlatform.map(([id]) => storedBytes(all, id));
    const sent = all.sent.filter((entry) => entry.account === account && entry.minute.startsWith(month));
    const received = all.received.filter((entry) => entry.account === account && entry.at.startsWith(month));
    return {
      storageBytes: sum(sizes),
      transferBytes: sum(sent.map(({ bytes }) => bytes)),
      ingressBytes: sum(received.map(({ bytes }) => bytes)),
    };
  }

  async function changesOf(account: AccountId): Promise<number> {
    const { changes } = await fold();
    const months = [...(changes.get(account)?.values() ?? [])];
    return months.filter((month) => month === clock.now().slice(0, 7)).length;
  }

  async function deletedStorageBytes(account: AccountId): Promise<number> {
    const all = await fold();
    const state = all.accounts.get(account)?.state;
    const listed = (id: RepositoryId) => state !== undefined && 'repositories' in state && state.repositories.has(id);
    const deleted = [...all.made].filter(
      ([id, made]) => made.account === account && made.bucket === null && !listed(id),
    );
    return sum(deleted.map(([id]) => storedBytes(all, id)));
  }

  async function dailyTraffic(account: AccountId): Promise<readonly DayTraffic[]> {
    const all = await fold();
    const month = clock.now().slice(0, 7);
    const days = new Map<string, { day: string; ingressBytes: number; transferBytes: number }>();
    const dayOf = (at: string) => {
      const day = at.slice(0, 10);
      const sums = days.get(day) ?? { day, ingressBytes: 0, transferBytes: 0 };
      days.set(day, sums);
      return sums;
    };
    for (const { account: id, minute, bytes } of all.sent) {
      if (id === account && minute.startsWith(month)) dayOf(minute).transferBytes += bytes;
    }
    for (const { account: id, at, bytes } of all.received) {
      if (id === account && at.startsWith(month)) dayOf(at).ingressBytes += bytes;
    }
    return [...days.values()].sort((a, b) => (a.day < b.day ? -1 : 1));
  }

  const listRepositories = async (
    account: AccountId,
    isListed: (owned: {
      readonly id: RepositoryId;
      readonly name: string;
      readonly description: string | null;
    }) => boolean,
    { offset, limit }: Page,
  ): Promise<PageOf<RepositoryRow>> => {
    const all = await fold();
    const state = all.accounts.get(account)?.state;
    if (state?.status !== 'open') return { items: [], total: 0 };
    const rows = [...state.repositories.entries()]
      .filter(([, owned]) => isListed(owned))
      .filter(([id]) => all.repositories.get(id)?.state.status !== 'closed')
      .map(([id, owned]): RepositoryRow => {
        const repository = all.repositories.get(id)?.state ?? repositories.initial;
        const open: OpenRepository | null = repository.status === 'open' ? repository : null;
        return {
          id,
          accountId: account,
          username: state.username,
          name: owned.name,
          description: owned.description === null ? null : storableText(owned.description),
          defaultBranch: open?.defaultBranch ?? owned.initialDefaultBranch ?? 'master',
          storageBucketId: owned.storageBucketId,
          sizeBytes: open?.layersSizeBytes ?? 0,
          createdAt: owned.createdAt,
          pushedAt: open?.pushedAt ?? null,
        };
      })
      .sort((a, b) => byRefOrder(a.name.toLowerCase(), b.name.toLowerCase()));
    return { items: rows.slice(offset, offset + limit), total: rows.length };
  };

  return {
    failWith: (error) => {
      failure = error;
    },
    branchReads: () => branchReads,
    caughtUp: async (position) => {
      const all = await fold();
      if (all.position < position) throw new ReadModelError('read-model-behind', 'The log has no such position');
    },
    repositories: (account, only, page) =>
      listRepositories(account, ({ id }) => only === null || only.includes(id), page),
    repositoriesWith: (account, text, page) => {
      const wanted = text.toLowerCase();
      const holds = ({ name, description }: { readonly name: string; readonly description: string | null }) =>
        `${name}\n${description ?? ''}`.toLowerCase().includes(wanted);
      return listRepositories(account, holds, page);
    },
    halfDeleted: async () => {
      const all = await fold();
      return [...all.accounts].flatMap(([account, { state }]) => {
        const owned = state.status === 'open' ? [...state.repositories.keys()] : [];
        const closed = owned.filter((id) => all.repositories.get(id)?.state.status === 'closed');
        return closed.map((repository) => ({ account, repository }));
      });
    },
    ownerOf: async (repository) => {
      const all = await fold();
      const owner = [...all.accounts].find(
        ([, { state }]) => state.status === 'open' && state.repositories.has(repository),
      );
      return owner?.[0] ?? null;
    },
    bucketsInUse: async () => {
      const all = await fold();
      return [...all.accounts].flatMap(([account, { state }]) => {
        const owned = state.status === 'open' ? [...state.repositories.entries()] : [];
        const buckets = new Set(owned.map(([, { storageBucketId }]) => storageBucketId));
        return [...buckets].flatMap((storageBucketId) =>
          storageBucketId === null ? [] : [{ account, storageBucketId }],
        );
      });
    },
    branches: async (id) => {
      branchReads += 1;
      const found = await findRepository(id);
      if (found === null) return null;
      const branches = [...found.state.refs.entries()]
        .filter(([name]) => name.startsWith('refs/heads/'))
        .sort(([a], [b]) => byRefOrder(a, b))
        .map(([name, ref]) => ({ name: name.slice('refs/heads/'.length), commit: commitRow(ref.id) }));
      return { revision: found.revision, branches };
    },
    defaultBranchCommits: async (id, { offset, limit }) => {
      const found = await findRepository(id);
      const ref = [...(found?.state.refs.entries() ?? [])].find(
        ([name]) => name === `refs/heads/${found?.defaultBranch}`,
      );
      if (found === null || ref === undefined) return null;
      const tip = ref[1].id;
      const all = [...objects.walk([tip])];
      const items = listedPage(all.slice(offset, offset + limit).map(commitRow));
      return { revision: found.revision, tip, items, total: all.length };
    },
    accessTokens: accessTokenRows,
    accessTokenSums: async (account, now, besides) => {
      const others = (await accessTokenRows(account, now)).filter(({ id }) => id !== besides);
      return { tokens: others.length, repositories: others.flatMap(({ repositoryIds }) => repositoryIds).length };
    },
    tokensAmong: async (ids) => {
      const { tokens } = await fold();
      const isToken = (status?: string): boolean => status === 'active' || status === 'exchanged';
      return new Set(ids.filter((id) => isToken(tokens.get(id)?.state.status)));
    },
    ...createMemoryAccountLog(options),
    ...createMemoryActivity(options),
    ...createMemoryBucketErrors(events),
    ...createMemoryUsageLedger(events),
    ...createMemorySignIns(events),
    webhookDeliveries: deliveries.webhookDeliveries,
    webhookDelivery: deliveries.webhookDelivery,
    usageOf,
    bucketStorage,
    deletedStorageBytes,
    ...createMemoryWaitingStorage(events),
    dailyTraffic,
    changesOf,
    changesCaughtUp: async () => undefined,
  };
}

function apply<State, Event extends DomainEvent<string, JsonObject>, Id>(
  folded: Map<Id, Folded<State>>,
  id: Id,
  decider: Decider<State, Event>,
  recorded: Parameters<typeof readEvent>[1] & { readonly occurredAt: Timestamp },
): void {
  const before = folded.get(id);
  const event = readEvent(decider.kinds, recorded);
  folded.set(id, {
    state: decider.evolve(before?.state ?? decider.initial, event, recorded.occurredAt),
    revision: recorded.revision,
    firstAt: before?.firstAt ?? recorded.occurredAt,
  });
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
