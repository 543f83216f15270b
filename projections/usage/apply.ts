/**
 * Folds repositories, pushes and transfer into what an account uses.
 *
 * Must stay true: ingress counts in the month in which the push was committed, transfer in the month in which
 * it was sent; the storage of a repository counts until it is closed.
 */
import { accountEventKinds } from '../../core/account/events.ts';
import { readEvent } from '../../core/kernel/decider.ts';
import { categoryOf, entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { repositoryEventKinds } from '../../core/repository/events.ts';
import { transferEventKinds } from '../../core/transfer/events.ts';
import type { Projection, TableOf, Write } from '../runner/projection.ts';
import { usageTables } from './table.ts';

export const usageProjection: Projection = {
  name: 'usage',
  version: 1,
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

/** The month of an instant, `YYYY-MM`: instants are RFC 3339 in UTC. */
export function monthOf(instant: string): string {
  return instant.slice(0, 7);
}

class Changes {
  readonly #created = new Map<string, { repository_id: string; account_id: string }>();
  readonly #deleted = new Set<string>();
  readonly #storage = new Map<string, { repository_id: string; account_id: string; size_bytes: number }>();
  readonly #closed = new Set<string>();
  readonly #traffic = new Map<
    string,
    { account_id: string; month: string; ingress_bytes: number; transfer_bytes: number }
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
        this.#trafficOf(ownerOf(recorded), monthOf(minute)).transfer_bytes += sent_bytes;
        break;
      }
    }
  }

  #addAccountEvent(recorded: RecordedEvent): void {
    const event = readEvent(accountEventKinds, recorded);
    if (event.type === 'RepositoryCreated') {
      const { repository_id } = event.data;
      this.#created.set(repository_id, { repository_id, account_id: entityIdOf(recorded.stream) });
    } else if (event.type === 'RepositoryDeleted') {
      this.#created.delete(event.data.repository_id);
      this.#deleted.add(event.data.repository_id);
    }
  }

  #addRepositoryEvent(recorded: RecordedEvent): void {
    const id = entityIdOf(recorded.stream);
    const event = readEvent(repositoryEventKinds, recorded);
    if (event.type === 'RepositoryClosed') {
      this.#storage.delete(id);
      this.#closed.add(id);
    } else if (event.type === 'RefsUpdated') {
      const account = ownerOf(recorded);
      const { layer, received_bytes } = event.data;
      const stored = this.#storage.get(id) ?? { repository_id: id, account_id: account, size_bytes: 0 };
      stored.size_bytes += layer?.size_bytes ?? 0;
      this.#storage.set(id, stored);
      this.#trafficOf(account, monthOf(recorded.occurredAt)).ingress_bytes += received_bytes;
    }
  }

  #trafficOf(account: string, month: string): { ingress_bytes: number; transfer_bytes: number } {
    const key = `${account} ${month}`;
    let sums = this.#traffic.get(key);
    if (sums === undefined) {
      sums = { account_id: account, month, ingress_bytes: 0, transfer_bytes: 0 };
      this.#traffic.set(key, sums);
    }
    return sums;
  }

  /** No repository stands in two of the lists: its id is never used again. */
  toWrite(table: TableOf): Write {
    const repositories = table('usage_repositories');
    const storage = table('usage_storage');
    const ids = 'SELECT value::uuid FROM json_array_elements_text($1)';
    return {
      lists: [
        { items: [...this.#deleted], text: `DELETE FROM ${repositories} WHERE repository_id IN (${ids})` },
        {
          items: [...this.#created.values()],
          text: `INSERT INTO ${repositories}
            SELECT * FROM json_to_recordset($1) AS r(repository_id uuid, account_id uuid)`,
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
              AS r(account_id uuid, month text, ingress_bytes bigint, transfer_bytes bigint)
            ON CONFLICT (account_id, month) DO UPDATE SET
              ingress_bytes = t.ingress_bytes + excluded.ingress_bytes,
              transfer_bytes = t.transfer_bytes + excluded.transfer_bytes`,
        },
      ],
    };
  }
}

/** The account whose record an event belongs to; events of these streams always name it. */
function ownerOf({ accountId, stream, revision }: RecordedEvent): string {
  if (accountId === null) throw new TypeError(`${stream} revision ${revision} names no account`);
  return accountId;
}
