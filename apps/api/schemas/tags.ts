/** The tag listing on the wire. */
import { z } from 'zod';
import { COMMIT } from './commits.ts';
import { HEXSHA, PAGINATION, PERSON } from './common.ts';

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

export const TAGS = z
  .object({
    tags: z.array(TAG).meta({ description: 'In byte order of names.' }),
    pagination: PAGINATION,
  })
  .meta({ id: 'TagList' });
