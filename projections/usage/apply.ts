/**
 * Folds repositories, pushes and transfer into what an account uses.
 *
 * Invariants: ingress counts on the day on which the push was committed or refused, transfer on the day on which it was
 * sent. The storage of a repository on platform storage counts until its layers leave it, also after the deletion; that
 * of one in a bucket of a user never counts. Transfer is what `UsageRecorded` sums of each day, and the minutes since:
 * a `UsageRecorded` takes the place of what was appended up to its day. So the model is the same when the events that
 * it sums are pruned. Layers that were taken out of a list wait until they are let go, and then until they have left
 * storage, which the readers know by the marks of the policies that remove them.
 */
import { accountEventKinds } from '../../core/account/events.ts';
import { readEvent } from '../../core/kernel/decider.ts';
import { categoryOf, entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../../core/repository/events.ts';
import { grownBytes, layersChangeOf } from '../../core/repository/layers.ts';
import { usageEventKinds } from '../../core/usage/events.ts';
import { waitingChangeOf } from '../../core/usage/waiting-storage.ts';
import { removeAged } from '../runner/bulk.ts';
import type { Projection, TableOf, Write } from '../runner/projection.ts';
import { UnsummedChanges } from '../unsummed-transfer.ts';
import { leaving, usageTables } from './table.ts';

export const usageProjection: Projection = {
  name: 'usage',
  version: 9,
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

interface WaitingLayers {
  readonly layer_id: string;
  readonly repository_id: string;
  readonly account_id: string;
  readonly size_bytes: number;
  readonly by_purge: boolean;
  readonly taken_at: string;
  readonly position: string | null;
}

/** When layers were let go. */
interface Leaving {
  readonly leaves_at: string;
  readonly leaves_position: string | null;
}

class Changes {
  readonly #waiting = new Map<string, WaitingLayers>();
  /** Layers that wait in the table until they are let go. */
  readonly #letGo = new Map<string, Leaving & { readonly layer_id: string }>();
  readonly #leaving = new Map<string, WaitingLayers & Leaving>();
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
    for (const { day, sent_bytes, received_bytes } of transfer) {
      const traffic = this.#trafficOf(account, day);
      traffic.transfer_bytes += sent_bytes;
      traffic.ingress_bytes += received_bytes;
    }
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
    this.#addWaiting(recorded, event);
    // Only those layers that were current count as they leave storage: what a compaction replaced counts no more.
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

  #addWaiting(recorded: RecordedEvent, event: RepositoryEvent): void {
    const { replaced, purged, letGo, isPurge } = waitingChangeOf(recorded, event);
    const at = recorded.occurredAt;
    const position = String(recorded.position);
    const about = { repository_id: entityIdOf(recorded.stream), account_id: ownerOf(recorded), taken_at: at };
    if (replaced !== null) {
      const { layerId, sizeBytes, byPurge } = replaced;
      const sized = { layer_id: layerId, size_bytes: sizeBytes, by_purge: byPurge };
      this.#waiting.set(layerId, { ...about, ...sized, position });
    }
    const leaves = { leaves_at: at, leaves_position: isPurge ? position : null };
    for (const layer of letGo) {
      const waited = this.#waiting.get(layer);
      if (waited === undefined) this.#letGo.set(layer, { layer_id: layer, ...leaves });
      else this.#leaving.set(layer, { ...waited, ...leaves });
      this.#waiting.delete(layer);
    }
    if (purged !== null) {
      const { layerId, sizeBytes, byPurge } = purged;
      const sized = { layer_id: layerId, size_bytes: sizeBytes, by_purge: byPurge, position: null };
      this.#leaving.set(layerId, { ...about, ...sized, ...leaves });
    }
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
      ...this.#waitingLists(table),
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
    const times = [...this.#letGo.values(), ...this.#leaving.values()].map(({ leaves_at }) => leaves_at);
    if (times.length === 0) return { lists };
    return { lists, before: (transaction) => removeAged(transaction, table(leaving.name), leaving, times) };
  }

  #waitingLists(table: TableOf): Write['lists'] {
    const waits = table('usage_waiting');
    const leaves = table('usage_leaving');
    const letGo = [...this.#letGo.values()];
    const goes = `json_to_recordset($1) AS r(layer_id uuid, leaves_at text, leaves_position bigint)`;
    const columns = `layer_id uuid, repository_id uuid, account_id uuid, size_bytes bigint, by_purge boolean,
              taken_at text, position bigint`;
    return [
      {
        items: [...this.#waiting.values()],
        text: `INSERT INTO ${waits} SELECT * FROM json_to_recordset($1) AS r(${columns})`,
      },
      {
        items: letGo,
        text: `INSERT INTO ${leaves} SELECT w.*, r.leaves_at, r.leaves_position FROM ${goes} JOIN ${waits} AS w USING (layer_id)`,
      },
      { items: letGo, text: `DELETE FROM ${waits} AS w USING ${goes} WHERE w.layer_id = r.layer_id` },
      {
        items: [...this.#leaving.values()],
        text: `INSERT INTO ${leaves} SELECT * FROM json_to_recordset($1)
              AS r(${columns}, leaves_at text, leaves_position bigint)`,
      },
    ];
  }
}

/** Returns the account whose record an event belongs to; events of these streams always name it. */
function ownerOf({ accountId, stream, revision }: RecordedEvent): string {
  if (accountId === null) throw new TypeError(`${stream} revision ${revision} names no account`);
  return accountId;
}
