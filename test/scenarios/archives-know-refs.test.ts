/** Archives of files with the attribute export-subst, beside those that git makes in a mirror of the repository. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import {
  type Account,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

const PLACEHOLDERS = 'refs: $Format:%D$\nshort:$Format:%d$\ntag: $Format:%(describe:tags=true)$\nid: $Format:%H$\n';

describe('An archive of files that export-subst marks', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let work: string;
  let mirrors: string;
  let url: string;

  /** The text of a file in the archive, and the archive's ETag. */
  const archived = async (ref: string, file: string) => {
    const answer = await fetch(`${strata.url}/v1/repos/ada/odd/archive/${encodeURIComponent(ref)}.tar.gz`, {
      headers: { authorization: `Bearer ${ada.token}` },
    });
    assert.equal(answer.status, 200, ref);
    return { etag: answer.headers.get('etag') ?? '', text: fileOf(Buffer.from(await answer.arrayBuffer()), file) };
  };
  /** The same in a mirror, by git itself. */
  const mirrored = async (ref: string, file: string): Promise<string> => {
    const mirror = path.join(mirrors, `${ref.replaceAll('/', '-')}-${Math.random()}.git`);
    await git(mirrors, ['clone', '--quiet', '--mirror', url, mirror]);
    const made = path.join(mirrors, 'made.tar.gz');
    await git(mirror, ['archive', '--format=tar.gz', '--prefix=x/', '-o', made, ref]);
    return fileOf(execFileSync('cat', [made]), file);
  };

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
    work = await newWorkTree(ending);
    mirrors = await tempDir(ending);
    url = await createRepository(strata, ada, 'odd');
    await commitFile(work, 'plain', PLACEHOLDERS);
    await git(work, ['branch', 'without']);
    await mkdir(path.join(work, 'deep/er'), { recursive: true });
    await writeFile(path.join(work, '.gitattributes'), 'version.txt export-subst\n');
    await writeFile(path.join(work, 'version.txt'), PLACEHOLDERS);
    await git(work, ['add', '.']);
    await commitFile(work, 'one', '1\n');
    await git(work, ['tag', '-a', '-m', 'First', 'v1.0']);
    await git(work, ['checkout', '--quiet', '-b', 'nested', 'without']);
    await mkdir(path.join(work, 'deep/er'), { recursive: true });
    await writeFile(path.join(work, 'deep/er/.gitattributes'), '[attr]mark export-subst\nversion.txt mark\n');
    await writeFile(path.join(work, 'deep/er/version.txt'), PLACEHOLDERS);
    await git(work, ['add', '.']);
    await commitFile(work, 'two', '2\n');
    await git(work, ['checkout', '--quiet', 'main']);
    await git(work, ['push', '--quiet', url, '--all']);
    await git(work, ['push', '--quiet', url, '--tags']);
  });

  test('names the refs and the tag that git names in a mirror', async () => {
    for (const [ref, file] of [
      ['main', 'version.txt'],
      ['v1.0', 'version.txt'],
      ['refs/heads/nested', 'deep/er/version.txt'],
      ['without', 'plain'],
    ] as const) {
      assert.equal((await archived(ref, file)).text, await mirrored(ref, file), ref);
    }
    assert.match((await archived('main', 'version.txt')).text, /^refs: HEAD -> main, tag: v1\.0\n.*\ntag: v1\.0\n/);
  });

  test('changes with the refs, and so does its ETag; one that reads none keeps both', async () => {
    const before = { read: await archived('main', 'version.txt'), unread: await archived('without', 'plain') };
    await git(work, ['tag', '-a', '-m', 'Second', 'v1.1', 'main']);
    await git(work, ['push', '--quiet', url, 'v1.1', 'main~1:refs/pull/1/head']);
    const after = { read: await archived('main', 'version.txt'), unread: await archived('without', 'plain') };
    assert.equal(after.read.text, await mirrored('main', 'version.txt'));
    assert.notEqual(after.read.text, before.read.text);
    assert.notEqual(after.read.etag, before.read.etag);
    assert.deepEqual(after.unread, before.unread);
    assert.deepEqual(await archived('main', 'version.txt'), after.read);
  });
});

function fileOf(archive: Buffer, file: string): string {
  return execFileSync('tar', ['-xzOf', '-', '--wildcards', `*/${file}`], { input: archive }).toString();
}
