/** Names and ids in paths. Any text is valid: an impossible name gets 404, like one that does not exist. */
import { z } from 'zod';

export const REPOSITORY_PARAMS = z.object({
  username: z.string().meta({
    description: 'The owner, without case.',
    wire: { type: 'string', pattern: '^[A-Za-z0-9-]{2,39}$', examples: ['ada'] },
  }),
  name: z.string().meta({
    description: 'The repository, without case.',
    wire: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,100}$', examples: ['engine'] },
  }),
});

export const ID_PARAMS = z.object({ id: z.string().meta({ wire: { type: 'string', format: 'uuid' } }) });

export const DELIVERY_PARAMS = z.object({
  ...ID_PARAMS.shape,
  delivery_id: z.string().meta({ wire: { type: 'string', format: 'uuid' } }),
});
