/**
 * Folds account and repository streams into the list of repositories.
 *
 * Must stay true: a batch is folded in memory first, so the number of statements does not grow with its events.
 */
import { accountEventKinds, type AccountEvent } from '../../core/account/events.ts';
import { repositoryNameKey } from '../../core/account/names.ts';
import { readEvent } from '../../core/kernel/decider.ts';
import { categoryOf, entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { repositoryEventKinds } from '../../core/repository/events.ts';
import { forAll } from '../runner/bulk.ts';
import type { Projection, Queryable, TableOf, Write } from '../runner/projection.ts';
import { repositoryTables } from './table.ts';

export const repositoriesProjection: Projection = {
  name: 'repositories',
  version: 1,
  categories: ['account', 'repository'],
  tables: repositoryTables,
  onPoison: 'park',
  open: (table) => ({
    prepare: async (events) => {
      const changes = new Changes();
      for (const event of events) changes.add(event);
      return changes.toWrite(table);
    },
  }),
};

/** What a batch makes of one repository's own stream. */
interface ContentsChange {
  id: string;
  default_branch: string | null;
  added_bytes: number;
  pushed_at: string | null;
  closed: boolean;
}

type CreatedRow = {
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  readonly name_key: string;
  readonly description: string | null;
  readonly initial_default_branch: string | null;
  readonly storage_bucket_id: string | null;
  readonly created_at: string;
};

class Changes {
  readonly #owners = new Map<string, { account_id: string; username: string }>();
  readonly #created = new Map<string, CreatedRow>();
  readonly #described = new Map<string, { id: string; description: string | null }>();
  readonly #contents = new Map<string, ContentsChange>();
  readonly #deleted = new Set<string>();

  add(recorded: RecordedEvent): void {
    if (categoryOf(recorded.stream) === 'account') this.#addAccountEvent(recorded);
    else this.#addRepositoryEvent(recorded);
  }

  #addAccountEvent(recorded: RecordedEvent): void {
    const account = entityIdOf(recorded.stream);
    const event = readEvent<AccountEvent>(accountEventKinds, recorded);
    switch (event.type) {
      case 'AccountCreated':
        this.#owners.set(account, { account_id: account, username: event.data.username });
        break;
      case 'RepositoryCreated': {
        const { repository_id: id, name, description, default_branch, storage_bucket_id } = event.data;
        this.#created.set(id, {
          ...{ id, account_id: account, name, name_key: repositoryNameKey(name), description },
          ...{ initial_default_branch: default_branch, storage_bucket_id, created_at: recorded.occurredAt },
        });
        break;
      }
      case 'RepositoryDescribed': {
        const { repository_id: id, description } = event.data;
        const created = this.#created.get(id);
        if (created === undefined) this.#described.set(id, { id, description });
        else this.#created.set(id, { ...created, description });
        break;
      }
      case 'RepositoryDeleted': {
        const { repository_id: id } = event.data;
        this.#created.delete(id);
        this.#described.delete(id);
        this.#contents.delete(id);
        this.#deleted.add(id);
        break;
      }
      case 'Abandoned':
      case 'PlanChanged':
      case 'PasswordChanged':
      case 'WebhookCreated':
      case 'WebhookUrlChanged':
      case 'WebhookEventsChanged':
      case 'WebhookActivated':
      case 'WebhookDeactivated':
      case 'WebhookSecretRotated':
      case 'WebhookDeleted':
      // Its repositories follow, each by an event of its own.
      case 'AccountErased':
        break;
    }
  }

  #addRepositoryEvent(recorded: RecordedEvent): void {
    const id = entityIdOf(recorded.stream);
    const event = readEvent(repositoryEventKinds, recorded);
    const change = this.#contents.get(id) ?? {
      ...{ id, default_branch: null, added_bytes: 0, pushed_at: null, closed: false },
    };
    this.#contents.set(id, change);
    switch (event.type) {
      case 'RefsUpdated':
        change.added_bytes += event.data.layer?.size_bytes ?? 0;
        change.pushed_at = recorded.occurredAt;
        break;
      case 'DefaultBranchChanged':
        change.default_branch = event.data.default_branch;
        break;
      case 'RepositoryClosed':
        change.closed = true;
        break;
    }
  }

  toWrite(table: TableOf): Write {
    const repositories = table('repositories');
    const contents = table('repository_contents');
    const gone = [...this.#deleted];
    const lists = [
      {
        items: [...this.#owners.values()],
        text: `INSERT INTO ${table('repository_owners')}
          SELECT * FROM json_to_recordset($1) AS r(account_id uuid, username text)`,
      },
      {
        items: [...this.#created.values()],
        text: `INSERT INTO ${repositories}
          SELECT * FROM json_to_recordset($1) AS r(id uuid, account_id uuid, name text, name_key text,
            description text, initial_default_branch text, storage_bucket_id uuid, created_at text)`,
      },
      {
        items: [...this.#described.values()],
        text: `UPDATE ${repositories} AS r SET description = d.description
          FROM json_to_recordset($1) AS d(id uuid, description text) WHERE r.id = d.id`,
      },
      {
        items: [...this.#contents.values()],
        text: `INSERT INTO ${contents} AS c (id, default_branch, size_bytes, pushed_at, closed)
          SELECT * FROM json_to_recordset($1)
            AS r(id uuid, default_branch text, added_bytes bigint, pushed_at text, closed boolean)
          ON CONFLICT (id) DO UPDATE SET
            default_branch = coalesce(excluded.default_branch, c.default_branch),
            size_bytes = c.size_bytes + excluded.size_bytes,
            pushed_at = coalesce(excluded.pushed_at, c.pushed_at),
            closed = c.closed OR excluded.closed`,
      },
    ];
    if (gone.length === 0) return { lists };
    // Deletions first: a name that was given back may have been taken again in the same batch.
    const before = async (transaction: Queryable): Promise<void> => {
      for (const from of [repositories, contents]) {
        const ids = 'SELECT value::uuid FROM json_array_elements_text($1)';
        await forAll(transaction, gone, `DELETE FROM ${from} WHERE id IN (${ids})`);
      }
    };
    return { lists, before };
  }
}
