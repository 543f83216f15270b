/** The commit listing on the wire. */
import { z } from 'zod';
import { DIFF_FILES_MAX } from '../../../core/kernel/limits.ts';
import { COMMIT_SEARCH_LENGTH_MAX } from '../../../core/use-cases/reading/list-commits.ts';
import { COMMIT_SUMMARY, ENCODED_PATH, HEXSHA, INSTANT, PAGE_QUERY, PAGINATION, TIMESTAMP } from './common.ts';
import { REPOSITORY_PARAMS } from './params.ts';

export const COMMIT = z
  .object({
    ...COMMIT_SUMMARY.shape,
    authored_at: TIMESTAMP,
    committed_at: TIMESTAMP,
    parents: z.array(HEXSHA),
  })
  .meta({ id: 'Commit' });

export const COMMIT_PAGINATION = z
  .object({
    ...PAGINATION.shape,
    total: z.int().nonnegative().nullable().meta({
      description:
        'The number of items on all pages. Null where they are not counted: the commits of a path or of a search, and those of a comparison that take too long.',
    }),
  })
  .meta({ id: 'CommitPagination' });

export const COMMITS = z
  .object({
    branch: z.string().meta({ description: 'The requested `ref`, else the default branch.' }),
    commits: z.array(COMMIT).meta({ description: 'In the order of `git log`: newest first.' }),
    pagination: COMMIT_PAGINATION,
  })
  .meta({ id: 'CommitList' });

const FILE_PATH = z.string().meta({ description: 'From the root. Bytes that are not UTF-8 show as U+FFFD.' });
const LINES = z
  .int()
  .nonnegative()
  .nullable()
  .meta({ description: 'Null if they were not counted, as in a binary file.' });

export const CHANGED_FILE = z
  .object({
    path: FILE_PATH.meta({ examples: ['src/main.c'] }),
    path_encoded: ENCODED_PATH,
    previous_path: FILE_PATH.nullable().meta({ description: 'The earlier path of a renamed file.' }),
    previous_path_encoded: ENCODED_PATH,
    status: z.enum(['added', 'modified', 'deleted', 'renamed', 'typechange']),
    additions: LINES,
    deletions: LINES,
    binary: z.boolean(),
  })
  .meta({ id: 'ChangedFile' });

export const FILES_TRUNCATED = z.boolean().meta({ description: 'Whether files are missing.' });

export const CHANGED_COMMIT = z
  .object({
    ...COMMIT.shape,
    files: z.array(CHANGED_FILE).meta({
      description: `What differs from the first parent, or from nothing; at most ${DIFF_FILES_MAX} files, or as many as have 2 MiB of paths, in byte order of paths.`,
    }),
    files_truncated: FILES_TRUNCATED,
  })
  .meta({ id: 'CommitWithFiles' });

export const COMMIT_PARAMS = z.object({
  ...REPOSITORY_PARAMS.shape,
  hexsha: z.string().meta({
    description: 'A commit id, or its first 7 digits and more if no other commit that a ref reaches begins with them.',
    wire: { type: 'string', pattern: '^[0-9a-fA-F]{7,40}$' },
  }),
});

export const REF = z.string().meta({
  description:
    'A full commit id that a ref reaches, in 40 hex digits; `HEAD`, the default branch; a full name such as `refs/tags/v1.0`, of any folder below `refs/`; else a branch, or a tag if no branch has the name, or the first 7 to 39 digits of the id of a commit if no tag has it either; several such commits are 422, which names ten at most. No revision expressions. Absent or empty: the default branch.',
  examples: ['main'],
});

/** A part of an author or of a message. Empty, it finds all. */
const SEARCHED = z.string().max(COMMIT_SEARCH_LENGTH_MAX, `Expected at most ${COMMIT_SEARCH_LENGTH_MAX} characters`);

export const COMMITS_QUERY = z.object({
  ...PAGE_QUERY.shape,
  ref: REF.optional(),
  path: z
    .string()
    .optional()
    .meta({
      description:
        'Only commits that changed this file or folder, which need not exist any more. Percent-encoded bytes mean bytes, as `path_encoded` has them.',
      examples: ['src'],
    }),
  author: SEARCHED.optional().meta({
    description: "Only commits with this in their author's name or address, letters of ASCII in any case.",
    examples: ['ada@example.org'],
  }),
  text: SEARCHED.optional().meta({
    description: 'Only commits with this in a line of their message, letters of ASCII in any case.',
    examples: ['release'],
  }),
  since: INSTANT.optional().meta({ description: 'Only commits that were committed at this time or later.' }),
  until: INSTANT.optional().meta({ description: 'Only commits that were committed at this time or earlier.' }),
});
