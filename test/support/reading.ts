/**
 * A repository for tests of the use cases that read: a node over in-memory ports, where a test can push between two
 * reads.
 */
import assert from 'node:assert/strict';
import { createKnownAnswers, type KnownAnswers } from '../../apps/front-door/known-answers.ts';
import type { AccountId, ObjectId } from '../../core/kernel/ids.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { ReadModels } from '../../core/ports/read-models.ts';
import { createTransferMeter, type TransferMeter } from '../../core/usage/meter.ts';
import { type FoundRepository, findRepositoryById } from '../../core/use-cases/repositories/repositories.ts';
import { newAccount, newRepository } from './accounts.ts';
import { createMemoryEventStore } from './memory/event-store.ts';
import { createMemoryObjects, type MemoryObjects } from './memory/object-database.ts';
import { appendPush } from './memory/pushes.ts';
import { createMemoryReadModels } from './memory/read-models.ts';
import { startNode, type TestNode } from './node.ts';

export interface ReadingNode extends TestNode, KnownAnswers {
  readonly readModels: ReadModels;
  readonly usage: ReadModels;
  readonly transfer: TransferMeter;
  readonly objects: MemoryObjects['database'];
}

export interface Reading {
  /** The context of every use case that reads. */
  readonly node: ReadingNode;
  readonly objects: MemoryObjects;
  readonly account: AccountId;
  /** Called before each read of branches or commits from the read model, so that a test can push at that moment. */
  beforeRead: (() => Promise<void>) | null;
  /** The number of reads of branches or commits from the read model so far. */
  modelReads: number;
  repository(name: string, defaultBranch?: string): Promise<FoundRepository>;
  /** Returns the repository as this node knows it now. */
  current(repository: FoundRepository): Promise<FoundRepository>;
  /** Moves refs as a push does and returns the repository after it; null deletes a ref. */
  push(repository: FoundRepository, updates: Readonly<Record<string, ObjectId | null>>): Promise<FoundRepository>;
}

export async function startReading(log: EventStore = createMemoryEventStore()): Promise<Reading> {
  const base = await startNode(log);
  const objects = createMemoryObjects();
  const models = createMemoryReadModels({ ...base, objects });
  const account = await newAccount(base, 'ada');
  const beforeRead = async (): Promise<void> => {
    reading.modelReads += 1;
    await reading.beforeRead?.();
  };
  const node: ReadingNode = {
    ...base,
    ...createKnownAnswers(),
    readModels: {
      ...models,
      branches: async (id) => {
        await beforeRead();
        return models.branches(id);
      },
      defaultBranchCommits: async (id, page) => {
        await beforeRead();
        return models.defaultBranchCommits(id, page);
      },
    },
    usage: models,
    transfer: createTransferMeter(
      { ...base, sourceAddressRef: async () => null, onFault: (cause) => assert.fail(String(cause)) },
      'test',
    ),
    objects: objects.database,
  };
  const current: Reading['current'] = async ({ accountId, id }) => {
    await base.entities.barrier();
    const found = await findRepositoryById(base, accountId, id);
    if (found === null) throw new Error(`Repository ${id} is not there`);
    return found;
  };
  const reading: Reading = {
    node,
    objects,
    account,
    beforeRead: null,
    modelReads: 0,
    current,
    repository: (name, defaultBranch) => newRepository(base, account, name, defaultBranch ?? null),
    push: async (repository, updates) => {
      await appendPush(base, objects, repository, updates);
      return current(repository);
    },
  };
  return reading;
}
