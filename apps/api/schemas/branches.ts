/** The branch listing on the wire, exactly as docs/interface.md specifies it. */
import { z } from 'zod';
import { COMMIT_SUMMARY } from './common.ts';
import { REPOSITORY_PARAMS } from './params.ts';

export const BRANCH = z
  .object({ name: z.string(), commit: COMMIT_SUMMARY.meta({ id: 'CommitSummary' }) })
  .meta({ id: 'Branch' });

export const BRANCHES = z
  .object({
    default_branch: z.string(),
    branches: z.array(BRANCH).meta({ description: 'In byte order of names.' }),
  })
  .meta({ id: 'BranchList' });

export const BRANCH_PARAMS = z.object({
  ...REPOSITORY_PARAMS.shape,
  branch: z.string().meta({ description: 'Its slashes may be percent-encoded.', examples: ['main'] }),
});
