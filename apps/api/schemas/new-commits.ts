/** Commits that are written over the API, on the wire. */
import { z } from 'zod';
import { utf8Length } from '../../../core/git/utf8.ts';
import { KIB, MIB } from '../../../core/kernel/byte-units.ts';
import { OBJECT_ID_PATTERN, type ObjectId, parseObjectId, ZERO_OBJECT_ID } from '../../../core/kernel/ids.ts';
import { REF_NAME_BYTES_MAX, TREE_PATH_BYTES_MAX } from '../../../core/kernel/limits.ts';
import { CHANGED_COMMIT, COMMIT } from './commits.ts';
import { ID } from './common.ts';
import { EXPECTED, OBJECT, REF_NOT_CHANGED } from './refs.ts';
import { OBJECT_ID } from './undo.ts';

/** Changes of one commit. */
export const COMMIT_CHANGES_MAX = 10_000;
/** Contents of one commit that are sent in parts of their own, and the size of each. */
export const COMMIT_PARTS_MAX = 1_000;
export const COMMIT_PART_BYTES_MAX = 64 * MIB;
/** The part that has the JSON of such a commit. */
export const JSON_PART = 'commit';
/** The message of a commit, or of an annotated tag. */
export const NEW_MESSAGE_BYTES_MAX = 64 * KIB;
/** UTF-16 code units of the name and of the address of an author. */
export const AUTHOR_TEXT_LENGTH_MAX = 255;

const AUTHOR_TEXT = z
  .string()
  .min(1)
  .max(AUTHOR_TEXT_LENGTH_MAX)
  .regex(new RegExp('^[^<>\\u0000-\\u001f\\u007f-\\u009f]*$'), 'Expected no <, > or control characters');

export const AUTHOR = z
  .strictObject({
    name: AUTHOR_TEXT,
    email: AUTHOR_TEXT,
    date: z.iso
      .datetime({ offset: true, message: 'Expected an RFC 3339 time such as 2026-11-21T10:00:00Z' })
      .refine((text) => Date.parse(text) >= 0, 'Expected a time from 1970 on')
      .optional()
      .meta({ description: 'By default the moment of the commit. The offset becomes the zone.' }),
  })
  .meta({ id: 'NewAuthor' });

export const MESSAGE = z
  .string()
  .min(1)
  .refine((text) => utf8Length(text) <= NEW_MESSAGE_BYTES_MAX, `Expected at most ${NEW_MESSAGE_BYTES_MAX} bytes`)
  .meta({ description: `At most ${NEW_MESSAGE_BYTES_MAX} bytes. A line feed is added where the last one is missing.` });

const PATH = z
  .string()
  .optional()
  .meta({ description: `From the root; at most ${TREE_PATH_BYTES_MAX} bytes.` });
const ENCODED = z.string().optional().meta({ description: 'The same in base64, for bytes that are not UTF-8.' });
/** Null for nothing. */
const EXPECTED_BLOB = z
  .string()
  .transform((text, issues): ObjectId | null => {
    if (text === ZERO_OBJECT_ID) return null;
    const id = parseObjectId(text);
    if (id !== null) return id;
    issues.addIssue({ code: 'custom', message: 'Expected an id, or all zeros', input: text });
    return z.NEVER;
  })
  .meta({
    description: 'The id of the file or the folder that is at the path. All zeros: nothing is.',
    wire: { type: 'string', pattern: `^${OBJECT_ID_PATTERN}$` },
  });

const ofPath = { path: PATH, path_base64: ENCODED, expected_blob: EXPECTED_BLOB.optional() };

const CHANGE = z.discriminatedUnion('action', [
  z
    .strictObject({
      action: z.literal('put'),
      ...ofPath,
      mode: z
        .enum(['100644', '100755', '120000'])
        .optional()
        .meta({ description: 'By default that of the file that is there, else 100644.' }),
      content: z.string().optional(),
      content_base64: z.string().optional(),
      blob: OBJECT.optional().meta({ description: 'A blob that a ref of the repository reaches.' }),
      part: z
        .string()
        .regex(
          new RegExp('^[^"\\\\%\\u0000-\\u001f\\u007f-\\u009f]+$'),
          'Expected a name without quotes, \\, % or control characters',
        )
        .optional()
        .meta({ description: 'The name of the part that has the content, of a request in parts.' }),
    })
    .meta({ id: 'PutFile' }),
  z.strictObject({ action: z.literal('delete'), ...ofPath }).meta({ id: 'DeletePath' }),
  z
    .strictObject({ action: z.literal('move'), ...ofPath, to: PATH, to_base64: ENCODED })
    .meta({ id: 'MovePath', description: 'Nothing may be at the new path.' }),
]);

export const NEW_COMMIT = z.strictObject({
  branch: z
    .string()
    .max(REF_NAME_BYTES_MAX)
    .meta({ description: 'The short name. It may be new.', examples: ['main'] }),
  expected: EXPECTED,
  start: z
    .string()
    .max(REF_NAME_BYTES_MAX)
    .optional()
    .meta({ description: 'Where a new branch begins: a branch, a tag or a commit. By default without files.' }),
  message: MESSAGE,
  author: AUTHOR.optional().meta({ description: 'By default the account.' }),
  committer: AUTHOR.optional().meta({ description: 'By default the author.' }),
  changes: z
    .array(CHANGE)
    .max(COMMIT_CHANGES_MAX)
    .meta({ description: 'All are applied to the tree of the head. No path twice.' }),
  allow_empty: z.boolean().default(false).meta({ description: 'Whether a commit may change nothing.' }),
  dry_run: z.boolean().default(false).meta({ description: 'Whether only to check it, and to list what would change.' }),
});

export const WRITTEN_COMMIT = z
  .object({
    commit: COMMIT.meta({ description: 'With 200 the head: nothing was to be changed.' }),
    ref: z.string().meta({ description: 'The full name of the branch.', examples: ['refs/heads/main'] }),
    before: OBJECT_ID,
    after: OBJECT_ID,
    event_id: ID.nullable().meta({ description: 'Null: nothing changed.' }),
  })
  .meta({ id: 'WrittenCommit' });

export const TRIED_COMMIT = z
  .object({
    ref: z.string().meta({ description: 'The full name of the branch.', examples: ['refs/heads/main'] }),
    before: OBJECT_ID,
    tree: OBJECT_ID.meta({ description: 'The tree that the commit would have.' }),
    files: CHANGED_COMMIT.shape.files,
    files_truncated: CHANGED_COMMIT.shape.files_truncated,
  })
  .meta({ id: 'TriedCommit', description: 'A dry run: nothing was stored.' });

export const COMMIT_OUTCOME = z.union([WRITTEN_COMMIT, TRIED_COMMIT]).meta({ id: 'CommitOutcome' });

export const COMMIT_NOT_WRITTEN = z
  .object({
    ...REF_NOT_CHANGED.shape,
    code: z.string().optional().meta({ description: '`head-moved` or `blob-moved` with 409.' }),
    index: z.int().nonnegative().optional().meta({ description: 'With `blob-moved`: the number of the change.' }),
    path: z.string().optional(),
    path_encoded: z.string().optional(),
    blob: OBJECT_ID.optional().meta({ description: 'With `blob-moved`: what is at the path. All zeros: nothing.' }),
  })
  .meta({ id: 'CommitNotWritten', description: 'Nothing changed.' });
