/** Device login on the wire. */
import { z } from 'zod';
import { DEVICE_HOSTNAME_LENGTH_MAX, DEVICE_POLL_INTERVAL_SECONDS } from '../../../core/kernel/limits.ts';
import { ACCESS_TOKEN } from './access-tokens.ts';
import { ID, TIMESTAMP } from './common.ts';

export const NEW_DEVICE_SESSION = z.strictObject({
  hostname: z.string().meta({
    description: 'The name of the device, shown to the person who grants the login.',
    minLength: 1,
    maxLength: DEVICE_HOSTNAME_LENGTH_MAX,
    examples: ['laptop'],
  }),
});

const URL_TEXT = z.string().meta({ wire: { type: 'string', format: 'uri' } });

export const DEVICE_SESSION = z
  .object({
    id: ID,
    user_code: z.string().meta({ description: 'The page must show the same code.', examples: ['WXYZ-1234'] }),
    secret_token: z.string().meta({ description: 'For the query of each poll. Only this answer shows it.' }),
    poll_url: URL_TEXT,
    verification_url: URL_TEXT.meta({ description: 'Where a signed-in person grants or denies the login.' }),
    interval: z
      .int()
      .positive()
      .meta({ description: 'Seconds between two polls.', examples: [DEVICE_POLL_INTERVAL_SECONDS] }),
    expires_at: TIMESTAMP,
  })
  .meta({ id: 'DeviceSession' });

export const POLL_QUERY = z.object({ secret_token: z.string() });

export const POLL_PENDING = z.object({ status: z.literal('pending') });
export const POLL_GRANTED = z.object({ token: z.string(), username: z.string(), access_token: ACCESS_TOKEN });
