/** What people do with git: push, clone, fetch, delete, with the real client against the real server. */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRepository,
  createToken,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
  startStrata,
  tryGit,
} from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';

describe('With git', () => {
  let strata: Strata;
  let ada: Account;
  const ending = suiteEnding();
  let names = 0;
  const newRepository = (): Promise<string> => createRepository(strata, ada, `repository-${++names}`);

  beforeAll(async () => {
    strata = await startStrata(ending);
    ada = await createAccount(strata, 'ada');
  });

  test('a first push makes a repository that clones back with identical refs', async (context) => {
    const url = await newRepository();
    const work = await newWorkTree(context);
    await git(work, ['tag', '-a', 'v1', '-m', 'one']);
    await git(work, ['tag', 'light']);
    await git(work, ['branch', 'other']);
    await git(work, ['push', '--quiet', url, '--all']);
    await git(work, ['push', '--quiet', url, '--tags']);
    const clones = await tempDir(context);
    await git(clones, ['clone', '--quiet', '--mirror', url, 'back.git']);
    const refs = ['for-each-ref', '--format=%(objectname) %(refname)'];
    assert.equal(await git(path.join(clones, 'back.git'), refs), await git(work, refs));
    await git(path.join(clones, 'back.git'), ['fsck', '--full', '--strict']);
    assert.equal((await git(path.join(clones, 'back.git'), ['symbolic-ref', 'HEAD'])).trim(), 'refs/heads/main');
  });

  for (const version of ['0', '1', '2']) {
    test(`clone, fetch and ls-remote work in protocol version ${version}`, async (context) => {
      const url = await newRepository();
      const work = await newWorkTree(context);
      await git(work, ['push', '--quiet', url, 'main']);
      const clones = await tempDir(context);
      const protocol = ['-c', `protocol.version=${version}`];
      await git(clones, [...protocol, 'clone', '--quiet', url, 'copy']);
      const second = await commitFile(work, 'second', 'more\n');
      await git(work, ['push', '--quiet', url, 'main']);
      const listed = await git(clones, [...protocol, 'ls-remote', url, 'refs/heads/main']);
      assert.equal(listed, `${second}\trefs/heads/main\n`);
      await git(path.join(clones, 'copy'), [...protocol, 'pull', '--quiet', '--ff-only']);
      assert.equal((await git(path.join(clones, 'copy'), ['rev-parse', 'HEAD'])).trim(), second);
    });
  }

  test('an empty repository clones with its future default branch', async (context) => {
    const url = await newRepository();
    const clones = await tempDir(context);
    const cloned = await tryGit(clones, ['clone', url, 'empty']);
    assert.equal(cloned.code, 0, cloned.stderr);
    assert.equal((await git(path.join(clones, 'empty'), ['symbolic-ref', 'HEAD'])).trim(), 'refs/heads/master');
  });

  test('an acknowledged push is visible to the very next REST read', async (context) => {
    const url = await newRepository();
    const work = await newWorkTree(context);
    for (let round = 0; round < 5; round += 1) {
      const commit = await commitFile(work, 'file', `round ${round}\n`);
      await git(work, ['push', '--quiet', url, 'main']);
      const branches = await api(strata, ada.token, 'GET', `/v1/repos/ada/repository-${names}/branches`);
      assert.equal(branches.status, 200, branches.text);
      const { branches: listed } = branches.body as { branches: { commit: { hexsha: string } }[] };
      assert.equal(listed[0]?.commit.hexsha, commit);
    }
  });

  test('a force-push replaces history, which a plain push does not', async (context) => {
    const url = await newRepository();
    const work = await newWorkTree(context);
    await commitFile(work, 'secret', 'oops\n');
    await git(work, ['push', '--quiet', url, 'main']);
    await git(work, ['reset', '--quiet', '--hard', 'HEAD~1']);
    const kept = await commitFile(work, 'clean', 'fine\n');
    const plain = await tryGit(work, ['push', url, 'main']);
    assert.notEqual(plain.code, 0);
    await git(work, ['push', '--quiet', '--force', url, 'main']);
    assert.equal(await git(work, ['ls-remote', url, 'refs/heads/main']), `${kept}\trefs/heads/main\n`);
  });

  test('a push without a pack deletes a branch', async (context) => {
    const url = await newRepository();
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', url, 'main', 'main:gone']);
    await git(work, ['push', '--quiet', url, ':gone']);
    assert.equal((await git(work, ['ls-remote', url])).includes('gone'), false);
  });

  test('an atomic push with one bad ref changes nothing, and reports why', async (context) => {
    const url = await newRepository();
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', url, 'main']);
    const pushed = await tryGit(work, ['push', '--atomic', url, 'main:one', 'main:one/two']);
    assert.notEqual(pushed.code, 0);
    assert.match(pushed.stderr, /folder of another/);
    assert.equal((await git(work, ['ls-remote', url])).includes('one'), false);
  });

  test('a push with one bad ref accepts the good ones', async (context) => {
    const url = await newRepository();
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', url, 'main']);
    const pushed = await tryGit(work, ['push', url, 'main:good', 'main:main/bad']);
    assert.notEqual(pushed.code, 0);
    const listed = await git(work, ['ls-remote', url]);
    assert.match(listed, /refs\/heads\/good/);
    assert.doesNotMatch(listed, /main\/bad/);
  });

  test('notes, push options and a push of existing commits are accepted', async (context) => {
    const url = await newRepository();
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', '-o', 'hello=world', url, 'main']);
    await git(work, ['notes', 'add', '-m', 'a note']);
    await git(work, ['push', '--quiet', url, 'refs/notes/*']);
    await git(work, ['push', '--quiet', url, 'main']);
    await git(work, ['push', '--quiet', url, 'main:same']);
    assert.match(await git(work, ['ls-remote', url]), /refs\/notes\/commits/);
  });

  test('shallow, deepened and partial clones hold what they should', async (context) => {
    const url = await newRepository();
    const work = await newWorkTree(context);
    for (let round = 0; round < 5; round += 1) await commitFile(work, `file-${round}`, `content ${round}\n`);
    await git(work, ['push', '--quiet', url, 'main']);
    const clones = await tempDir(context);
    await git(clones, ['clone', '--quiet', '--depth=1', url, 'shallow']);
    const shallow = path.join(clones, 'shallow');
    assert.equal((await git(shallow, ['rev-list', '--count', 'HEAD'])).trim(), '1');
    await git(shallow, ['fetch', '--quiet', '--deepen=2']);
    assert.equal((await git(shallow, ['rev-list', '--count', 'HEAD'])).trim(), '3');
    await git(shallow, ['fetch', '--quiet', '--unshallow']);
    assert.equal((await git(shallow, ['rev-list', '--count', 'HEAD'])).trim(), '6');
    await git(clones, ['clone', '--quiet', '--filter=blob:none', url, 'partial']);
    assert.equal(await git(path.join(clones, 'partial'), ['show', 'HEAD:file-4']), 'content 4\n');
    for (const version of ['0', '2']) {
      const old = ['-c', `protocol.version=${version}`, 'clone', '--quiet', '--no-checkout', '--filter=tree:0'];
      await git(clones, [...old, url, `tree-${version}`]);
    }
  });

  test('a shallow clone whose history was forced away can be completed, with what lies behind its edge', async (context) => {
    const url = await newRepository();
    const work = await newWorkTree(context);
    const behind = await commitFile(work, 'behind', 'left behind\n');
    await commitFile(work, 'edge', 'the edge of the clone\n');
    await commitFile(work, 'tip', 'its tip\n');
    await git(work, ['push', '--quiet', url, 'main']);
    const clones = await tempDir(context);
    for (const version of ['0', '2']) {
      await git(clones, ['clone', '--quiet', '--depth=2', url, `shallow-${version}`]);
    }
    await git(work, ['reset', '--quiet', '--hard', 'HEAD~3']);
    const kept = await commitFile(work, 'kept', 'kept\n');
    await git(work, ['push', '--quiet', '--force', url, 'main']);
    for (const version of ['0', '2']) {
      const shallow = path.join(clones, `shallow-${version}`);
      await git(shallow, ['-c', `protocol.version=${version}`, 'fetch', '--quiet', '--unshallow']);
      assert.equal((await git(shallow, ['rev-parse', 'origin/main'])).trim(), kept);
      assert.equal((await git(shallow, ['rev-list', '--count', 'origin/main'])).trim(), '2');
      await git(shallow, ['cat-file', '-e', behind]);
      await git(shallow, ['fsck', '--full']);
    }
  });

  test('a clone may exclude the history of a tag or a branch, and fails with a message when there is none of that name', async (context) => {
    const url = await newRepository();
    const work = await newWorkTree(context);
    await git(work, ['tag', 'v1']);
    await commitFile(work, 'second', 'x\n');
    await git(work, ['push', '--quiet', url, 'main', 'v1']);
    const clones = await tempDir(context);
    for (const name of ['v1', 'tags/v1', 'refs/tags/v1']) {
      await git(clones, ['clone', '--quiet', `--shallow-exclude=${name}`, url, 'excluded']);
      assert.equal((await git(path.join(clones, 'excluded'), ['rev-list', '--count', 'HEAD'])).trim(), '1');
      await rm(path.join(clones, 'excluded'), { recursive: true });
    }
    const none = await tryGit(clones, ['clone', '--shallow-exclude=v2', url, 'none']);
    assert.match(none.stderr, /deepen-not is not a ref: v2/);
  });

  test('a push from a shallow clone is accepted when the server has its history', async (context) => {
    const url = await newRepository();
    const work = await newWorkTree(context);
    await commitFile(work, 'second', 'x\n');
    await git(work, ['push', '--quiet', url, 'main']);
    const clones = await tempDir(context);
    await git(clones, ['clone', '--quiet', '--depth=1', url, 'shallow']);
    const shallow = path.join(clones, 'shallow');
    const commit = await commitFile(shallow, 'third', 'y\n');
    await git(shallow, ['push', '--quiet', 'origin', 'HEAD:main']);
    assert.match(await git(work, ['ls-remote', url, 'main']), new RegExp(commit));
  });

  test('a push from a shallow clone into a repository without its history is refused with that reason', async (context) => {
    const from = await newRepository();
    const work = await newWorkTree(context);
    await commitFile(work, 'second', 'x\n');
    await git(work, ['push', '--quiet', from, 'main']);
    const into = await newRepository();
    const clones = await tempDir(context);
    await git(clones, ['clone', '--quiet', '--depth=1', from, 'shallow']);
    const pushed = await tryGit(path.join(clones, 'shallow'), ['push', into, 'HEAD:main']);
    assert.notEqual(pushed.code, 0);
    assert.match(pushed.stderr, /shallow update not allowed/);
    assert.match(
      pushed.stderr,
      /remote: object [0-9a-f]{40} is referred to .* \(a commit: parent of commit [0-9a-f]{40}\)/,
    );
    assert.match(pushed.stderr, /remote: This clone is shallow: complete it with git fetch --unshallow/);
    assert.equal(await git(work, ['ls-remote', into]), '');
  });

  test('a large file survives a push and a clone', async (context) => {
    const url = await newRepository();
    const work = await newWorkTree(context);
    const large = Buffer.alloc(20 * 1024 * 1024);
    for (let at = 0; at < large.length; at += 4) large.writeUInt32LE((at * 2_654_435_761) >>> 0, at);
    const blob = (await git(work, ['hash-object', '-w', '--stdin'], large)).trim();
    await git(work, ['update-index', '--add', '--cacheinfo', `100644,${blob},large`]);
    await git(work, ['commit', '--quiet', '-m', 'Large']);
    await git(work, ['push', '--quiet', url, 'main']);
    const clones = await tempDir(context);
    await git(clones, ['clone', '--quiet', url, 'copy']);
    assert.equal((await git(path.join(clones, 'copy'), ['rev-parse', 'HEAD:large'])).trim(), blob);
  });

  test('3,000 refs in one push are all stored', async (context) => {
    const url = await newRepository();
    const work = await newWorkTree(context);
    const head = (await git(work, ['rev-parse', 'HEAD'])).trim();
    const refs = Array.from({ length: 3_000 }, (_, n) => `create refs/heads/many/${n} ${head}\n`).join('');
    await git(work, ['update-ref', '--stdin'], refs);
    await git(work, ['push', '--quiet', url, 'refs/heads/many/*']);
    const listed = (await git(work, ['ls-remote', url])).trim().split('\n');
    assert.equal(listed.filter((line) => line.includes('refs/heads/many/')).length, 3_000);
  });

  test('names without .git and in capitals name the same repository', async (context) => {
    const url = await newRepository();
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', url, 'main']);
    const other = url.replace(/repository-(\d+)\.git$/, 'REPOSITORY-$1');
    assert.match(await git(work, ['ls-remote', other]), /refs\/heads\/main/);
  });

  describe('and without permission', () => {
    test('missing or wrong credentials are requested again and then refused', async (context) => {
      const url = await newRepository();
      const directory = await tempDir(context);
      const wrong = await tryGit(directory, ['ls-remote', url.replace(ada.token, 'strata_wrong')]);
      assert.match(wrong.stderr, /Authentication failed/);
      const none = await fetch(`${strata.url}/r/ada/repository-${names}.git/info/refs?service=git-upload-pack`);
      assert.equal(none.status, 401);
      assert.equal(none.headers.get('www-authenticate'), 'Basic realm="Strata"');
    });

    test("another account's repository answers as one that does not exist", async (context) => {
      await newRepository();
      const eve = await createAccount(strata, `eve-${names}`);
      const directory = await tempDir(context);
      const name = `repository-${names}`;
      const others = await tryGit(directory, [
        'ls-remote',
        gitUrl(strata, { username: 'ada', token: eve.token }, name),
      ]);
      const missing = await tryGit(directory, [
        'ls-remote',
        gitUrl(strata, { username: 'ada', token: eve.token }, 'none'),
      ]);
      assert.match(others.stderr, /Repository not found/);
      assert.equal(others.stderr.replaceAll(name, 'none'), missing.stderr);
    });

    test('a push with a token that may only read is refused with the name of the missing grant', async (context) => {
      const url = await newRepository();
      const reader = await createToken(strata, 'ada', ['--grants', 'GIT_HTTP_READ']);
      const work = await newWorkTree(context);
      const pushed = await tryGit(work, ['push', url.replace(ada.token, reader.token), 'main']);
      assert.match(pushed.stderr, /This token lacks the grant GIT_HTTP_WRITE/);
      assert.equal(await git(work, ['ls-remote', url.replace(ada.token, reader.token)]), '');
    });

    test('a revoked token fails at the next request', async (context) => {
      const url = await newRepository();
      const token = await createToken(strata, 'ada');
      const directory = await tempDir(context);
      await git(directory, ['ls-remote', url.replace(ada.token, token.token)]);
      const revoked = await api(strata, ada.token, 'DELETE', `/v1/access-tokens/${token.id}`);
      assert.equal(revoked.status, 204);
      const after = await tryGit(directory, ['ls-remote', url.replace(ada.token, token.token)]);
      assert.match(after.stderr, /Authentication failed/);
    });
  });
});
