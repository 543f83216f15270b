/** What an operator does with a restored database that is older than a purge: `strata-admin storage adopt`. */
import assert from 'node:assert/strict';
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'vitest';
import { restoredDatabase } from '../support/database-copy.ts';
import {
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  tryAdmin,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

test('a repository that was purged after the backup is cloned whole after the restore', async (context) => {
  const shared = await sharedParts(context, 'postgres');
  const first = await startNode(context, shared);
  const ada = await createAccount(first, 'ada');
  const remote = await createRepository(first, ada, 'engine');
  const work = await newWorkTree(context);
  const main = (await git(work, ['rev-parse', 'main'])).trim();
  await git(work, ['push', '--quiet', remote, 'main']);
  await git(work, ['checkout', '--quiet', '-b', 'secret']);
  await commitFile(work, 'secret', 'a password\n');
  await git(work, ['push', '--quiet', remote, 'secret']);
  await first.stop();
  const databases = await restoredDatabase(shared, context);

  const second = await startNode(context, shared);
  const url = gitUrl(second, ada, 'engine');
  await git(work, ['push', '--quiet', url, ':secret']);
  const listed = (await api(second, ada.token, 'GET', '/v1/repos/ada/engine')).body as { readonly id: string };
  const purged = await api(second, ada.token, 'POST', `/v1/repositories/${listed.id}/purge`);
  assert.equal(purged.status, 202, purged.text);
  await git(work, ['checkout', '--quiet', 'main']);
  await commitFile(work, 'later', 'after the backup\n');
  await git(work, ['push', '--quiet', url, 'main']);
  await second.stop();
  // An hour later the bytes of the purge have left the store.
  const events = await shared.log.since();
  const folder = path.join(shared.layersDir, 'repositories', listed.id, 'layers');
  const gone = events.flatMap(({ type, data }) => (type === 'LayersExpired' ? [JSON.stringify(data)] : [])).join('');
  const files = await readdir(folder);
  const lost = files.filter((file) => gone.includes(file.slice(0, -'.tar'.length)));
  assert.equal(lost.length, 2);
  for (const file of lost) await rm(path.join(folder, file));

  const restored = { env: { ...second.env, ...databases } };
  const verified = await tryAdmin(restored, ['log', 'verify', '--references']);
  assert.match(verified.stdout, /\ncannot be read until strata-admin storage adopt: ada\/engine, /);
  assert.equal(verified.code, 0, verified.stdout);
  const would = await tryAdmin(restored, ['storage', 'adopt', '--all']);
  assert.equal(would.code, 1, would.stdout);
  assert.match(would.stderr, /ada\/engine: refs\/heads\/secret is deleted, whose tip [0-9a-f]{40} is gone/);
  assert.match(would.stderr, /Nothing was done\. Add --yes to do it/);
  const done = await tryAdmin(restored, ['storage', 'adopt', '--repository', 'ada/engine', '--yes']);
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stdout, /refs\/heads\/secret is deleted[^]*\nRepositories that can be read again: 1\n$/);
  const after = await tryAdmin(restored, ['log', 'verify', '--references']);
  assert.equal(after.code, 0, after.stdout);
  assert.doesNotMatch(after.stdout, /cannot be read/);
  assert.equal((await tryAdmin(restored, ['storage', 'adopt', '--all'])).code, 0);
  const unknown = await tryAdmin(restored, ['storage', 'adopt', '--repository', 'ada/other']);
  assert.match(unknown.stderr, /There is no repository "ada\/other"/);
  assert.match((await tryAdmin(restored, ['storage', 'adopt'])).stderr, /Give one of --repository and --all/);

  const third = await startNode(context, shared, databases);
  const clone = path.join(await tempDir(context), 'clone');
  await git(work, ['clone', '--quiet', gitUrl(third, ada, 'engine'), clone]);
  await git(clone, ['fsck', '--full', '--strict']);
  assert.equal(
    (await git(clone, ['for-each-ref', '--format=%(objectname) %(refname)', 'refs/remotes/origin/main'])).trim(),
    `${main} refs/remotes/origin/main`,
  );
  assert.equal((await git(clone, ['branch', '--remotes', '--list', 'origin/secret'])).trim(), '');
  // A push as the client would repeat it, on top of what the backup has.
  await git(work, ['push', '--quiet', gitUrl(third, ada, 'engine'), 'main']);
});
