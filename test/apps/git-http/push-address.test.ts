/** The source address that the event of a push names, by its vault record. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createApiFixture } from '../../support/api-fixture.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { startGit } from '../../support/git-fixture.ts';
import { git, newWorkTree } from '../../support/strata.ts';

test('The source address of a push is asked for again at its commit, since its record may be gone by then', async (context) => {
  const fixture = await createApiFixture();
  cleanUp(context, () => fixture.close());
  const ada = await fixture.account('ada');
  const repository = await fixture.repository(ada, 'engine');
  const commit = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 1 });
  await fixture.push(repository, { 'refs/heads/main': commit });
  let asked = 0;
  const server = await startGit(fixture, { sourceAddressRef: async () => `record ${(asked += 1)}` });
  cleanUp(context, () => server.close());
  const { secret } = await fixture.token(ada);
  const url = server.url.replace('://', `://ada:${secret}@`);
  await git(await newWorkTree(context), ['push', '--quiet', `${url}/r/ada/engine.git`, ':main']);
  const { events } = fixture.context;
  const stream = `repository-${repository.id}` as const;
  const [deleted] = await events.readStream(stream as never, { direction: 'backwards', limit: 1 });
  assert.equal(deleted?.sourceAddressRef, 'record 2');
});
