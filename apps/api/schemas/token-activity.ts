/** What became of an access token, and what was done with it, on the wire. */
import { z } from 'zod';
import { TOKEN_USE_ADDRESSES_MAX } from '../../../core/kernel/limits.ts';
import type { TokenActivityPlace } from '../../../core/use-cases/tokens/token-activity.ts';
import { parseActivityPlace } from '../../front-door/list-places.ts';
import { ACCESS_TOKEN } from './access-tokens.ts';
import { ID, LIMIT, TIMESTAMP } from './common.ts';

const AFTER = z
  .string()
  .transform((text, issues): TokenActivityPlace => {
    const place = parseActivityPlace(text);
    if (place !== null) return place;
    issues.addIssue({ code: 'custom', message: 'Expected the next_after of a page', input: text });
    return z.NEVER;
  })
  .optional()
  .meta({ description: 'What is behind a page: its `next_after`.', wire: { type: 'string' } });

export const TOKEN_ACTIVITY_QUERY = z.object({ after: AFTER, limit: LIMIT });

export const TOKEN_ACTIVITY = z
  .object({
    changes: z
      .array(
        z.object({
          at: TIMESTAMP,
          event_id: ID,
          grants: ACCESS_TOKEN.shape.grants,
          scope: ACCESS_TOKEN.shape.scope,
          repository_ids: z.array(ID),
          expires_at: TIMESTAMP.nullable(),
          revoked: z.boolean().meta({ description: 'True for its end; the other members say what it was allowed.' }),
        }),
      )
      .meta({ description: 'What the token was allowed from each event on, oldest first.' }),
    used: z
      .array(
        z.object({
          minute: TIMESTAMP.meta({ description: 'The start of the minute.' }),
          repository_id: ID,
          reads: z.int().nonnegative().meta({ description: 'Fetches, and reads of contents.' }),
          writes: z.int().nonnegative().meta({ description: 'Pushes and restorations.' }),
          addresses: z.record(z.string(), z.object({ nonce: z.string(), value: z.string() })).meta({
            description: `The addresses that reads and writes came from, by the references in the events, at most ${TOKEN_USE_ADDRESSES_MAX}; no erased ones.`,
          }),
        }),
      )
      .meta({ description: 'Oldest first.' }),
    pagination: z.object({
      next_after: z.string().meta({ description: 'The value of `after` for the next page.' }),
      has_more: z.boolean().meta({ description: 'Whether there are more changes or more uses.' }),
    }),
  })
  .meta({ id: 'TokenActivity' });
