/**
 * A repository of the real git behind the use cases that read: pushes run the real use case on the real object
 * database, over a log in memory.
 */
import { join } from 'node:path';
import { DEFAULT_PLANS } from '../../core/account/plans.ts';
import { refName } from '../../core/git/ref-name.ts';
import type { Actor } from '../../core/kernel/envelope.ts';
import type { AccountId, ObjectId } from '../../core/kernel/ids.ts';
import { pushRefs } from '../../core/use-cases/pushing/push-refs.ts';
import { type FoundRepository, findRepositoryById } from '../../core/use-cases/repositories/repositories.ts';
import { newAccount, newRepository } from './accounts.ts';
import { type TestRepository, temporaryFolder, testRepository } from './git.ts';
import { layersIn } from './layers-in.ts';
import { createMemoryEventStore } from './memory/event-store.ts';
import { createMemoryObjects } from './memory/object-database.ts';
import { createMemoryReadModels, type MemoryReadModels } from './memory/read-models.ts';
import { CAUSE, startNode, type TestNode } from './node.ts';
import { once, type TestDatabase, testDatabase } from './object-database.ts';

export interface GitReading {
  readonly node: TestNode & {
    readonly objects: TestDatabase['database'];
    readonly readModels: MemoryReadModels;
  };
  readonly database: TestDatabase;
  readonly account: AccountId;
  /** The repository of a client. */
  readonly git: TestRepository;
  /** The repository as this node knows it now. */
  current(): Promise<FoundRepository>;
  /** Pushes as a client does; a refused push throws; null deletes a ref. Returns the repository after it. */
  push(refs: Readonly<Record<string, ObjectId | null>>, actor?: Actor): Promise<FoundRepository>;
  close(): Promise<void>;
}

export async function startGitReading(defaultBranch = 'main'): Promise<GitReading> {
  const folder = temporaryFolder('git-reading');
  const git = testRepository(join(folder.path, 'client'));
  const base = await startNode(createMemoryEventStore());
  const database = await testDatabase();
  const readModels = createMemoryReadModels({ ...base, objects: createMemoryObjects() });
  const node = { ...base, objects: database.database, readModels };
  const account = await newAccount(base, 'ada');
  const { id } = await newRepository(base, account, 'r', defaultBranch);
  const current: GitReading['current'] = async () => {
    await base.entities.barrier();
    const found = await findRepositoryById(base, account, id);
    if (found === null) throw new Error(`Repository ${id} is not there`);
    return found;
  };
  const push: GitReading['push'] = async (refs, actor = CAUSE.actor) => {
    const repository = await current();
    const known = repository.entity.state.refs;
    const commands = Object.entries(refs).map(([name, after]) => {
      const ref = refName(name);
      return { ref, before: known.get(ref)?.id ?? null, after };
    });
    const after = commands.flatMap((command) => command.after ?? []);
    const have = [...known.entries()].map(([, ref]) => `^${ref.id}`);
    const outcome = await pushRefs(
      {
        ...base,
        layers: layersIn(database.layers),
        objects: database.database,
        onLayer: () => undefined,
        usage: { usageOf: async () => ({ storageBytes: 0, transferBytes: 0, ingressBytes: 0 }) },
      },
      {
        repository,
        quotas: DEFAULT_PLANS.PRO,
        cause: { ...CAUSE, actor },
        guarding: async () => ({ guards: [] }),
        door: 'git',
        commands,
        refusedNames: 0,
        atomic: false,
        pushOptions: [],
        pack: after.length === 0 ? null : once(git.pack([...after, ...have])),
        receivedBytes: () => 500,
        signal: new AbortController().signal,
      },
    );
    if ('refused' in outcome) throw new Error(`The push was refused: ${JSON.stringify(outcome.refused)}`);
    const refusals = outcome.results.filter(({ code }) => code !== null);
    if (refusals.length > 0) throw new Error(`Refs were refused: ${JSON.stringify(refusals)}`);
    return current();
  };
  const close = async (): Promise<void> => {
    await base.entities.close();
    await database.close();
    folder.remove();
  };
  return { node, database, account, git, current, push, close };
}
