/** A client's clone and the server's refs are judged by what they hold: each fault of a client has its reason. */
import assert from 'node:assert/strict';
import { readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'vitest';
import { commitFile, git, newWorkTree } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import { judgeClone, judgeShallow, judgeStored, refsOfServer } from './judging.ts';

/** A repository that stands for the server's, with two commits, two branches and a tag, and a folder for clones. */
async function newServer(context: TestContext) {
  const source = await newWorkTree(context);
  await git(source, ['branch', 'next']);
  await commitFile(source, 'file', 'two\n');
  await git(source, ['tag', '-a', '-m', 'One', 'v1']);
  const folder = await tempDir(context);
  const mirror = path.join(folder, 'mirror');
  await git(folder, ['init', '--quiet', '--bare', mirror]);
  const server = { judgeUrl: `file://${source}`, mirror };
  const clone = async (...options: readonly string[]): Promise<string> => {
    const cloned = await tempDir(context);
    await git(folder, ['clone', '--quiet', ...options, server.judgeUrl, cloned]);
    return cloned;
  };
  return { server, source, clone };
}

test('a clone is judged by its refs, its objects and its work tree', async (context) => {
  const { server, clone } = await newServer(context);
  await judgeClone(server, await clone());

  await assert.rejects(judgeClone(server, await clone('--no-tags')), /refs\/tags\/v1 is not there/);
  await assert.rejects(judgeClone(server, await clone('--single-branch')), /origin\/next is not there/);

  const behind = await clone();
  await git(behind, ['update-ref', 'refs/remotes/origin/main', 'HEAD~1']);
  await git(behind, ['update-ref', 'refs/remotes/origin/strange', 'HEAD']);
  await assert.rejects(judgeClone(server, behind), /origin\/main is .* instead of .*origin\/strange is /);

  const changed = await clone();
  await rm(path.join(changed, 'README'));
  await assert.rejects(judgeClone(server, changed), /work tree differs.*README/);

  const broken = await clone();
  const blob = (await git(broken, ['rev-parse', 'HEAD:README'])).trim();
  const packs = path.join(broken, '.git/objects/pack');
  const [pack = ''] = (await readdir(packs)).filter((name) => name.endsWith('.pack'));
  await rename(path.join(packs, pack), path.join(broken, '.git/pack'));
  await rm(packs, { recursive: true });
  await git(broken, ['unpack-objects', '-q'], await readFile(path.join(broken, '.git/pack')));
  await rm(path.join(broken, '.git/objects', blob.slice(0, 2), blob.slice(2)));
  await assert.rejects(judgeClone(server, broken), new RegExp(`git fsck.*missing blob ${blob}`, 's'));
});

test('a shallow clone has one commit, and the same clone made whole has all', async (context) => {
  const { server, clone } = await newServer(context);
  const shallow = await clone('--depth=1');
  await judgeShallow(server, shallow, 'shallow');
  await assert.rejects(judgeShallow(server, shallow, 'whole'), /the clone is shallow/);
  await git(shallow, ['fetch', '--quiet', '--unshallow']);
  await judgeShallow(server, shallow, 'whole');
  await assert.rejects(judgeShallow(server, shallow, 'shallow'), /the clone is not shallow/);
  await assert.rejects(judgeShallow(server, await clone('--branch=next'), 'whole'), /HEAD is/);
});

test('a push is judged by all refs of the server: none too few, none too many', async (context) => {
  const { server, source } = await newServer(context);
  const refs = await refsOfServer(server);
  await judgeStored(server, refs);
  await git(source, ['update-ref', 'refs/heads/mine', 'HEAD']);
  await assert.rejects(judgeStored(server, refs), /refs\/heads\/mine is .* instead of not there/);
  await git(source, ['update-ref', '-d', 'refs/heads/mine']);
  await git(source, ['branch', '-D', 'next']);
  await assert.rejects(judgeStored(server, refs), /refs\/heads\/next is not there instead of/);
});
