/** Contents on the wire: one shape each for files, folders, symbolic links and submodules. */
import { z } from 'zod';
import { REF } from './commits.ts';
import { BYTES, ENCODED_PATH, HEXSHA, PAGE_QUERY, PAGINATION, pageLength } from './common.ts';
import { REPOSITORY_PARAMS } from './params.ts';

/** Entries of a folder on one page of the API. */
export const CONTENTS_ENTRIES_MAX = 1_000;

const PATH = z.string().meta({
  description:
    'From the root, without a slash at its end; empty for the root, and for the blob that a tag leads to. Bytes that are not UTF-8 show as U+FFFD.',
  examples: ['src/main.c'],
});
const MODE = z.string().meta({ description: 'Octal, six digits.', examples: ['100644'] });

const PLACE = {
  path: PATH,
  path_encoded: ENCODED_PATH,
  ref: z.string().meta({ description: 'The requested `ref`, else the default branch.' }),
  // Without a pattern: in alternatives, openapi-generator's clients in Go take no text that has one and may be null.
  commit: z.string().nullable().meta({ description: 'Its id. Null where a tag leads to a tree or a blob.' }),
};
const OBJECT = { name: z.string(), mode: MODE, sha: HEXSHA };

export const FILE = z
  .object({
    type: z.literal('file'),
    ...OBJECT,
    size: BYTES,
    ...PLACE,
    encoding: z.enum(['utf-8', 'base64']).meta({ description: 'base64 if the file is not UTF-8, or holds NUL.' }),
    content: z.string(),
  })
  .meta({ id: 'ContentsFile' });

export const SYMLINK = z
  .object({
    type: z.literal('symlink'),
    ...OBJECT,
    size: BYTES,
    ...PLACE,
    target: z.string().meta({ description: 'The text of the link, at most 4,096 bytes of it; it is not followed.' }),
  })
  .meta({ id: 'ContentsSymlink' });

export const SUBMODULE = z
  .object({
    type: z.literal('submodule'),
    ...OBJECT,
    size: BYTES.nullable().meta({ description: 'Always null.' }),
    ...PLACE,
  })
  .meta({ id: 'ContentsSubmodule', description: 'A commit of another repository.' });

export const FOLDER = z
  .object({
    type: z.literal('dir'),
    ...PLACE,
    entries: z
      .array(
        z.object({
          ...OBJECT,
          path: PATH,
          path_encoded: ENCODED_PATH,
          type: z.enum(['file', 'dir', 'symlink', 'submodule']),
          size: BYTES.nullable().meta({ description: 'Null for folders and submodules.' }),
        }),
      )
      .meta({ description: "In the order of Git's trees: by bytes, folders as if their names ended in a slash." }),
    pagination: PAGINATION,
  })
  .meta({ id: 'ContentsFolder' });

export const CONTENTS = z.union([FILE, FOLDER, SYMLINK, SUBMODULE]).meta({ id: 'Contents' });

export const RAW_CONTENTS_QUERY = z.object({ ref: REF.optional() });

/** Without `raw`, whose answer has another media type: generators of clients know one for an operation. */
export const OFFERED_CONTENTS_QUERY = z.object({
  page: PAGE_QUERY.shape.page.meta({ description: 'The page of the entries of a folder. Pages count from 0.' }),
  limit: pageLength(CONTENTS_ENTRIES_MAX, CONTENTS_ENTRIES_MAX),
  ...RAW_CONTENTS_QUERY.shape,
});

export const CONTENTS_QUERY = z.object({ ...OFFERED_CONTENTS_QUERY.shape, raw: z.enum(['true', 'false']).optional() });

export const CONTENTS_PARAMS = z.object({
  ...REPOSITORY_PARAMS.shape,
  path: z.string().meta({ description: 'Its slashes may be sent as they are.', examples: ['src/main.c'] }),
});
