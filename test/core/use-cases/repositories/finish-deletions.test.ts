/** The policy finishes an interrupted deletion, but not before the request that began it had time to finish. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import { createDeletionFinisher } from '../../../../core/use-cases/repositories/finish-deletions.ts';
import { createApiFixture } from '../../../support/api-fixture.ts';

/** An API whose next deletion stops between its two appends. */
async function cutInHalf() {
  let dying = true;
  const fixture = await createApiFixture({
    failpoint: async (point) => {
      if (dying && point === 'repository-closed') throw new Error('the process died');
    },
  });
  const account = await fixture.account('ada');
  const token = await fixture.token(account);
  const repository = await fixture.repository(account, 'project');
  const died = await fixture.request('DELETE', '/v1/repos/ada/project', token);
  assert.equal(died.statusCode, 500);
  dying = false;
  const create = () => fixture.request('POST', '/v1/repositories', token, { body: { name: 'project' } });
  return { fixture, token, repository, create };
}

const deletionsOf = async ({ context }: Awaited<ReturnType<typeof cutInHalf>>['fixture']) =>
  (await context.events.readAll(LOG_START, 100))
    .filter(({ type }) => type === 'RepositoryDeleted')
    .map(({ actor, data }) => [actor.kind, data['repository_id']]);

test('a repository whose deletion was interrupted is gone, and the policy releases its name', async () => {
  const { fixture, token, repository, create } = await cutInHalf();
  assert.equal((await fixture.request('GET', '/v1/repos/ada/project', token)).statusCode, 404);
  const finish = createDeletionFinisher(fixture.context);
  await finish();
  assert.deepEqual(await deletionsOf(fixture), [], 'the request that closed it may still be under way');
  await finish();
  assert.deepEqual(await deletionsOf(fixture), [['system', repository.id]]);
  await finish();
  await finish();
  assert.equal((await deletionsOf(fixture)).length, 1);
  assert.equal((await create()).statusCode, 201);
  await fixture.close();
});

test('a request that needs the name of a repository whose deletion was interrupted gets it immediately', async () => {
  const { fixture, repository, create } = await cutInHalf();
  assert.equal((await create()).statusCode, 201);
  assert.deepEqual(await deletionsOf(fixture), [['token', repository.id]]);
  await fixture.close();
});

test('two nodes that finish the same deletion delete it only once', async () => {
  const { fixture, create } = await cutInHalf();
  const nodes = [createDeletionFinisher(fixture.context), createDeletionFinisher(fixture.context)];
  for (let round = 0; round < 2; round += 1) await Promise.all(nodes.map((finish) => finish()));
  const log = await fixture.context.events.readAll(LOG_START, 100);
  assert.equal(log.filter(({ type }) => type === 'RepositoryDeleted').length, 1);
  assert.equal((await create()).statusCode, 201);
  await fixture.close();
});
