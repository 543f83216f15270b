/** Fetches that are refused to a token are counted for its account, by their reason; pushes are not. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { type GitFixture, startGit } from '../../support/git-fixture.ts';

describe('A fetch that is refused', () => {
  let fixture: ApiFixture;
  let git: GitFixture;
  let owner: AccountId;

  beforeAll(async () => {
    fixture = await createApiFixture();
    owner = await fixture.account('ada');
    await fixture.repository(owner, 'engine');
    git = await startGit(fixture);
  });
  afterAll(async () => {
    await git.close();
    await fixture.close();
  });

  /** Asks for the refs, as a clone does first. */
  async function ask(token: TestToken, name: string, service = 'git-upload-pack'): Promise<number> {
    return (await git.request('GET', `/r/ada/${name}.git/info/refs?service=${service}`, token)).status;
  }

  async function counted(account: AccountId): Promise<readonly string[]> {
    await fixture.context.transfer.flush();
    const { refusedReads } = await fixture.readModels.unsummedSignIns(account);
    return refusedReads.map(({ tokenId, reason, count }) => `${tokenId} ${reason} ${count}`).toSorted();
  }

  test('is counted by the reason, also of a token that was revoked, and a refused push is not', async () => {
    const all = await fixture.token(owner);
    const lists = await fixture.token(owner, { grants: ['API_REPOS_READ'] });
    const revoked = await fixture.token(owner);
    await fixture.request('DELETE', `/v1/access-tokens/${revoked.id}`, all);
    assert.equal(await ask(all, 'engine'), 200);
    assert.equal(await ask(all, 'nothing'), 404);
    assert.equal(await ask(lists, 'engine'), 403);
    assert.equal(await ask(revoked, 'engine'), 401);
    assert.equal(await ask(lists, 'engine', 'git-receive-pack'), 403);
    assert.equal(await ask(revoked, 'engine', 'git-receive-pack'), 401);
    assert.deepEqual(
      await counted(owner),
      [`${all.id} repository-not-found 1`, `${lists.id} grant-missing 1`, `${revoked.id} token-revoked 1`].toSorted(),
    );
  });

  // The attack: a stranger fills the record of an account by fetching from it.
  test('is counted for the account of the token, never for that of the repository', async () => {
    const before = await counted(owner);
    const stranger = await fixture.account('mallory');
    const token = await fixture.token(stranger);
    assert.equal(await ask(token, 'engine'), 404);
    assert.deepEqual(await counted(stranger), [`${token.id} repository-not-found 1`]);
    assert.deepEqual(await counted(owner), before);
  });
});
