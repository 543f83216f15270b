/** The tag listing on the wire. */
import { z } from 'zod';
import { ZERO_OBJECT_ID } from '../../../core/kernel/ids.ts';
import { REF_NAME_BYTES_MAX } from '../../../core/kernel/limits.ts';
import { COMMIT } from './commits.ts';
import { HEXSHA, ID, PAGINATION, PERSON } from './common.ts';
import { AUTHOR, MESSAGE } from './new-commits.ts';
import { OBJECT } from './refs.ts';

const TAG = z
  .object({
    name: z.string(),
    target: HEXSHA.meta({ description: 'What the tag leads to in the end: mostly a commit.' }),
    type: z.enum(['commit', 'tree', 'blob']).meta({ description: 'The type of the target.' }),
    annotated: z.boolean(),
    message: z.string().nullable().meta({ description: 'The message of an annotated tag.' }),
    tagger: PERSON.nullable().meta({ description: 'The tagger of an annotated tag that names one.' }),
    commit: COMMIT.nullable().meta({ description: 'Null for a tag that leads to a tree or a blob.' }),
  })
  .meta({ id: 'Tag' });

export const CREATED_TAG = z
  .object({ ...TAG.shape, event_id: ID.nullable().meta({ description: 'Null: the tag was there already.' }) })
  .meta({ id: 'CreatedTag' });

const EXPECTED_FAULT = 'Expected all zeros or `any`';

export const NEW_TAG = z
  .strictObject({
    name: z
      .string()
      .max(REF_NAME_BYTES_MAX)
      .meta({ description: 'The short name.', examples: ['v1.0'] }),
    target: OBJECT.meta({ description: 'An object that this token could fetch by its id: mostly a commit.' }),
    expected: z
      .string()
      .transform((text, issues): null | 'any' => {
        if (text === 'any') return text;
        if (text !== ZERO_OBJECT_ID) issues.addIssue({ code: 'custom', message: EXPECTED_FAULT, input: text });
        return null;
      })
      .meta({
        description: 'All zeros: there is no tag of this name. `any`: if there is one, it moves.',
        wire: { type: 'string', pattern: `^(any|${ZERO_OBJECT_ID})$` },
      }),
    message: MESSAGE.optional().meta({ description: 'Makes the tag annotated; else it is lightweight.' }),
    tagger: AUTHOR.optional().meta({ description: 'Only with a message. By default the account.' }),
  })
  .refine(({ message, tagger }) => message !== undefined || tagger === undefined, {
    message: 'Only an annotated tag, which has a message, has a tagger',
    path: ['tagger'],
  });

export const TAGS = z
  .object({
    tags: z.array(TAG).meta({ description: 'In byte order of names.' }),
    pagination: PAGINATION,
  })
  .meta({ id: 'TagList' });
