/** Annotated tags that are made over REST on a real server, as the real git sees them. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { NEW_MESSAGE_BYTES_MAX } from '../../apps/api/schemas/new-commits.ts';
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

const ZERO = '0'.repeat(40);

interface Made {
  readonly name: string;
  readonly target: string;
  readonly type: string;
  readonly annotated: boolean;
  readonly message: string | null;
  readonly tagger: { readonly name: string; readonly email: string } | null;
  readonly event_id: string | null;
}

describe('An annotated tag over REST', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let work: string;
  let url: string;
  let head: string;

  const read = async (...args: string[]): Promise<string> => (await git(work, args)).trim();
  const send = (body: object) =>
    api(strata, ada.token, 'POST', '/v1/repos/ada/tagged/tags', { target: head, expected: ZERO, ...body });
  const made = async (body: object): Promise<Made> => {
    const answer = await send(body);
    assert.equal(answer.status, 201, answer.text);
    return answer.body as Made;
  };
  const fetched = () => git(work, ['fetch', '--quiet', '--force', url, 'refs/tags/*:refs/tags/*']);

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
    work = await newWorkTree(ending);
    url = await createRepository(strata, ada, 'tagged');
    head = await commitFile(work, 'folder/file', 'bytes\n');
    await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/main']);
  });

  test('is what git would have made, and what the list shows', async () => {
    const tagger = { name: 'Grace H.', email: 'grace@example.org', date: '2026-11-21T10:00:00+05:45' };
    const { event_id, ...tag } = await made({ name: 'v1.0', message: 'Version\n\nÄll of it', tagger });
    assert.equal(typeof event_id, 'string');
    const { annotated, message, target } = tag;
    assert.deepEqual([annotated, message, target], [true, 'Version\n\nÄll of it\n', head]);
    const listed = await api(strata, ada.token, 'GET', '/v1/repos/ada/tagged/tags');
    assert.deepEqual((listed.body as { readonly tags: readonly object[] }).tags, [tag]);
    await fetched();
    await git(work, ['fsck', '--full', '--strict']);
    const lines = [`object ${head}`, 'type commit', 'tag v1.0', 'tagger Grace H. <grace@example.org> 1795234500 +0545'];
    assert.equal(await git(work, ['cat-file', 'tag', 'v1.0']), `${lines.join('\n')}\n\nVersion\n\nÄll of it\n`);
  });

  test('is by the account where it names nobody, and leads to any object', async () => {
    for (const [name, what, type] of [
      ['a/tree', 'HEAD:folder', 'tree'],
      ['a/blob', 'HEAD:folder/file', 'blob'],
    ] as const) {
      const target = await read('rev-parse', what);
      const { tagger, ...tag } = await made({ name, target, message: 'About it' });
      assert.deepEqual([tag.type, tag.target, tagger?.name], [type, target, 'ada']);
      assert.match(tagger?.email ?? '', /^ada@users\.noreply\./);
    }
    await fetched();
    const inner = await read('rev-parse', 'refs/tags/a/tree');
    const outer = await made({ name: 'outer', target: inner, message: 'A tag of a tag' });
    assert.deepEqual([outer.type, outer.message], ['tree', 'A tag of a tag\n']);
    await fetched();
    assert.equal(await read('rev-parse', 'outer^{tree}'), await read('rev-parse', 'HEAD:folder'));
    await git(work, ['fsck', '--full', '--strict']);
  });

  test('is refused where a tag has its name, and moves it where any may be there', async () => {
    const first = { name: 'moving', message: 'One', tagger: { name: 'a', email: 'b', date: '2026-11-21T10:00:00Z' } };
    await made(first);
    await fetched();
    const refused = await send({ ...first, message: 'Two' });
    const { code, head: seen } = refused.body as { readonly code: string; readonly head: string };
    assert.deepEqual([refused.status, code, seen], [409, 'head-moved', await read('rev-parse', 'refs/tags/moving')]);
    assert.equal((await made({ ...first, expected: 'any' })).event_id, null, 'the same tag is there already');
    await made({ ...first, expected: 'any', message: 'Two' });
    await git(work, ['push', '--quiet', url, ':refs/tags/moving']);
    await made(first);
    await fetched();
    assert.equal(await read('for-each-ref', '--format=%(contents)', 'refs/tags/moving'), 'One');
  });

  test('has as long a message as a commit, and not one byte more', async () => {
    const message = 'm'.repeat(NEW_MESSAGE_BYTES_MAX);
    assert.equal((await made({ name: 'long', message })).message?.length, NEW_MESSAGE_BYTES_MAX);
    assert.equal((await send({ name: 'longer', message: `${message}m` })).status, 422);
  });
});
