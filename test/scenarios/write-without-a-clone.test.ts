/** Refs that are changed over REST on two real servers, as the real git sees them. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { beforeAll, describe, type TestContext, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';
import { createWebhook, type WebhookReceivers, webhookReceivers } from '../support/webhook-receiver.ts';

const ZERO = '0'.repeat(40);

describe('Without a clone', () => {
  const ending = suiteEnding();
  let nodes: readonly [Strata, Strata];
  let receivers: WebhookReceivers;
  let ada: Account;
  let names = 0;

  beforeAll(async () => {
    const shared = await sharedParts(ending);
    receivers = await webhookReceivers(ending);
    const { env } = receivers;
    nodes = await Promise.all([startNode(ending, shared, env), startNode(ending, shared, env)]);
    ada = await createAccount(nodes[0], 'ada');
  });

  /** A repository with two commits on `main`. */
  async function pushed(context: TestContext) {
    const name = `repository-${++names}`;
    const url = await createRepository(nodes[0], ada, name);
    const work = await newWorkTree(context);
    const first = (await git(work, ['rev-parse', 'HEAD'])).trim();
    const second = await commitFile(work, 'file', 'text\n');
    await git(work, ['push', '--quiet', url, 'main']);
    const change = (node: Strata, updates: readonly object[]) =>
      api(node, ada.token, 'POST', `/v1/repos/ada/${name}/refs`, { updates });
    const listed = async (): Promise<string> => git(work, ['ls-remote', url]);
    const tag = (node: Strata, body: object) => api(node, ada.token, 'POST', `/v1/repos/ada/${name}/tags`, body);
    return { name, url, work, first, second, change, tag, listed };
  }

  test('a branch and a tag begin at old commits, on whichever node, and a clone has them whole', async (context) => {
    const { url, first, second, change, listed } = await pushed(context);
    const made = await change(nodes[1], [
      { ref: 'refs/heads/old', expected: ZERO, after: first },
      { ref: 'refs/tags/v1', expected: ZERO, after: second },
    ]);
    assert.equal(made.status, 200, made.text);
    const branches = `${second}\trefs/heads/main\n${first}\trefs/heads/old\n`;
    assert.equal(await listed(), `${second}\tHEAD\n${branches}${second}\trefs/tags/v1\n`, 'the other node shows them');
    const clones = await tempDir(context);
    await git(clones, ['clone', '--quiet', '--mirror', url, 'back.git']);
    await git(path.join(clones, 'back.git'), ['fsck', '--full', '--strict']);
  });

  test('a branch moves only from the head that its writer saw, and back after a forced push', async (context) => {
    const { url, work, first, second, change, listed } = await pushed(context);
    await git(work, ['push', '--quiet', '--force', url, `${first}:main`]);
    const main = { ref: 'refs/heads/main', after: second };
    const late = await change(nodes[1], [{ ...main, expected: second }]);
    assert.deepEqual([late.status, (late.body as { readonly head: string }).head], [409, first]);
    const seen = await change(nodes[1], [{ ...main, expected: first }]);
    assert.equal(seen.status, 200, seen.text);
    assert.deepEqual((seen.body as { readonly updates: readonly object[] }).updates, [
      { ref: 'refs/heads/main', before: first, after: second, kind: 'fast-forward' },
    ]);
    assert.match(await listed(), new RegExp(`^${second}\tHEAD`));
  });

  test('a tag is made, and one that git has pushed is not moved', async (context) => {
    const { url, work, first, second, tag, listed } = await pushed(context);
    await git(work, ['tag', '-a', 'v2', '-m', 'two']);
    await git(work, ['push', '--quiet', url, 'v2']);
    const made = await tag(nodes[1], { name: 'v1', target: first, expected: ZERO });
    assert.equal(made.status, 201, made.text);
    const refused = await tag(nodes[1], { name: 'v2', target: second, expected: ZERO });
    assert.equal(refused.status, 409, refused.text);
    const tags = `${first}\trefs/tags/v1\n\\w+\trefs/tags/v2\n${second}\trefs/tags/v2\\^{}`;
    assert.match(await listed(), new RegExp(tags));
  });

  test('webhooks, the activity and the undo know a change as they know a push', async (context) => {
    const { first, second, change, name, listed } = await pushed(context);
    const receiver = await receivers.start();
    await createWebhook(nodes[0], ada, receiver.url, ['push']);
    const before = await listed();
    const made = await change(nodes[1], [{ ref: 'refs/heads/main', expected: second, after: first }]);
    const { event_id } = made.body as { readonly event_id: string };
    const [delivery] = await receiver.until(1);
    const { ref, before: from, after } = delivery?.payload ?? {};
    assert.deepEqual([ref, from, after], ['refs/heads/main', second, first]);
    const activity = await api(nodes[0], ada.token, 'GET', `/v1/repos/ada/${name}/activity`);
    const [row] = (activity.body as { readonly activity: readonly { readonly id: string; readonly kind: string }[] })
      .activity;
    assert.deepEqual([row?.id, row?.kind], [event_id, 'force-push']);
    const undone = await api(nodes[0], ada.token, 'POST', `/v1/repos/ada/${name}/restore`, {
      before_event_id: event_id,
    });
    assert.equal(undone.status, 200, undone.text);
    assert.equal(await listed(), before);
  });

  test('of writers who saw the same head one wins, and the others are told', async (context) => {
    const { first, second, change } = await pushed(context);
    const writers = Array.from({ length: 8 }, (_, index) => {
      const after = index % 2 === 0 ? first : null;
      return change(nodes[index < 4 ? 0 : 1], [{ ref: 'refs/heads/main', expected: second, after }]);
    });
    const statuses = (await Promise.all(writers)).map(({ status }) => status);
    assert.deepEqual(
      statuses.toSorted((one, other) => one - other),
      [200, 409, 409, 409, 409, 409, 409, 409],
    );
  });
});
