/** The list of branches is of one revision, whatever is committed between its reads. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ReadModelError } from '../../../../core/ports/read-models.ts';
import { listBranches } from '../../../../core/use-cases/reading/list-branches.ts';
import { versionOf } from '../../../../core/use-cases/reading/repository-view.ts';
import { changeRepository, deleteRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { accepted, codeOf } from '../../../support/accounts.ts';
import { appendPush } from '../../../support/memory/pushes.ts';
import { CAUSE } from '../../../support/node.ts';
import { type Reading, startReading } from '../../../support/reading.ts';
import { gate, type WatchedLog, watchLog } from '../../../support/watched-log.ts';

async function started(log?: WatchedLog) {
  const reading = await startReading(log);
  const tree = reading.objects.tree({});
  const first = reading.objects.commit({ tree, seconds: 1 });
  const second = reading.objects.commit({ tree, seconds: 2, parents: [first] });
  return { reading, first, second, repository: await reading.repository('r') };
}

/** Runs an action once, between reading the repository and reading its rows. */
function once(reading: Reading, act: () => Promise<unknown>): void {
  reading.beforeRead = async () => {
    reading.beforeRead = null;
    await act();
  };
}

describe('The list of branches', () => {
  test('is empty for a repository without refs, names its default branch, and queries no read model', async () => {
    const { reading, repository } = await started();
    const named = await reading.repository('named', 'trunk');
    assert.deepEqual(await listBranches(reading.node, repository), {
      version: versionOf(repository),
      defaultBranch: 'master',
      branches: [],
    });
    assert.equal(accepted(await listBranches(reading.node, named)).defaultBranch, 'trunk');
    assert.equal(reading.modelReads, 0);
  });

  test('has every branch with its commit in byte order, and no tag', async () => {
    const { reading, first, second, repository } = await started();
    const pushed = await reading.push(repository, {
      'refs/heads/ä': first,
      'refs/heads/a': second,
      'refs/heads/Z': first,
      'refs/tags/v1': first,
    });
    const { version, branches } = accepted(await listBranches(reading.node, pushed));
    assert.equal(version, versionOf(pushed));
    assert.deepEqual(
      branches.map(({ name, commit }) => [name, commit.id]),
      [
        ['Z', first],
        ['a', second],
        ['ä', first],
      ],
    );
  });

  test('is of the later revision if a push commits before its rows are read', async () => {
    const { reading, first, second, repository } = await started();
    const known = await reading.push(repository, { 'refs/heads/master': first });
    const origin = { account: reading.account, cause: CAUSE };
    once(reading, async () => {
      await reading.push(repository, { 'refs/heads/trunk': second });
      accepted(await changeRepository(reading.node, origin, repository.id, { defaultBranch: 'trunk' }));
    });
    const list = accepted(await listBranches(reading.node, known));
    assert.equal(list.version, versionOf(await reading.current(repository)));
    assert.notEqual(list.version, versionOf(known));
    assert.equal(list.defaultBranch, 'trunk');
    assert.deepEqual(
      list.branches.map(({ name }) => name),
      ['master', 'trunk'],
    );
  });

  test("is of the model's revision if the caller found an older one", async () => {
    const { reading, first, second, repository } = await started();
    const known = await reading.push(repository, { 'refs/heads/master': first });
    const newer = await reading.push(repository, { 'refs/heads/master': second });
    const list = accepted(await listBranches(reading.node, known));
    assert.equal(list.version, versionOf(newer));
    assert.deepEqual(
      list.branches.map(({ commit }) => commit.id),
      [second],
    );
  });

  test('includes a push that this node has not received, if the model has', async () => {
    const log = watchLog();
    const { reading, first, second, repository } = await started(log);
    const known = await reading.push(repository, { 'refs/heads/master': first });
    const delivery = gate();
    log.on.deliver = () => delivery.passed;
    await appendPush(reading.node, reading.objects, repository, { 'refs/heads/master': second });
    const list = accepted(await listBranches(reading.node, known));
    delivery.open();
    assert.equal(list.version, versionOf(await reading.current(repository)));
    assert.deepEqual(
      list.branches.map(({ commit }) => commit.id),
      [second],
    );
  });

  test('is refused if the repository is deleted before its rows are read', async () => {
    const { reading, first, repository } = await started();
    const known = await reading.push(repository, { 'refs/heads/master': first });
    const origin = { account: reading.account, cause: CAUSE };
    once(reading, () => deleteRepository(reading.node, origin, repository.id));
    assert.equal(codeOf(await listBranches(reading.node, known)), 'repository-not-found');
  });

  test('fails as behind after ten reads if the model and the log never agree', async () => {
    const { reading, first, second, repository } = await started();
    await reading.push(repository, { 'refs/heads/master': first });
    const { readModels } = reading.node;
    const stale = await readModels.branches(repository.id);
    const known = await reading.push(repository, { 'refs/heads/master': second });
    let reads = 0;
    const branches = async () => {
      reads += 1;
      return stale;
    };
    const node = { ...reading.node, readModels: { ...readModels, branches } };
    await assert.rejects(
      listBranches(node, known),
      (error) => error instanceof ReadModelError && error.code === 'read-model-behind',
    );
    assert.equal(reads, 10);
  });

  test('waits until the model includes the log that the caller has seen', async () => {
    const { reading, first, repository } = await started();
    const known = await reading.push(repository, { 'refs/heads/master': first });
    const waited: bigint[] = [];
    const { readModels } = reading.node;
    const node = {
      ...reading.node,
      readModels: {
        ...readModels,
        caughtUp: async (position: Parameters<typeof readModels.caughtUp>[0]) => {
          assert.equal(reading.modelReads, 0);
          waited.push(position);
        },
      },
    };
    accepted(await listBranches(node, known));
    assert.deepEqual(waited, [known.entity.position]);
  });
});
