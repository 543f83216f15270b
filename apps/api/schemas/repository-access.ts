/** Who could read a repository, and who did, on the wire. */
import { z } from 'zod';
import { TOKEN_USE_ADDRESSES_MAX } from '../../../core/kernel/limits.ts';
import type { RepositoryUsePlace } from '../../../core/ports/usage-ledger.ts';
import { NOT_METERED } from '../../../core/use-cases/auditing/repository-accesses.ts';
import { parseAccessPlace } from '../../front-door/list-places.ts';
import { ACCESS_TOKEN } from './access-tokens.ts';
import { ID, INSTANT, LIMIT, TIMESTAMP } from './common.ts';

export const REPOSITORY_ACCESS = z
  .object({
    at: TIMESTAMP,
    sequence: z.int().nonnegative().meta({ description: "The number of entries of the account's log until then." }),
    subjects: z.array(
      z.object({
        kind: z.enum(['user', 'webhook', 'token', 'trust_rule']),
        id: ID,
        name: z.string().nullable().meta({ description: 'Null: a webhook, whose event refers to its address.' }),
        grants: z.array(z.string()).meta({ description: 'A webhook has the events that it gets here.' }),
        scope: ACCESS_TOKEN.shape.scope,
        event_id: ID.meta({ description: 'The event that made it, or last changed it until then.' }),
      }),
    ),
  })
  .meta({ id: 'RepositoryAccess' });

const AFTER = z
  .string()
  .transform((text, issues): RepositoryUsePlace => {
    const place = parseAccessPlace(text);
    if (place !== null) return place;
    issues.addIssue({ code: 'custom', message: 'Expected the next_after of a page', input: text });
    return z.NEVER;
  })
  .optional()
  .meta({ description: 'What is behind a page: its `next_after`.', wire: { type: 'string' } });

export const ACCESSES_QUERY = z.object({
  since: INSTANT.optional().meta({ description: 'From the minute of this time on.' }),
  until: INSTANT.optional().meta({ description: 'Minutes that begin before this time.' }),
  after: AFTER,
  limit: LIMIT,
});

export const REPOSITORY_ACCESSES = z
  .object({
    accesses: z
      .array(
        z.object({
          minute: TIMESTAMP.meta({ description: 'The start of the minute, or of the day.' }),
          whole_day: z.boolean().meta({
            description: 'True: the reads of a day whose minutes have passed the retention. They have no addresses.',
          }),
          kind: z.enum(['token', 'user', 'trust_rule', 'system', 'admin']),
          id: z.string().meta({ description: 'The actor, as events name it.' }),
          reads: z.int().nonnegative().meta({ description: 'Fetches, and reads of contents, raw files and archives.' }),
          pushes: z.int().nonnegative(),
          restores: z.int().nonnegative(),
          addresses: z.record(z.string(), z.object({ nonce: z.string(), value: z.string() })).meta({
            description: `The addresses that these came from, by the references in the events, at most ${TOKEN_USE_ADDRESSES_MAX}; no erased ones.`,
          }),
        }),
      )
      .meta({ description: 'Oldest first.' }),
    pagination: z.object({
      next_after: z.string().nullable().meta({ description: 'The value of `after` for the next page.' }),
      has_more: z.boolean(),
    }),
    not_metered: z
      .array(z.enum(NOT_METERED))
      .meta({ description: 'Ways to see something of the repository that leave no row here.' }),
  })
  .meta({ id: 'RepositoryAccesses' });
