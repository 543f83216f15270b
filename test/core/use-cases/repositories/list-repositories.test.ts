/** Lists of repositories, and one repository in the same form. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ALL_REPOSITORIES } from '../../../../core/access-token/repository-selection.ts';
import { listRepositories, repositoryRow } from '../../../../core/use-cases/repositories/list-repositories.ts';
import { newAccount, newRepository } from '../../../support/accounts.ts';
import { startReading } from '../../../support/reading.ts';

const PAGE = { offset: 0, limit: 50 };

describe('A list of repositories', () => {
  test('has the same rows as single repositories, by name without regard to case', async () => {
    const { node, objects, account, repository, push } = await startReading();
    const [b, a] = [await repository('B', 'trunk'), await repository('a')];
    const other = await newAccount(node, 'bob');
    await newRepository(node, other, 'foreign');
    node.clock.advance(1_000);
    const pushed = await push(b, { 'refs/heads/trunk': objects.commit({ tree: objects.tree({}), seconds: 1 }) });
    const list = await listRepositories(node, {
      account,
      selection: ALL_REPOSITORIES,
      seen: pushed.entity.position,
      page: PAGE,
    });
    assert.deepEqual(list, { items: [repositoryRow(a), repositoryRow(pushed)], total: 2 });
    assert.deepEqual([list.items[1]?.defaultBranch, list.items[1]?.pushedAt], ['trunk', node.clock.now()]);
  });

  test('holds only repositories that the caller may see, page by page, and counts no others', async () => {
    const { node, account, repository } = await startReading();
    const [a, , c] = [await repository('a'), await repository('b'), await repository('c')];
    const selection = { scope: 'SELECTED_REPO', repositoryIds: [c.id, a.id] } as const;
    const wanted = { account, selection, seen: await node.entities.barrier() };
    const page = await listRepositories(node, { ...wanted, page: { offset: 1, limit: 1 } });
    assert.deepEqual(page, { items: [repositoryRow(c)], total: 2 });
    const none = await listRepositories(node, {
      ...wanted,
      selection: { ...selection, repositoryIds: [] },
      page: PAGE,
    });
    assert.deepEqual(none, { items: [], total: 0 });
  });

  test('waits until the model includes the log that the caller has seen', async () => {
    const { node, account } = await startReading();
    const seen = await node.entities.barrier();
    const order: string[] = [];
    const readModels: typeof node.readModels = {
      ...node.readModels,
      caughtUp: async (position) => void order.push(`seen ${position === seen}`),
      repositories: async () => {
        order.push('read');
        return { items: [], total: 0 };
      },
    };
    await listRepositories({ readModels }, { account, selection: ALL_REPOSITORIES, seen, page: PAGE });
    assert.deepEqual(order, ['seen true', 'read']);
  });
});
