/** Who signed in, what failed and which reads were refused, on the wire. */
import { z } from 'zod';
import { SIGN_IN_DAYS_LIMIT_DEFAULT, SIGN_IN_DAYS_LIMIT_MAX } from '../limits.ts';
import { ID, pageLength, sequenceNumber, TIMESTAMP } from './common.ts';

const REFERENCE = z.string().nullable().meta({ description: 'A commitment: SHA-256(nonce || value), in hex.' });

const DETAILS = z
  .object({
    sign_ins: z
      .array(
        z.object({
          at: TIMESTAMP,
          factors: z.array(z.string()).meta({ description: '`password`, `totp` or `passkey`, in their order.' }),
          source_address_ref: REFERENCE,
          user_agent_ref: REFERENCE,
        }),
      )
      .meta({ description: 'Newest first, at most 100.' }),
    more_sign_ins: z.int().nonnegative().meta({ description: 'How many are not named.' }),
    failures: z.array(
      z.object({
        factor: z.string(),
        reason: z.string().nullable().meta({
          description: '`password-wrong`, or why the second factor was refused. Null: an older version recorded it.',
        }),
        count: z.int().positive(),
      }),
    ),
    refused_reads: z.array(
      z.object({
        token_id: ID.nullable().meta({ description: 'Null: tokens beyond the first 100 pairs of token and reason.' }),
        reason: z.string().meta({ examples: ['scope-missing'] }),
        count: z.int().positive(),
      }),
    ),
    openings: z
      .record(z.string(), z.object({ nonce: z.string(), value: z.string() }))
      .meta({ description: 'What the references of the sign-ins commit to, while it is not erased.' }),
  })
  .meta({ id: 'SignInDetails' });

export const SIGN_INS = z
  .object({
    today: DETAILS.meta({
      description: 'What no day has yet: that of today (UTC), and shortly after midnight that of yesterday.',
    }),
    days: z
      .array(
        z.object({
          day: z.string().meta({ examples: ['2026-11-21'] }),
          event_id: ID.meta({ description: 'The `UsageRecorded` that holds it.' }),
          details: DETAILS.nullable().meta({ description: 'Null: an older version of the service recorded none.' }),
        }),
      )
      .meta({ description: 'Newest first; days on which nothing happened are left out.' }),
    pagination: z.object({
      next_before: z.int().nonnegative().nullable().meta({ description: 'The value of `before` for the next page.' }),
      has_more: z.boolean(),
    }),
  })
  .meta({ id: 'SignIns' });

export const SIGN_INS_QUERY = z.object({
  before: sequenceNumber('Days before the one with this sequence in the log: the `next_before` of a page.'),
  limit: pageLength(SIGN_IN_DAYS_LIMIT_DEFAULT, SIGN_IN_DAYS_LIMIT_MAX),
});
