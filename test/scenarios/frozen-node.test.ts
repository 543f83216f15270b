/** A node that freezes while it leads, like a stopped process or a swapping machine: the others take over. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { cleanUp } from '../support/cleanup.ts';
import {
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

test('other nodes read the pushes before and after the node that wrote the read models froze', async (context) => {
  const shared = await sharedParts(context);
  // It starts alone, so that it leads every read model.
  const frozen = await startNode(context, shared);
  const ada = await createAccount(frozen, 'ada');
  const url = await createRepository(frozen, ada, 'project');
  const work = await newWorkTree(context);
  const other = await startNode(context, shared);
  const tip = async (strata: Strata): Promise<unknown> => {
    const answer = await api(strata, ada.token, 'GET', '/v1/repos/ada/project/branches');
    assert.equal(answer.status, 200, answer.text);
    return (answer.body as { branches: { commit: { hexsha: string } }[] }).branches[0]?.commit.hexsha;
  };

  await git(work, ['push', '--quiet', url, 'main']);
  frozen.process.kill('SIGSTOP');
  cleanUp(context, () => frozen.process.kill('SIGCONT'));
  // A reader waits as long as a node may be behind and then gets 503: another node must take the lead within that time.
  assert.equal(await tip(other), (await git(work, ['rev-parse', 'main'])).trim());
  const second = await commitFile(work, 'second', 'second\n');
  await git(work, ['push', '--quiet', gitUrl(other, ada, 'project'), 'main']);
  assert.equal(await tip(other), second);

  frozen.process.kill('SIGCONT');
  assert.equal(await tip(frozen), second);
  const third = await commitFile(work, 'third', 'third\n');
  await git(work, ['push', '--quiet', url, 'main']);
  assert.equal(await tip(frozen), third);
  assert.equal(await tip(other), third);
});
