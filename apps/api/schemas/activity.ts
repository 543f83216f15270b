/** Changes of a repository's refs on the wire. */
import { z } from 'zod';
import { HEXSHA, ID, PAGINATION, TIMESTAMP } from './common.ts';

const OBJECT_ID = HEXSHA.meta({ description: 'All zeros: no object.' });

export const ACTOR = z.object({
  kind: z.enum(['token', 'user', 'trust_rule', 'system', 'admin']),
  id: z.string().meta({ description: 'For a token or trust rule its id, for a user that of the account.' }),
});

export const ACTIVITY = z
  .object({
    activity: z
      .array(
        z.object({
          id: ID.meta({ description: 'The event that changed the ref. All changes of one push have the same.' }),
          at: TIMESTAMP,
          actor: ACTOR,
          ref: z.string().meta({ description: 'The full name.', examples: ['refs/heads/main'] }),
          before: OBJECT_ID,
          after: OBJECT_ID,
          kind: z.enum(['create', 'fast-forward', 'force-push', 'delete', 'restore']).meta({
            description: 'Every change by a restoration is a `restore`; of a deletion by it `after` is zeros.',
          }),
        }),
      )
      .meta({ description: 'Newest first.' }),
    pagination: PAGINATION,
  })
  .meta({ id: 'ActivityList' });
