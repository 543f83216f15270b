/** Repositories on the wire. */
import { z } from 'zod';
import { OBJECT_ID_PATTERN_ANY_FORMAT, type StorageBucketId } from '../../../core/kernel/ids.ts';
import {
  REF_NAME_BYTES_MAX,
  REPOSITORY_DESCRIPTION_LENGTH_MAX,
  REPOSITORY_NAME_LENGTH_MAX,
} from '../../../core/kernel/limits.ts';
import { BYTES, ID, idSchema, PAGINATION, TIMESTAMP } from './common.ts';

export const REPOSITORY = z
  .object({
    id: ID,
    name: z.string(),
    username: z.string(),
    full_name: z.string().meta({ description: '`<username>/<name>`', examples: ['ada/engine'] }),
    description: z.string().nullable(),
    default_branch: z.string().meta({ examples: ['main'] }),
    html_url: z.string(),
    clone_url: z.string(),
    owner: z.object({ id: ID, username: z.string() }),
    storage_bucket_id: ID.nullable().meta({ description: 'Null: platform storage. It never changes.' }),
    size_bytes: BYTES.meta({ description: 'The size of its layers in storage.' }),
    created_at: TIMESTAMP,
    pushed_at: TIMESTAMP.nullable(),
  })
  .meta({ id: 'Repository' });

export const REPOSITORIES = z
  .object({ repositories: z.array(REPOSITORY), pagination: PAGINATION })
  .meta({ id: 'RepositoryList' });

const DESCRIPTION = z.string().nullable().meta({ maxLength: REPOSITORY_DESCRIPTION_LENGTH_MAX });
/** What `parseDefaultBranch` (core/git/ref-name.ts) refuses, but for the length of each component. */
const BRANCH_PATTERN =
  `^(refs/heads/)?(?![./-])(?!(HEAD|refs|${OBJECT_ID_PATTERN_ANY_FORMAT})(/|$))` +
  '(?!.*(\\.\\.|@\\{|//|/[.-]|\\.lock/|\\.lock$|\\.$|/$))[^\\u0000-\\u0020\\u007f~^:?*\\[\\\\]+$';
const BRANCH_NAME = z.string().meta({
  description:
    'The short name of a branch, or `refs/heads/<name>`, which means the same and is answered as the short name. The branch need not exist, and its name must be one that a push may create.',
  minLength: 1,
  maxLength: REF_NAME_BYTES_MAX,
  pattern: BRANCH_PATTERN,
  examples: ['main'],
});

/** What core/account/repositories accepts, for clients that check a name before they send it. */
const NAME_PATTERN = '^(?![.-])(?!.*\\.\\.)(?!.*\\.([gG][iI][tT]|[lL][oO][cC][kK])?$)[A-Za-z0-9._-]+$';

const NAME = z.string().meta({
  description:
    'Unique in the account without case. 1-100 of `A-Za-z0-9._-`, not starting with `.` or `-`, not ending in `.git`, `.lock` or `.`, without `..`.',
  minLength: 1,
  maxLength: REPOSITORY_NAME_LENGTH_MAX,
  pattern: NAME_PATTERN,
  examples: ['engine'],
});

export const NEW_REPOSITORY = z.strictObject({
  name: NAME,
  description: DESCRIPTION.optional(),
  default_branch: BRANCH_NAME.optional(),
  storage_bucket_id: idSchema<StorageBucketId>(
    'A verified bucket of the account; null: platform storage; absent: the default bucket of the account, or platform storage.',
  )
    .nullable()
    .optional(),
});

export const REPOSITORY_CHANGES = z.strictObject({
  name: NAME.optional(),
  description: DESCRIPTION.optional(),
  default_branch: BRANCH_NAME.optional(),
});
