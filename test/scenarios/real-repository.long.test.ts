/**
 * A real repository through push, clone and REST: the service must show what git shows, on either log.
 *
 * STRATA_REAL_REPOSITORY names a bundle; none of it is copied into the project.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { assertEqualToGit, assertRebuildable } from '../support/equal-to-git.ts';
import { skippedFor } from '../support/skipped.ts';
import { createAccount, createRepository, git, startStrata } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';

const BUNDLE = process.env['STRATA_REAL_REPOSITORY'] ?? '';

describe('A real repository', skippedFor(BUNDLE === '' ? 'STRATA_REAL_REPOSITORY is not set' : false), () => {
  for (const log of ['postgres', 'eventstoredb'] as const) {
    test(`pushed and cloned back is identical, and REST shows what git shows, log: ${log}`, async (context) => {
      const strata = await startStrata(context, { log });
      const ada = await createAccount(strata, 'ada');
      const url = await createRepository(strata, ada, 'real');
      const folder = await tempDir(context);
      await git(folder, ['clone', '--quiet', '--mirror', path.resolve(BUNDLE), 'source.git']);
      const source = path.join(folder, 'source.git');
      // Bundles of hosted repositories may hold refs/pull/ and the like; the test does not push them.
      await git(source, ['push', '--quiet', url, 'refs/heads/*:refs/heads/*', 'refs/tags/*:refs/tags/*']);
      await assertEqualToGit(strata, ada, 'real', source, folder);
      await assertRebuildable(strata);
    });
  }

  test('cloned as of a moment is what a mirror of git was then, whatever was taken away since', async (context) => {
    const strata = await startStrata(context);
    const ada = await createAccount(strata, 'ada');
    const url = await createRepository(strata, ada, 'real');
    const folder = await tempDir(context);
    await git(folder, ['clone', '--quiet', '--bare', path.resolve(BUNDLE), 'source.git']);
    const source = path.join(folder, 'source.git');
    const names = (await git(source, ['for-each-ref', '--format=%(refname)', 'refs/heads', 'refs/tags'])).trim();
    const refs = names.split('\n');
    const parts = [refs.filter((_, n) => n % 3 === 0), refs.filter((_, n) => n % 3 !== 0)];
    const branch = refs.find((ref) => ref === 'refs/heads/main') ?? refs[0] ?? assert.fail('no branch');
    const earlier = (await git(source, ['rev-list', '--max-count=51', branch])).trim().split('\n').at(-1);
    const changes = [
      ...parts.map((part) => part.map((ref) => `${ref}:${ref}`)),
      refs.filter((ref) => ref.startsWith('refs/tags/')).flatMap((ref, n) => (n % 2 === 0 ? [`:${ref}`] : [])),
      [`${earlier}:refs/heads/earlier`, `+${earlier}:${branch}`],
    ];
    const moments: { readonly at: string; readonly refs: string }[] = [];
    for (const refspecs of changes) {
      await git(source, ['push', '--quiet', url, ...refspecs]);
      const at = new Date(Date.now() + 1).toISOString();
      moments.push({ at, refs: await git(folder, ['ls-remote', url]) });
      await sleep(20);
    }
    for (const [index, moment] of moments.entries()) {
      const then = url.replace(/\.git$/, `@${moment.at}.git`);
      assert.equal(await git(folder, ['ls-remote', then]), moment.refs);
      await git(folder, ['clone', '--quiet', '--mirror', then, `then-${index}.git`]);
      const clone = path.join(folder, `then-${index}.git`);
      await git(clone, ['fsck', '--full', '--no-dangling']);
      assert.equal(await git(clone, ['for-each-ref', '--format=%(objectname)\t%(refname)']), refsIn(moment.refs));
    }
  });
});

/** The refs of `git ls-remote`, as `git for-each-ref` lists them. */
function refsIn(listed: string): string {
  const lines = listed.split('\n').filter((line) => line !== '' && !line.endsWith('^{}') && !line.endsWith('\tHEAD'));
  return lines.map((line) => `${line}\n`).join('');
}
