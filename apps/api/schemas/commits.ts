/** The commit listing on the wire. */
import { z } from 'zod';
import { COMMIT_SUMMARY, HEXSHA, PAGE_QUERY, PAGINATION, TIMESTAMP } from './common.ts';

export const COMMIT = z
  .object({
    ...COMMIT_SUMMARY.shape,
    authored_at: TIMESTAMP,
    committed_at: TIMESTAMP,
    parents: z.array(HEXSHA),
  })
  .meta({ id: 'Commit' });

export const COMMITS = z
  .object({
    branch: z.string().meta({ description: 'The requested `ref`, else the default branch.' }),
    commits: z.array(COMMIT).meta({ description: 'In the order of `git log`: newest first.' }),
    pagination: PAGINATION,
  })
  .meta({ id: 'CommitList' });

export const REF = z.string().meta({
  description:
    'A branch, a tag or a full commit id that a branch or tag reaches; no revision expressions. A branch is found before a tag of the same name: `refs/tags/<name>` names the tag. Absent: the default branch.',
  examples: ['main'],
});

export const COMMITS_QUERY = z.object({ ...PAGE_QUERY.shape, ref: REF.optional() });
