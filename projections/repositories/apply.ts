/**
 * Folds account and repository streams into the list of repositories.
 *
 * Invariants: a batch is folded in memory first, so the number of statements does not grow with its events.
 */
import { type AccountEvent, accountEventKinds } from '../../core/account/events.ts';
import { isEventOf } from '../../core/account/facet.ts';
import { repositoryNameKey } from '../../core/account/names.ts';
import type { OwnedRepositoryEvent } from '../../core/account/repositories/events.ts';
import { ownedRepositories } from '../../core/account/repositories/evolve.ts';
import { readEvent } from '../../core/kernel/decider.ts';
import { categoryOf, entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { repositoryEventKinds } from '../../core/repository/events.ts';
import { grownBytes, layersChangeOf } from '../../core/repository/layers.ts';
import { runForList } from '../runner/bulk.ts';
import type { Projection, Queryable, TableOf, Write } from '../runner/projection.ts';
import { repositoryTables } from './table.ts';

export const repositoriesProjection: Projection = {
  name: 'repositories',
  version: 2,
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

/** The changes that a batch makes by the events of one repository's own stream. */
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
  readonly #renamed = new Map<string, Pick<CreatedRow, 'id' | 'name' | 'name_key'>>();
  readonly #contents = new Map<string, ContentsChange>();
  readonly #deleted = new Set<string>();
  readonly #reopened = new Set<string>();

  add(recorded: RecordedEvent): void {
    if (categoryOf(recorded.stream) === 'account') this.#addAccountEvent(recorded);
    else this.#addRepositoryEvent(recorded);
  }

  #addAccountEvent(recorded: RecordedEvent): void {
    const account = entityIdOf(recorded.stream);
    const event = readEvent<AccountEvent>(accountEventKinds, recorded);
    if (isEventOf(ownedRepositories, event)) this.#addListEvent(account, recorded.occurredAt, event);
    // The erasure of an account needs no case here: each of its repositories is deleted by an event of its own.
    else if (event.type === 'AccountCreated') {
      this.#owners.set(account, { account_id: account, username: event.data.username });
    }
  }

  #addListEvent(account: string, at: string, event: OwnedRepositoryEvent): void {
    const { repository_id: id } = event.data;
    switch (event.type) {
      case 'RepositoryCreated': {
        const { name, description, default_branch, storage_bucket_id } = event.data;
        this.#created.set(id, {
          id,
          account_id: account,
          name,
          name_key: repositoryNameKey(name),
          description,
          initial_default_branch: default_branch,
          storage_bucket_id,
          created_at: at,
        });
        break;
      }
      case 'RepositoryDescribed': {
        const { description } = event.data;
        const created = this.#created.get(id);
        if (created === undefined) this.#described.set(id, { id, description });
        else this.#created.set(id, { ...created, description });
        break;
      }
      case 'RepositoryRenamed': {
        const named = { id, name: event.data.name, name_key: repositoryNameKey(event.data.name) };
        const created = this.#created.get(id);
        if (created === undefined) this.#renamed.set(id, named);
        else this.#created.set(id, { ...created, ...named });
        break;
      }
      case 'RepositoryRestored': {
        const { name, description, default_branch, storage_bucket_id, created_at } = event.data;
        this.#created.set(id, {
          id,
          account_id: account,
          name,
          name_key: repositoryNameKey(name),
          description,
          initial_default_branch: default_branch,
          storage_bucket_id,
          created_at,
        });
        break;
      }
      case 'RepositoryDeleted':
        this.#created.delete(id);
        this.#described.delete(id);
        this.#renamed.delete(id);
        this.#contents.delete(id);
        this.#deleted.add(id);
        break;
    }
  }

  #addRepositoryEvent(recorded: RecordedEvent): void {
    const id = entityIdOf(recorded.stream);
    const event = readEvent(repositoryEventKinds, recorded);
    const change = this.#contents.get(id) ?? {
      id,
      default_branch: null,
      added_bytes: 0,
      pushed_at: null,
      closed: false,
    };
    this.#contents.set(id, change);
    const layersChange = layersChangeOf(event);
    if (layersChange !== null) change.added_bytes += grownBytes(layersChange);
    switch (event.type) {
      case 'RefsUpdated':
        change.pushed_at = recorded.occurredAt;
        break;
      case 'DefaultBranchChanged':
        change.default_branch = event.data.default_branch;
        break;
      case 'RepositoryClosed':
        change.closed = true;
        break;
      case 'RepositoryReopened': {
        const { default_branch, size_bytes, pushed_at } = event.data;
        this.#reopened.add(id);
        this.#contents.set(id, { id, default_branch, added_bytes: size_bytes, pushed_at, closed: false });
        break;
      }
      case 'LayersCompacted':
      case 'LayersExpired':
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
        items: [...this.#renamed.values()],
        text: `UPDATE ${repositories} AS r SET name = n.name, name_key = n.name_key
          FROM json_to_recordset($1) AS n(id uuid, name text, name_key text) WHERE r.id = n.id`,
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
    const emptied = [...gone, ...this.#reopened];
    const renamed = [...this.#renamed.keys()];
    if (emptied.length === 0 && renamed.length === 0) return { lists };
    // Deletions first: in the same batch a released name may have been taken again, and a repository may have returned.
    // The old names of renamed ones may be others' by now: until theirs is written, they have one that nobody can take.
    const before = async (transaction: Queryable): Promise<void> => {
      const ids = 'SELECT value::uuid FROM json_array_elements_text($1)';
      await runForList(transaction, gone, `DELETE FROM ${repositories} WHERE id IN (${ids})`);
      await runForList(transaction, emptied, `DELETE FROM ${contents} WHERE id IN (${ids})`);
      await runForList(transaction, renamed, `UPDATE ${repositories} SET name_key = '/' || id WHERE id IN (${ids})`);
    };
    return { lists, before };
  }
}
