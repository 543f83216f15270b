/** Account usage on the wire. */
import { z } from 'zod';
import type { LedgerPlace } from '../../../core/ports/usage-ledger.ts';
import { parseLedgerPlace } from '../../front-door/list-places.ts';
import { ENTRIES_PAGE_LIMIT_DEFAULT, ENTRIES_PAGE_LIMIT_MAX } from '../limits.ts';
import { ID, pageLength, TIMESTAMP } from './common.ts';

const FIGURE = z
  .object({
    used: z.int().nonnegative(),
    quota: z.int().nonnegative().nullable().meta({ description: 'Null: unlimited.' }),
  })
  .meta({ id: 'UsageFigure' });

const CHANGES_FIGURE = z
  .object({
    used: z.int().nonnegative().meta({
      description: 'Requests and pushes of this calendar month, in UTC, that appended to the record of the account.',
    }),
    quota: z.int().nonnegative().nullable().meta({
      description: '`changes_per_month` of the plan. Null: unlimited. The usage ledger does not list changes.',
    }),
  })
  .meta({ id: 'ChangesFigure' });

/** Generators of clients know no type whose only value is null. */
const ALWAYS_NULL = FIGURE.shape.quota;

/** A part of another figure. */
const DELETED_FIGURE = z
  .object({
    used: z.int().nonnegative().meta({
      description:
        'The part of `storage_bytes` that deleted repositories hold, until the retention is over or they are purged.',
    }),
    quota: ALWAYS_NULL.meta({ description: 'Always null: it counts within `storage_bytes`.' }),
  })
  .meta({ id: 'DeletedUsageFigure' });

const WAITING_FIGURE = z
  .object({
    used: z.int().nonnegative().meta({
      description:
        'What purges, drops and compactions took out of repositories and platform storage still holds. It is no part of `storage_bytes`.',
    }),
    quota: z.int().nonnegative().nullable().meta({
      description:
        'While what purges alone took out is more, a purge of a living repository is 429: twice the storage of the plan, at least 1 GiB. Null: unlimited.',
    }),
  })
  .meta({ id: 'WaitingUsageFigure' });

/** A figure as the others, with its parts. */
const BUCKETS_FIGURE = z
  .object({
    used: z.int().nonnegative(),
    quota: ALWAYS_NULL.meta({ description: 'Always null: what lies in a bucket of your own counts against no quota.' }),
    buckets: z.array(z.object({ storage_bucket_id: ID, used: z.int().nonnegative() })),
  })
  .meta({ id: 'BucketUsageFigure' });

export const USAGE = z
  .object({
    repos: FIGURE,
    storage_bytes: FIGURE,
    transfer_bytes: FIGURE,
    ingress_bytes: FIGURE,
    changes: CHANGES_FIGURE,
    deleted_storage_bytes: DELETED_FIGURE,
    waiting_storage_bytes: WAITING_FIGURE,
    byo_storage_bytes: BUCKETS_FIGURE,
  })
  .meta({ id: 'Usage' });

const MONTH = '^(?!0000)[0-9]{4}-(0[1-9]|1[0-2])$';

const AFTER = z
  .string()
  .transform((text, issues): LedgerPlace => {
    const place = parseLedgerPlace(text);
    if (place !== null) return place;
    issues.addIssue({ code: 'custom', message: 'Expected the next_after of a page', input: text });
    return z.NEVER;
  })
  .optional()
  .meta({ description: 'Entries behind this one: the `next_after` of a page.', wire: { type: 'string' } });

export const LEDGER_QUERY = z.object({
  month: z
    .string()
    .regex(new RegExp(MONTH), 'Expected a month such as 2026-11')
    .optional()
    .meta({ description: 'In UTC. Absent: the current one.', wire: { type: 'string', pattern: MONTH } }),
  after: AFTER,
  limit: pageLength(ENTRIES_PAGE_LIMIT_DEFAULT, ENTRIES_PAGE_LIMIT_MAX),
});

const LEVEL = z.int();

export const USAGE_LEDGER = z
  .object({
    month: z.string().meta({ examples: ['2026-11'] }),
    opening: z
      .object({ repos: LEVEL, storage_bytes: LEVEL })
      .meta({ description: 'The levels when the month began; of traffic every month begins with nothing.' }),
    entries: z
      .array(
        z.object({
          event_id: ID,
          member: z.enum(['repos', 'storage_bytes', 'transfer_bytes', 'ingress_bytes']),
          delta: z.int(),
          at: TIMESTAMP.meta({ description: 'For transfer the minute in which the bytes were sent.' }),
          repository_id: ID.nullable().meta({ description: 'Null: not known.' }),
          token_id: ID.nullable().meta({ description: 'The access token that caused it. Null: none, or not known.' }),
          operational: z.literal(true).optional().meta({
            description:
              "Only there if the event is no entry of the account's log, so that nobody can read it: a minute of reads. The day that sums it is an entry.",
          }),
        }),
      )
      .meta({ description: 'Oldest first.' }),
    pagination: z.object({
      next_after: z.string().nullable().meta({ description: 'The value of `after` for the next page.' }),
      has_more: z.boolean(),
    }),
    totals: z
      .object({ repos: LEVEL, storage_bytes: LEVEL, transfer_bytes: LEVEL, ingress_bytes: LEVEL })
      .meta({ description: 'The sums of the whole month, whatever the page: the opening and all entries together.' }),
  })
  .meta({ id: 'UsageLedger' });
