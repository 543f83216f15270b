/** Who brought the lines of a file, on the wire. */
import { z } from 'zod';
import { ACTOR } from './activity.ts';
import { REF } from './commits.ts';
import { ENCODED_PATH, HEXSHA, ID, PAGE_QUERY, PAGINATION, pageLength } from './common.ts';

/** Ranges of lines on one page of the API. */
export const BLAME_RANGES_MAX = 1_000;

const NOT_TOLD = 'Null if it is not known, and for a token without the grant ALL and the scope ALL_REPO.';

export const BLAME = z
  .object({
    commit: HEXSHA.meta({ description: 'The commit that `ref` leads to.' }),
    ranges: z
      .array(
        z
          .object({
            start: z.int().positive().meta({ description: 'The number of the first line, counted from 1.' }),
            count: z.int().positive().meta({ description: 'The number of lines.' }),
            commit: HEXSHA.meta({ description: 'The commit that brought them.' }),
            path: z.string().meta({
              description: 'That of the file in this commit. Bytes that are not UTF-8 show as U+FFFD.',
              examples: ['src/main.c'],
            }),
            path_encoded: ENCODED_PATH,
            event_id: ID.nullable().meta({ description: `The push that first brought the commit. ${NOT_TOLD}` }),
            actor: ACTOR.nullable().meta({ description: `Who pushed it. ${NOT_TOLD}` }),
          })
          .meta({ id: 'BlameRange' }),
      )
      .meta({ description: 'In the order of lines, without a gap: those of page 0 begin with line 1.' }),
    truncated: z.boolean().meta({
      description:
        'Whether lines follow the last of these ranges: on the next page if `has_more` is true, else they were not looked for any more.',
    }),
    pagination: PAGINATION,
  })
  .meta({ id: 'Blame' });

export const BLAME_QUERY = z.object({
  page: PAGE_QUERY.shape.page,
  limit: pageLength(BLAME_RANGES_MAX, BLAME_RANGES_MAX),
  ref: REF.optional(),
});
