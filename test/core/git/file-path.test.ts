/** Paths of new files, judged here and by git. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { namesOfPath } from '../../../core/git/file-path.ts';
import { encodeUtf8 } from '../../../core/git/utf8.ts';
import { TREE_PATH_BYTES_MAX } from '../../../core/kernel/limits.ts';
import { git, tryGit } from '../../support/strata.ts';
import { tempDir } from '../../support/temp-dir.ts';

const judged = (path: string) => namesOfPath(encodeUtf8(path));

describe('the path of a new file', () => {
  test('is split at slashes', () => {
    const names = judged('src/ä b/main.c');
    assert.deepEqual(names, ['src', 'ä b', 'main.c'].map(encodeUtf8));
  });

  test('has no empty name, and no NUL', () => {
    for (const path of ['', '/', '/a', 'a/', 'a//b', 'a\0b']) assert.equal(judged(path), 'path-malformed', path);
  });

  test('has as many bytes as a checkout can create, and no more', () => {
    const long = 'ä/'.repeat(TREE_PATH_BYTES_MAX).slice(0, Math.floor(TREE_PATH_BYTES_MAX / 3) * 2 - 1);
    const longest = long + 'a'.repeat(TREE_PATH_BYTES_MAX - encodeUtf8(long).length);
    assert.equal(typeof judged(longest), 'object');
    assert.equal(judged(`${longest}a`), 'path-too-long');
  });

  test('is forbidden where git fsck finds a name that endangers clients, and only there', async (context) => {
    const directory = await tempDir(context);
    await git(directory, ['init', '--quiet', '--bare']);
    const blob = (await git(directory, ['hash-object', '-w', '--stdin'], 'text')).trim();
    const names = [
      '.git .Git .GIT. .git... .git::$INDEX_ALLOCATION .git:x .git\\x x\\.git x\\git~1 git~1 GIT~1. git~1:x git~2',
      '.gi\u200ct \u200c.git .git\ufeff \u206a.gi\u202at .gi\u2010t .gi .gitx .git-x .gitignore .gitmodules x.git git',
      '. .. ... .a a. ..a x\\..\\y a\\b \ufffd a~1 .git~1 CON aux.txt ä a:b .git%20 .git\u0131 .g\u0131t',
    ];
    for (const name of [...names.flatMap((line) => line.split(' ')), '.git ', '.git . ', ' .git', 'git~1 ', 'a b']) {
      const entry = Buffer.concat([Buffer.from(`100644 ${name}\0`), Buffer.from(blob, 'hex')]);
      const tree = await tryGit(directory, ['hash-object', '-w', '-t', 'tree', '--literally', '--stdin'], entry);
      assert.equal(tree.code, 0, tree.stderr);
      const id = tree.stdout.trim();
      const fsck = await tryGit(directory, ['fsck', '--strict', '--no-dangling', id]);
      // It also tells of the trees that were written before.
      const isRefused = new RegExp(`${id}: has(?:Dot|Dotdot|Dotgit):`).test(fsck.stderr + fsck.stdout);
      assert.equal(judged(name) === 'path-forbidden', isRefused, JSON.stringify(name));
    }
  });
});
