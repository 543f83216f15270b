/** Changes of refs on the wire. */
import { z } from 'zod';
import { OBJECT_ID_PATTERN, type ObjectId, parseObjectId, ZERO_OBJECT_ID } from '../../../core/kernel/ids.ts';
import { REF_NAME_BYTES_MAX } from '../../../core/kernel/limits.ts';
import { ERROR, ID } from './common.ts';
import { OBJECT_ID, REF_UPDATE } from './undo.ts';

/** Refs that one request changes. */
export const REF_UPDATES_MAX = 1_000;

/** What a ref names, as its writer saw it: null for nothing. */
export const EXPECTED = z
  .string()
  .transform((text, issues): ObjectId | null | 'any' => {
    if (text === ZERO_OBJECT_ID) return null;
    const expected = text === 'any' ? text : parseObjectId(text);
    if (expected !== null) return expected;
    issues.addIssue({ code: 'custom', message: 'Expected an id, all zeros or `any`', input: text });
    return z.NEVER;
  })
  .meta({
    description: 'What the ref names. All zeros: nothing, it is not there. `any`: whatever it is.',
    wire: { type: 'string', pattern: `^(any|${OBJECT_ID_PATTERN})$` },
  });

/** The id of an object. */
export const OBJECT = z
  .string()
  .transform((text, issues): ObjectId => {
    const id = parseObjectId(text);
    if (id !== null && id !== ZERO_OBJECT_ID) return id;
    issues.addIssue({ code: 'custom', message: 'Expected the id of an object', input: text });
    return z.NEVER;
  })
  .meta({ wire: { type: 'string', pattern: `^(?!0+$)${OBJECT_ID_PATTERN}$` } });

export const REF_CHANGES = z
  .strictObject({
    updates: z
      .array(
        z.strictObject({
          ref: z
            .string()
            .max(REF_NAME_BYTES_MAX)
            .meta({ description: 'The full name.', examples: ['refs/heads/main'] }),
          expected: EXPECTED,
          after: OBJECT.nullable().meta({
            description: 'An object that this token could fetch by its id. Null: the ref is deleted.',
          }),
        }),
      )
      .min(1)
      .max(REF_UPDATES_MAX)
      .meta({ description: 'No ref twice.' }),
    atomic: z.boolean().default(true).meta({ description: 'Whether nothing changes if one of them is refused.' }),
  })
  .refine(({ updates }) => new Set(updates.map(({ ref }) => ref)).size === updates.length, {
    message: 'Expected each ref once',
    path: ['updates'],
  });

const REFUSED_REFS = z.array(
  z.object({
    ref: z.string(),
    code: z.string().meta({ description: 'A stable code, that of a push.', examples: ['ref-moved', 'object-missing'] }),
    detail: z.string(),
    head: OBJECT_ID.optional().meta({
      description: 'What the ref names, all zeros for nothing. Only there if it is not what was expected.',
    }),
  }),
);

export const CHANGED_REFS = z
  .object({
    event_id: ID.nullable().meta({ description: 'Null: nothing changed.' }),
    updates: z.array(REF_UPDATE).meta({ description: 'Without refs that were so already.' }),
    refused: REFUSED_REFS,
  })
  .meta({ id: 'ChangedRefs' });

/** 409 and 422, the latter with `detail` alone. */
export const REF_NOT_CHANGED = z
  .object({
    ...ERROR.shape,
    code: z.string().optional().meta({ description: '`head-moved` with 409.' }),
    head: OBJECT_ID.optional().meta({ description: 'With 409: what the ref names, all zeros for nothing.' }),
  })
  .meta({ id: 'RefNotChanged', description: 'Nothing changed.' });

/** Does what `REF_NOT_CHANGED` does for several refs. Input that does not fit its schema has `detail` alone. */
export const REFS_NOT_CHANGED = z
  .object({
    ...REF_NOT_CHANGED.shape,
    head: REF_NOT_CHANGED.shape.head.meta({ description: 'With 409: that of the first ref that moved.' }),
    event_id: ID.nullable().optional(),
    updates: z.array(REF_UPDATE).optional(),
    refused: REFUSED_REFS.optional(),
  })
  .meta({ id: 'RefsNotChanged', description: 'Nothing changed. Why a ref was refused stands in `refused`.' });
