/** Blobs and trees on the wire. */
import { z } from 'zod';
import { OBJECT_ID_PATTERN_ANY_CASE } from '../../../core/kernel/ids.ts';
import { BYTES, flag, HEXSHA, PAGINATION } from './common.ts';
import { FILE, FOLDER, OFFERED_CONTENTS_QUERY } from './contents.ts';
import { REPOSITORY_PARAMS } from './params.ts';

const ID = z.string().meta({ wire: { type: 'string', pattern: `^${OBJECT_ID_PATTERN_ANY_CASE}$` } });

export const BLOB_PARAMS = z.object({ ...REPOSITORY_PARAMS.shape, blob: ID });
export const TREE_PARAMS = z.object({ ...REPOSITORY_PARAMS.shape, tree: ID });

export const BLOB_QUERY = z.object({ raw: z.enum(['true', 'false']).optional() });

/** Without `raw`, whose answer has another media type: generators of clients know one for an operation. */
export const OFFERED_BLOB_QUERY = z.object({});

export const BLOB = z
  .object({ sha: HEXSHA, size: BYTES, encoding: FILE.shape.encoding, content: FILE.shape.content })
  .meta({ id: 'BlobContents' });

export const TREE_QUERY = z.object({
  page: OFFERED_CONTENTS_QUERY.shape.page.meta({ description: 'The page of the entries. Pages count from 0.' }),
  limit: OFFERED_CONTENTS_QUERY.shape.limit,
  recursive: flag('Whether the entries of the folders below are listed too, each folder before what is in it.'),
});

export const TREE = z
  .object({
    sha: HEXSHA,
    entries: FOLDER.shape.entries.meta({
      description: "In the order of Git's trees. Paths begin at this tree.",
    }),
    pagination: z
      .object({
        ...PAGINATION.shape,
        total: z.int().nonnegative().nullable().meta({
          description: 'The number of items on all pages. Null with `recursive`: they are not counted.',
        }),
      })
      .meta({ id: 'TreePagination' }),
  })
  .meta({ id: 'TreeContents' });
