/** What undoes: restorations of refs, deleted repositories, purges. */
import { z } from 'zod';
import { type EventId, type Timestamp, timestamp } from '../../../core/kernel/ids.ts';
import { REF_NAME_BYTES_MAX } from '../../../core/kernel/limits.ts';
import { LOST_PLACES } from '../../front-door/texts/lost-places.ts';
import { BYTES, HEXSHA, ID, idSchema, TIMESTAMP } from './common.ts';
import { NEW_REPOSITORY } from './repositories.ts';

export const OBJECT_ID = HEXSHA.meta({ description: 'All zeros: no object.' });

/** What became of a ref. */
export const REF_UPDATE = z.object({
  ref: z.string().meta({ description: 'The full name.', examples: ['refs/heads/main'] }),
  before: OBJECT_ID,
  after: OBJECT_ID,
  kind: z.enum(['create', 'fast-forward', 'force-push', 'delete']),
});

/** Takes any RFC 3339 time; the parsed value is in UTC with milliseconds. */
const MOMENT = z.iso
  .datetime({ offset: true, message: 'Expected an RFC 3339 time such as 2026-11-21T10:00:00Z' })
  .transform((text, issues): Timestamp => {
    const utc = new Date(text).toISOString();
    if (/^\d{4}-/.test(utc)) return timestamp(utc);
    issues.addIssue({ code: 'custom', message: 'Expected a time up to the year 9999', input: text });
    return z.NEVER;
  });

export const RESTORATION = z
  .strictObject({
    at: MOMENT.optional().meta({
      description: 'What the refs were at this time.',
      wire: { type: 'string', format: 'date-time' },
    }),
    event_id: idSchema<EventId>('What they were right after this event of the repository.').optional(),
    before_event_id: idSchema<EventId>('What they were right before it.').optional(),
    refs: z
      .array(z.string().max(REF_NAME_BYTES_MAX))
      .min(1)
      .optional()
      .meta({ description: 'Full names. Default: all refs.', examples: [['refs/heads/main']] }),
    dry_run: z.boolean().default(false).meta({ description: 'Answers what would change, and changes nothing.' }),
  })
  .refine(
    ({ at, event_id, before_event_id }) =>
      [at, event_id, before_event_id].filter((moment) => moment !== undefined).length === 1,
    { message: 'Expected one of `at`, `event_id` and `before_event_id`' },
  );

export const RESTORED = z
  .object({
    event_id: ID.nullable().meta({ description: 'Null: nothing changed.' }),
    updates: z.array(REF_UPDATE),
    left_out: z.array(z.string()).meta({
      description:
        'Full names of refs that are not there any more and do not come back, because no branch or tag of such a name is created: its first component is `HEAD`, `refs`, or 40 or 64 hex digits.',
      examples: [['refs/tags/HEAD']],
    }),
  })
  .meta({ id: 'Restoration' });

export const DELETED_REPOSITORIES = z
  .object({
    repositories: z
      .array(
        z.object({
          id: ID,
          name: z.string().meta({ description: 'The name that it had.' }),
          deleted_at: TIMESTAMP,
          expires_at: TIMESTAMP.meta({ description: 'From then on it may be removed for good.' }),
          size_bytes: BYTES,
          restorable: z.boolean().meta({ description: 'Whether it can be undeleted, if the account has room for it.' }),
          reason: z
            .string()
            .nullable()
            .meta({
              description: 'Why it cannot be undeleted, for people: what became of its storage bucket. Null: it can.',
              examples: [LOST_PLACES['bucket-deleted']],
            }),
        }),
      )
      .meta({ description: 'The last deleted first.' }),
  })
  .meta({ id: 'DeletedRepositoryList' });

export const UNDELETION = z
  .strictObject({ name: NEW_REPOSITORY.shape.name.optional() })
  .optional()
  .meta({ description: 'Another name, where a repository has taken its own.' });

export const PURGE = z
  .strictObject({ dry_run: z.boolean().default(false).meta({ description: 'Answers what would be freed.' }) })
  .optional();

export const PURGED = z
  .object({
    event_id: ID.nullable().meta({ description: 'Null: nothing was to be removed, or it is a dry run.' }),
    freed_bytes: BYTES,
    left_with_owner_bytes: BYTES.optional().meta({
      description:
        'What stays with the owner of the storage bucket that held a deleted repository, because the bucket was deleted here or given another place: the service cannot remove it. Absent otherwise.',
    }),
  })
  .meta({ id: 'Purge' });
