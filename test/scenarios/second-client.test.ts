/** isomorphic-git, a client that shares no code with git: clone, fetch and a small push. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import isomorphic from 'isomorphic-git';
import http from 'isomorphic-git/http/node';
import { test } from 'vitest';
import { commitFile, createAccount, createRepository, git, newWorkTree } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

test('a client other than git clones, fetches and pushes', async (context) => {
  const strata = await startNode(context, await sharedParts(context));
  const ada = await createAccount(strata, 'ada');
  const url = await createRepository(strata, ada, 'shared');
  const work = await newWorkTree(context);
  const first = await commitFile(work, 'file', 'one\n');
  await git(work, ['tag', '-a', 'v1', '-m', 'one']);
  await git(work, ['push', '--quiet', '--follow-tags', url, 'main']);

  const dir = await tempDir(context);
  const plain = `${strata.url}/r/ada/shared.git`;
  const onAuth = (): { username: string; password: string } => ({ username: 'ada', password: ada.token });
  const repository = { fs, http, dir, url: plain, onAuth };
  await isomorphic.clone({ ...repository, ref: 'main' });
  assert.equal(await isomorphic.resolveRef({ fs, dir, ref: 'HEAD' }), first);

  const second = await commitFile(work, 'file', 'two\n');
  await git(work, ['push', '--quiet', url, 'main']);
  const fetched = await isomorphic.fetch({ ...repository, ref: 'main' });
  assert.equal(fetched.fetchHead, second);
  await isomorphic.merge({ fs, dir, ours: 'main', theirs: 'remotes/origin/main', fastForwardOnly: true });
  await isomorphic.checkout({ fs, dir, ref: 'main' });

  await writeFile(path.join(dir, 'theirs'), 'three\n');
  await isomorphic.add({ fs, dir, filepath: 'theirs' });
  const author = { name: 'I So', email: 'iso@example.org' };
  const third = await isomorphic.commit({ fs, dir, message: 'From another client', author });
  const pushed = await isomorphic.push({ ...repository, ref: 'main' });
  assert.equal(pushed.ok, true);
  assert.equal(await git(work, ['ls-remote', url, 'refs/heads/main']), `${third}\trefs/heads/main\n`);
  await git(work, ['pull', '--quiet', '--ff-only', url, 'main']);
  await git(work, ['fsck', '--full']);
});
