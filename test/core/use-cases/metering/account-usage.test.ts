/** What an account has used, and what its plan allows. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { DEFAULT_PLANS } from '../../../../core/account/plans.ts';
import { uuid } from '../../../../core/kernel/ids.ts';
import { accountUsage } from '../../../../core/use-cases/metering/account-usage.ts';
import { accepted, codeOf, newAccount, newRepository, newToken } from '../../../support/accounts.ts';
import { startReading } from '../../../support/reading.ts';

describe('The usage of an account', () => {
  test('is what projections sum and what was sent since, each with the quota of the plan', async () => {
    const { node, objects, push } = await startReading();
    const account = await newAccount(node, 'free', 'FREE');
    const reader = { kind: 'token', id: (await newToken(node, account)).id } as const;
    const repository = await newRepository(node, account, 'r');
    const tip = objects.commit({ tree: objects.tree({}), seconds: 1 });
    await push(repository, { 'refs/heads/master': tip });
    node.transfer.add({ account, reader, repository: repository.id, sentBytes: 7, address: '' });
    await node.transfer.flush();
    node.transfer.add({ account, reader, repository: repository.id, sentBytes: 11, address: '' });
    const { FREE } = DEFAULT_PLANS;
    assert.deepEqual(accepted(await accountUsage(node, account, await node.entities.barrier())), {
      repositories: { used: 1, quota: FREE.repos },
      storageBytes: { used: 0, quota: FREE.storage_bytes },
      transferBytes: { used: 18, quota: FREE.transfer_bytes },
      ingressBytes: { used: 1_000, quota: FREE.ingress_bytes },
    });
  });

  test('has no quota if the plan has none', async () => {
    const { node, account } = await startReading();
    const usage = accepted(await accountUsage(node, account, await node.entities.barrier()));
    assert.deepEqual(
      Object.values(usage).map(({ quota }) => quota),
      [null, null, null, null],
    );
  });

  test('waits until the sums include the log that the caller has seen', async () => {
    const { node, account } = await startReading();
    const order: string[] = [];
    const seen = await node.entities.barrier();
    const watched = {
      ...node,
      readModels: { caughtUp: async (position: typeof seen) => void order.push(`seen ${position === seen}`) },
      usage: {
        usageOf: async (id: typeof account) => {
          order.push('sums');
          return node.usage.usageOf(id);
        },
      },
    };
    accepted(await accountUsage(watched, account, seen));
    assert.deepEqual(order, ['seen true', 'sums']);
  });

  test('is refused for an account that does not exist', async () => {
    const { node } = await startReading();
    const nobody = uuid<Parameters<typeof accountUsage>[1]>('0190f3e2-7c1a-7b4e-9a35-00000000dead');
    assert.equal(codeOf(await accountUsage(node, nobody, await node.entities.barrier())), 'account-not-found');
  });
});
