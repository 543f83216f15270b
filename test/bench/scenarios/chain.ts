/**
 * The commits of a chain as the operations of a line: each client brings them to a repository of its own.
 *
 * Invariants: new repositories are made before the chain runs out.
 */
import type { Operation } from '../operation.ts';
import type { Repository, Side } from '../sides/side.ts';
import type { BenchContext, PreparedWorkload } from './scenario.ts';

/** Brings the commits of the context's chain to repositories, which have its first one after the start. */
export interface ChainBringer {
  /** Returns the operation that brings the next commit to the repository with this index; null at the chain's end. */
  next(repository: number): Operation | null;
  /** Returns the branch's tip after the operations returned so far. */
  tip(repository: number): string;
  /** Returns the number of commits not returned yet. */
  remaining(repository: number): number;
}

export type StartBringer = (
  context: BenchContext,
  side: Side,
  repositories: readonly Repository[],
) => Promise<ChainBringer>;

interface Chained {
  /** Begins the names of the repositories. */
  readonly purpose: string;
  readonly clients: number;
  readonly start: StartBringer;
}

export async function prepareChain(
  context: BenchContext,
  side: Side,
  { purpose, clients, start }: Chained,
): Promise<PreparedWorkload> {
  let generation = 0;
  let repositories: readonly Repository[] = [];
  let bringer: ChainBringer | null = null;
  let remainingBefore = 0;

  const remaining = (): number =>
    bringer === null ? 0 : Math.min(...repositories.map((_, index) => bringer?.remaining(index) ?? 0));
  const removeAll = async (): Promise<void> => {
    for (const repository of repositories) await side.removeRepository(repository);
  };
  const begin = async (): Promise<void> => {
    await removeAll();
    generation += 1;
    const made: Repository[] = [];
    for (let index = 0; index < clients; index += 1) {
      made.push(await side.createRepository(`${purpose}-${generation}-${index}`, context.project));
    }
    repositories = made;
    bringer = await start(context, side, made);
    remainingBefore = remaining();
  };

  await begin();
  return {
    async replenish() {
      const left = remaining();
      // One fifth more than the last round used, or this round could end early.
      if (left < (remainingBefore - left) * 1.2) await begin();
      remainingBefore = remaining();
    },
    next: (client) => bringer?.next(client) ?? null,
    dispose: removeAll,
  };
}

/** Takes the commits of a chain in order, for each of some repositories, from the second one on. */
export function chainBringer(
  commits: readonly string[],
  repositories: readonly Repository[],
  operationOf: (repository: Repository, index: number) => Operation,
): ChainBringer {
  const next = repositories.map(() => 1);
  return {
    next(number) {
      const repository = repositories[number];
      const index = next[number] ?? commits.length;
      if (repository === undefined || index >= commits.length) return null;
      next[number] = index + 1;
      return operationOf(repository, index);
    },
    tip: (number) => commits[(next[number] ?? 1) - 1] ?? '',
    remaining: (number) => commits.length - (next[number] ?? 0),
  };
}
