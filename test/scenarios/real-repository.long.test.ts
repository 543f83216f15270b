/**
 * A real repository through push, clone and REST: the service must show what git shows, on either log.
 *
 * STRATA_REAL_REPOSITORY names a bundle; none of it is copied into the project.
 */
import path from 'node:path';
import { describe, test } from 'vitest';
import { assertEqualToGit, assertRebuildable } from '../support/equal-to-git.ts';
import { createAccount, createRepository, git, startStrata } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import { skippedFor } from '../support/skipped.ts';

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
});
