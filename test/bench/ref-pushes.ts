/**
 * Makes repositories of many refs by pushes over HTTP.
 *
 * Invariants: the refs come by pushes of `REFS_PER_PUSH`, not in the order of their names.
 */
import { rawPack } from '../support/raw-pack.ts';
import type { Account } from '../support/strata.ts';
import { createRawClient } from './raw-client.ts';
import { createRepository, type Scene } from './scene.ts';
import type { SmallCommit } from './small-commits.ts';

const REFS_PER_PUSH = 10_000;

/** Half of the refs are branches, half tags. `main` is one of them. */
export async function pushRefs(
  scene: Scene,
  account: Account,
  { name, refs }: { readonly name: string; readonly refs: number },
  next: () => SmallCommit,
): Promise<void> {
  await createRepository(scene, account, name);
  const client = createRawClient(scene.port, account);
  const { id, pack } = next();
  await client.push(name, [{ name: 'refs/heads/main', before: null, after: id }], pack);
  for (let from = 1; from < refs; from += REFS_PER_PUSH) {
    const numbers = Array.from({ length: Math.min(REFS_PER_PUSH, refs - from) }, (_, index) => from + index);
    const created = numbers.map((number) => {
      const kind = number % 2 === 0 ? 'heads' : 'tags';
      return { name: `refs/${kind}/release-${(number * 7_919) % 1_000_003}`, before: null, after: id };
    });
    await client.push(name, created, rawPack([]));
  }
  client.close();
}
