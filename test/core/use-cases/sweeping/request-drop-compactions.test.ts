/** The policy that asks for dropping compactions, over repositories of the real git. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, type TestContext, test } from 'vitest';
import type { RepositoryId } from '../../../../core/kernel/ids.ts';
import { decideRepository } from '../../../../core/repository/decide.ts';
import { repositories } from '../../../../core/repository/evolve.ts';
import { execute } from '../../../../core/runtime/execute.ts';
import { dropUnreached } from '../../../../core/use-cases/compacting/drop-unreached.ts';
import { deleteRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { askForDrops } from '../../../../core/use-cases/sweeping/request-drop-compactions.ts';
import { accepted } from '../../../support/accounts.ts';
import { startGitReading } from '../../../support/git-reading.ts';
import { layersIn } from '../../../support/layers-in.ts';
import { createMemoryPolicyMarks } from '../../../support/memory/delivery-store.ts';
import { CAUSE } from '../../../support/node.ts';

const NEVER = new AbortController().signal;
const RETENTION_MS = 30 * 24 * 60 * 60_000;

async function fixture(context: TestContext) {
  const reading = await startGitReading();
  context.onTestFinished(() => reading.close());
  const { node, git, account, database } = reading;
  const wanted: RepositoryId[] = [];
  const want = async ({ repository }: { readonly repository: RepositoryId }): Promise<void> => {
    wanted.push(repository);
  };
  const asking = { ...node, marks: createMemoryPolicyMarks(), compactions: { want }, retentionMs: RETENTION_MS };
  const { id } = await reading.current();
  const force = () => reading.push({ 'refs/heads/main': git.commit({ file: randomBytes(200) }, { parents: [] }) });
  const drop = () =>
    dropUnreached(
      {
        ...{ ...node, layers: layersIn(database.layers), objects: database.database },
        ...{ failpoint: async () => undefined, retentionMs: RETENTION_MS, notifiedTo: async () => null },
      },
      { account, repository: id },
      NEVER,
    );
  /** Runs the policy, and returns how often it asked. */
  const ask = async (): Promise<number> => {
    const before = wanted.length;
    await askForDrops(asking, NEVER);
    assert.ok(wanted.every((repository) => repository === id));
    return wanted.length - before;
  };
  return { reading, clock: node.clock, force, drop, ask };
}

describe('A dropping compaction is asked for', () => {
  test('when the retention has passed since a push left something, and not before', async (context) => {
    const { clock, force, ask } = await fixture(context);
    await force();
    clock.advance(RETENTION_MS);
    assert.equal(await ask(), 0, 'the first push left nothing');
    await force();
    clock.advance(RETENTION_MS - 1);
    assert.equal(await ask(), 0);
    clock.advance(1);
    assert.equal(await ask(), 1);
    assert.equal(await ask(), 0, 'the event is passed');
  });

  test('again for what the last one kept, a retention after it, though nobody pushes any more', async (context) => {
    const { clock, force, drop, ask } = await fixture(context);
    await force();
    await force();
    clock.advance(RETENTION_MS - 5);
    await force();
    clock.advance(5);
    assert.equal(await ask(), 1);
    assert.equal(await drop(), 'dropped');
    clock.advance(RETENTION_MS - 5);
    assert.equal(await ask(), 0, 'the second forced push is old enough, but this repository was rewritten lately');
    clock.advance(5);
    assert.equal(await ask(), 1);
    assert.equal(await drop(), 'dropped');
    clock.advance(10 * RETENTION_MS);
    assert.equal(await ask(), 0, 'clean');
  });

  test('once within the retention, however many forced pushes come', async (context) => {
    const { clock, force, drop, ask } = await fixture(context);
    await force();
    let drops = 0;
    for (let n = 0; n < 12; n += 1) {
      await force();
      clock.advance(RETENTION_MS / 4);
      if ((await ask()) > 0 && (await drop()) === 'dropped') drops += 1;
    }
    assert.equal(drops, 3);
  });

  test('not for a repository that was deleted', async (context) => {
    const { reading, clock, force, ask } = await fixture(context);
    await force();
    await force();
    const { node, account } = reading;
    await deleteRepository(node, { account, cause: CAUSE }, (await reading.current()).id);
    clock.advance(RETENTION_MS);
    assert.equal(await ask(), 0);
  });

  test('when it comes back, for what passed the retention while it was deleted', async (context) => {
    const { reading, clock, force, ask } = await fixture(context);
    await force();
    await force();
    const { node, account } = reading;
    const { id } = await reading.current();
    clock.advance(RETENTION_MS - 5);
    await deleteRepository(node, { account, cause: CAUSE }, id);
    clock.advance(5);
    assert.equal(await ask(), 0);
    const origin = { account, cause: CAUSE };
    accepted(
      await execute(node, repositories, id, origin, (state) => decideRepository(state, { type: 'ReopenRepository' })),
    );
    assert.equal(await ask(), 1);
    assert.equal(await ask(), 0);
  });
});
