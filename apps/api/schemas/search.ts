/** Paths and lines that a search finds, on the wire. */
import { z } from 'zod';
import { SEARCH_TEXT_LENGTH_MAX } from '../../../core/use-cases/reading/search-code.ts';
import { REF } from './commits.ts';
import { ENCODED_PATH, flag, PAGE_QUERY, PAGINATION } from './common.ts';

export const FILES_QUERY = z.object({
  ...PAGE_QUERY.shape,
  ref: REF.optional(),
  q: z
    .string()
    .optional()
    .meta({ description: 'A part of the path, in any case. Absent or empty: all paths.', examples: ['main.c'] }),
});

export const FOUND_FILES = z
  .object({
    paths: z.array(z.string()).meta({
      description:
        "From the root; files, links and submodules. The best match first, and without `q` in git's order. Bytes that are not UTF-8 show as U+FFFD.",
      examples: [['src/main.c']],
    }),
    paths_encoded: z.array(z.string()).optional().meta({
      description:
        'Only there if one of the paths is not UTF-8: the bytes of all of them, percent-encoded, as each path of a request takes them.',
    }),
    pagination: PAGINATION,
  })
  .meta({ id: 'FoundFiles' });

export const SEARCH_QUERY = z.object({
  ...PAGE_QUERY.shape,
  q: z
    .string()
    .min(1, 'Expected a text')
    .max(SEARCH_TEXT_LENGTH_MAX, `Expected at most ${SEARCH_TEXT_LENGTH_MAX} characters`)
    .refine((text) => !text.includes('\0'), 'Expected a text without NUL')
    .meta({ description: 'The text, in exactly this case.', examples: ['TODO'] }),
  ref: REF.optional(),
  regex: flag('Whether `q` is an expression of PCRE, pcre2pattern(3), which is matched with each line.'),
  path: z
    .string()
    .optional()
    .meta({
      description:
        'The folder or file to search; no pattern. Percent-encoded bytes mean bytes, as `path_encoded` has them.',
      examples: ['src'],
    }),
});

const LINE = z.string();

export const CODE_SEARCH = z
  .object({
    matches: z.array(
      z
        .object({
          path: z.string().meta({ description: 'From the root. Bytes that are not UTF-8 show as U+FFFD.' }),
          path_encoded: ENCODED_PATH,
          line: z.int().positive().meta({ description: 'Counted from 1.' }),
          text: LINE.meta({ description: 'The line; a long one is cut around the match, which `…` shows.' }),
          before: z.array(LINE).meta({ description: 'Up to two lines before it.' }),
          after: z.array(LINE).meta({ description: 'Up to two lines behind it.' }),
        })
        .meta({ id: 'CodeMatch' }),
    ),
    complete: z.boolean().meta({
      description: 'Whether all files were searched, and all their matches are on the pages: at most 1,000.',
    }),
    searched_files: z.int().nonnegative().meta({
      description:
        'How many files were searched, at least. Links do not count; of a binary file only the beginning is read.',
    }),
    pagination: PAGINATION,
  })
  .meta({ id: 'CodeSearch' });
