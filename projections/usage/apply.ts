/**
 * Folds repositories, pushes and transfer into what an account uses.
 *
 * Must stay true: ingress counts on the day on which the push was committed, transfer on the day on which it was sent. The
 * storage of a repository on platform storage counts until its layers leave it, also after the deletion; that of one in a
 * bucket of a user never counts. Transfer is what `UsageRecorded` sums of each day, and the minutes since: a `UsageRecorded`
 * takes the place of what was appended up to its day. So the model is the same when the events that it sums are pruned.
 */
import { accountEventKinds } from '../../core/account/events.ts';
import { readEvent } from '../../core/kernel/decider.ts';
import { categoryOf, entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../../core/repository/events.ts';
import { grownBytes, layersChangeOf } from '../../core/repository/layers.ts';
import { usageEventKinds } from '../../core/usage/events.ts';
import type { Projection, TableOf, Write } from '../runner/projection.ts';
import { UnsummedChanges } from '../unsummed-transfer.ts';
import { usageTables } from './table.ts';

export const usageProjection: Projection = {
  name: 'usage',
  version: 7,
  categories: ['account', 'repository', 'transfer', 'usage'],
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

interface CountedRepository {
  readonly repository_id: string;
  readonly account_id: string;
  readonly storage_bucket_id: string | null;
  readonly deleted: boolean;
}

class Changes {
  readonly #listed = new Map<string, CountedRepository>();
  readonly #deleted = new Set<string>();
  readonly #storage = new Map<string, { repository_id: string; account_id: string; size_bytes: number }>();
  readonly #stored = new Map<string, number>();
  readonly #unsummed = new UnsummedChanges();
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
      case 'transfer':
        this.#unsummed.addTransfer(ownerOf(recorded), recorded);
        break;
      case 'usage':
        this.#addSums(recorded);
        break;
    }
  }

  #addSums(recorded: RecordedEvent): void {
    const account = ownerOf(recorded);
    this.#unsummed.addSums(account, recorded);
    const { transfer } = readEvent(usageEventKinds, recorded).data;
    for (const { day, sent_bytes } of transfer) this.#trafficOf(account, day).transfer_bytes += sent_bytes;
  }

  #addAccountEvent(recorded: RecordedEvent): void {
    const event = readEvent(accountEventKinds, recorded);
    if (event.type === 'RepositoryCreated' || event.type === 'RepositoryRestored') {
      const { repository_id, storage_bucket_id } = event.data;
      this.#deleted.delete(repository_id);
      const account_id = entityIdOf(recorded.stream);
      this.#listed.set(repository_id, { repository_id, account_id, storage_bucket_id, deleted: false });
    } else if (event.type === 'RepositoryDeleted') {
      const { repository_id } = event.data;
      const listed = this.#listed.get(repository_id);
      if (listed === undefined) this.#deleted.add(repository_id);
      else this.#listed.set(repository_id, { ...listed, deleted: true });
    }
  }

  #addRepositoryEvent(recorded: RecordedEvent): void {
    const event = readEvent<RepositoryEvent>(repositoryEventKinds, recorded);
    if (event.type === 'RefsUpdated') {
      this.#trafficOf(ownerOf(recorded), dayOf(recorded.occurredAt)).ingress_bytes += event.data.received_bytes;
    }
    // Of the layers that leave storage, only those count that were current: what a compaction replaced counts no more.
    const change = layersChangeOf(event);
    if (change === null) return;
    const id = entityIdOf(recorded.stream);
    const account = ownerOf(recorded);
    const grown = grownBytes(change);
    const stored = this.#storage.get(id) ?? { repository_id: id, account_id: account, size_bytes: 0 };
    stored.size_bytes += grown;
    this.#storage.set(id, stored);
    this.#stored.set(account, (this.#stored.get(account) ?? 0) + grown);
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
    const lists = [
      {
        items: [...this.#deleted],
        text: `UPDATE ${repositories} SET deleted = true
            WHERE repository_id IN (SELECT value::uuid FROM json_array_elements_text($1))`,
      },
      {
        items: [...this.#listed.values()],
        text: `INSERT INTO ${repositories} SELECT * FROM json_to_recordset($1)
              AS r(repository_id uuid, account_id uuid, storage_bucket_id uuid, deleted boolean)
            ON CONFLICT (repository_id) DO UPDATE SET deleted = excluded.deleted`,
      },
      {
        items: [...this.#storage.values()],
        text: `INSERT INTO ${storage} AS s
            SELECT * FROM json_to_recordset($1) AS r(repository_id uuid, account_id uuid, size_bytes bigint)
            ON CONFLICT (repository_id) DO UPDATE SET size_bytes = s.size_bytes + excluded.size_bytes`,
      },
      {
        items: [...this.#stored].map(([account_id, size_bytes]) => ({ account_id, size_bytes })),
        text: `INSERT INTO ${table('usage_stored')} AS s
            SELECT * FROM json_to_recordset($1) AS r(account_id uuid, size_bytes bigint)
            ON CONFLICT (account_id) DO UPDATE SET size_bytes = s.size_bytes + excluded.size_bytes`,
      },
      ...this.#unsummed.toLists(table('usage_minutes'), table('usage_recorded')),
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
    return { lists };
  }
}

/** Returns the account whose record an event belongs to; events of these streams always name it. */
function ownerOf({ accountId, stream, revision }: RecordedEvent): string {
  if (accountId === null) throw new TypeError(`${stream} revision ${revision} names no account`);
  return accountId;
}
