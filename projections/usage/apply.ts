/**
 * Folds repositories, pushes and transfer into what an account uses.
 *
 * Must stay true: ingress counts on the day on which the push was committed, transfer on the day on which it was sent. The storage of
 * a repository on platform storage counts until the repository is closed, that of one in a bucket of a user never.
 */
import { accountEventKinds } from '../../core/account/events.ts';
import { readEvent } from '../../core/kernel/decider.ts';
import { categoryOf, entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../../core/repository/events.ts';
import { grownBytes, layersChangeOf } from '../../core/repository/layers.ts';
import { transferEventKinds } from '../../core/usage/events.ts';
import { runForList } from '../runner/bulk.ts';
import type { Projection, TableOf, Write } from '../runner/projection.ts';
import { usageTables } from './table.ts';

export const usageProjection: Projection = {
  name: 'usage',
  version: 4,
  categories: ['account', 'repository', 'transfer'],
  tables: usageTables,
  onPoison: 'park',
  open: (table) => ({
    prepare: async (events) => {
      const changes = new Changes();
      for (const event of events) changes.add(event);
      return changes.toWrite(table);
    },
  }),
};

/** Returns the day of an instant as `YYYY-MM-DD`; instants are RFC 3339 in UTC. */
function dayOf(instant: string): string {
  return instant.slice(0, 10);
}

class Changes {
  readonly #created = new Map<
    string,
    { repository_id: string; account_id: string; storage_bucket_id: string | null }
  >();
  readonly #deleted = new Set<string>();
  readonly #storage = new Map<string, { repository_id: string; account_id: string; size_bytes: number }>();
  readonly #closed = new Set<string>();
  readonly #reopened = new Set<string>();
  readonly #traffic = new Map<
    string,
    { account_id: string; day: string; ingress_bytes: number; transfer_bytes: number }
  >();

  add(recorded: RecordedEvent): void {
    switch (categoryOf(recorded.stream)) {
      case 'account':
        this.#addAccountEvent(recorded);
        break;
      case 'repository':
        this.#addRepositoryEvent(recorded);
        break;
      case 'transfer': {
        const { minute, sent_bytes } = readEvent(transferEventKinds, recorded).data;
        this.#trafficOf(ownerOf(recorded), dayOf(minute)).transfer_bytes += sent_bytes;
        break;
      }
    }
  }

  #addAccountEvent(recorded: RecordedEvent): void {
    const event = readEvent(accountEventKinds, recorded);
    if (event.type === 'RepositoryCreated' || event.type === 'RepositoryRestored') {
      const { repository_id, storage_bucket_id } = event.data;
      this.#deleted.delete(repository_id);
      const account_id = entityIdOf(recorded.stream);
      this.#created.set(repository_id, { repository_id, account_id, storage_bucket_id });
    } else if (event.type === 'RepositoryDeleted') {
      this.#created.delete(event.data.repository_id);
      this.#deleted.add(event.data.repository_id);
    }
  }

  #addRepositoryEvent(recorded: RecordedEvent): void {
    const id = entityIdOf(recorded.stream);
    const event = readEvent(repositoryEventKinds, recorded);
    switch (event.type) {
      case 'RepositoryClosed':
        this.#storage.delete(id);
        this.#reopened.delete(id);
        this.#closed.add(id);
        break;
      case 'RepositoryReopened': {
        const { size_bytes } = event.data;
        this.#closed.delete(id);
        this.#reopened.add(id);
        this.#storage.set(id, { repository_id: id, account_id: ownerOf(recorded), size_bytes });
        break;
      }
      case 'RefsUpdated':
        this.#trafficOf(ownerOf(recorded), dayOf(recorded.occurredAt)).ingress_bytes += event.data.received_bytes;
        this.#addStorage(recorded, event);
        break;
      case 'LayersCompacted':
        this.#addStorage(recorded, event);
        break;
      // Layers that a compaction replaced count no more, nor do those of a closed repository. No other event removes
      // current layers.
      case 'LayersExpired':
      case 'DefaultBranchChanged':
        break;
    }
  }

  #addStorage(recorded: RecordedEvent, event: RepositoryEvent): void {
    const id = entityIdOf(recorded.stream);
    const stored = this.#storage.get(id) ?? { repository_id: id, account_id: ownerOf(recorded), size_bytes: 0 };
    const change = layersChangeOf(event);
    if (change !== null) stored.size_bytes += grownBytes(change);
    this.#storage.set(id, stored);
  }

  #trafficOf(account: string, day: string): { ingress_bytes: number; transfer_bytes: number } {
    const key = `${account} ${day}`;
    let sums = this.#traffic.get(key);
    if (sums === undefined) {
      sums = { account_id: account, day, ingress_bytes: 0, transfer_bytes: 0 };
      this.#traffic.set(key, sums);
    }
    return sums;
  }

  /** No repository is in two of the statements that run together. */
  toWrite(table: TableOf): Write {
    const repositories = table('usage_repositories');
    const storage = table('usage_storage');
    const ids = 'SELECT value::uuid FROM json_array_elements_text($1)';
    const lists = [
      { items: [...this.#deleted], text: `DELETE FROM ${repositories} WHERE repository_id IN (${ids})` },
      {
        items: [...this.#created.values()],
        text: `INSERT INTO ${repositories}
            SELECT * FROM json_to_recordset($1) AS r(repository_id uuid, account_id uuid, storage_bucket_id uuid)
            ON CONFLICT DO NOTHING`,
      },
      { items: [...this.#closed], text: `DELETE FROM ${storage} WHERE repository_id IN (${ids})` },
      {
        items: [...this.#storage.values()],
        text: `INSERT INTO ${storage} AS s
            SELECT * FROM json_to_recordset($1) AS r(repository_id uuid, account_id uuid, size_bytes bigint)
            ON CONFLICT (repository_id) DO UPDATE SET size_bytes = s.size_bytes + excluded.size_bytes`,
      },
      {
        items: [...this.#traffic.values()],
        text: `INSERT INTO ${table('usage_traffic')} AS t
            SELECT * FROM json_to_recordset($1)
              AS r(account_id uuid, day text, ingress_bytes bigint, transfer_bytes bigint)
            ON CONFLICT (account_id, day) DO UPDATE SET
              ingress_bytes = t.ingress_bytes + excluded.ingress_bytes,
              transfer_bytes = t.transfer_bytes + excluded.transfer_bytes`,
      },
    ];
    if (this.#reopened.size === 0) return { lists };
    // Removes the storage that counted before the closing, if the closing is in this batch as well.
    const text = `DELETE FROM ${storage} WHERE repository_id IN (${ids})`;
    return { lists, before: (transaction) => runForList(transaction, [...this.#reopened], text) };
  }
}

/** Returns the account whose record an event belongs to; events of these streams always name it. */
function ownerOf({ accountId, stream, revision }: RecordedEvent): string {
  if (accountId === null) throw new TypeError(`${stream} revision ${revision} names no account`);
  return accountId;
}
