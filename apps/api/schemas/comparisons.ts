/** What lies between two commits, on the wire. */
import { z } from 'zod';
import { DIFF_FILES_MAX } from '../../../core/kernel/limits.ts';
import { CHANGED_FILE, COMMIT, COMMIT_PAGINATION, FILES_TRUNCATED } from './commits.ts';
import { HEXSHA } from './common.ts';
import { REPOSITORY_PARAMS } from './params.ts';

/** No name of a ref holds two dots, so a text is split in one way. */
const FORM = /^(.*?)(\.\.\.?)(.*)$/su;

export const COMPARISON_PARAMS = z.object({
  ...REPOSITORY_PARAMS.shape,
  comparison: z
    .string()
    .transform((text, issues) => {
      const [, base, dots, head] = FORM.exec(text) ?? [];
      if (base !== undefined && head !== undefined) return { base, head, direct: dots === '..' };
      issues.addIssue({ code: 'custom', message: 'Expected `<base>...<head>` or `<base>..<head>`', input: text });
      return z.NEVER;
    })
    .meta({
      description:
        '`<base>...<head>` or `<base>..<head>`, where both are what `ref` takes in `GET …/commits`; an empty one is the default branch. Slashes may be percent-encoded.',
      examples: ['main...feature/one', 'v1.0..v1.1'],
      wire: { type: 'string', pattern: '^.*\\.\\..*$' },
    }),
});

const COUNT = z.int().nonnegative().nullable();

export const COMPARISON = z
  .object({
    ahead: COUNT.meta({ description: 'Commits that only `head` reaches. Null if they took too long to count.' }),
    behind: COUNT.meta({ description: 'Commits that only `base` reaches. Null if they took too long to count.' }),
    merge_base: HEXSHA.nullable().meta({
      description: 'The best common ancestor, as git merge-base finds it. Null without a common commit.',
    }),
    commits: z
      .array(COMMIT)
      .meta({ description: 'A page of the commits that only `head` reaches, in the order of `git log`.' }),
    files: z.array(CHANGED_FILE).meta({
      description: `What differs at \`head\` from the merge base, or from \`base\` with two dots or without a common commit; at most ${DIFF_FILES_MAX} files, or as many as have 2 MiB of paths, in byte order of paths.`,
    }),
    files_truncated: FILES_TRUNCATED,
    pagination: COMMIT_PAGINATION,
  })
  .meta({ id: 'Comparison' });
