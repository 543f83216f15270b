/** The branch listing on the wire, exactly as docs/interface.md specifies it. */
import { z } from 'zod';
import { COMMIT_SUMMARY } from './common.ts';

export const BRANCHES = z
  .object({
    default_branch: z.string(),
    branches: z
      .array(z.object({ name: z.string(), commit: COMMIT_SUMMARY.meta({ id: 'CommitSummary' }) }))
      .meta({ description: 'In byte order of names.' }),
  })
  .meta({ id: 'BranchList' });
