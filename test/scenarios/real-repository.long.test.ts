/**
 * A real repository through push, clone and REST: what git says of it is what the service says, whichever log it has.
 *
 * STRATA_REAL_REPOSITORY names a bundle; nothing of it is copied into the project.
 */
import path from 'node:path';
import { describe, test } from 'node:test';
import { assertEqualToGit, assertRebuildable } from '../support/equal-to-git.ts';
import { createAccount, createRepository, git, startStrata } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';

const BUNDLE = process.env['STRATA_REAL_REPOSITORY'] ?? '';

describe('A real repository', { skip: BUNDLE === '' ? 'STRATA_REAL_REPOSITORY is not set' : false }, () => {
  for (const log of ['postgres', 'eventstoredb'] as const) {
    test(`pushed and cloned back is identical, and REST says of it what git says, log: ${log}`, async (context) => {
      const strata = await startStrata(context, { log });
      const ada = await createAccount(strata, 'ada');
      const url = await createRepository(strata, ada, 'real');
      const folder = await tempDir(context);
      await git(folder, ['clone', '--quiet', '--mirror', path.resolve(BUNDLE), 'source.git']);
      const source = path.join(folder, 'source.git');
      // Bundles of hosted repositories may hold refs/pull/ and the like, which are not taken here.
      await git(source, ['push', '--quiet', url, 'refs/heads/*:refs/heads/*', 'refs/tags/*:refs/tags/*']);
      await assertEqualToGit(strata, ada, 'real', source, folder);
      await assertRebuildable(strata);
    });
  }
});
