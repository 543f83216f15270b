/** Webhooks on the wire. */
import { z } from 'zod';
import { WEBHOOK_EVENT_KINDS } from '../../../core/kernel/webhook-events.ts';
import { OUTGOING_URL_LENGTH_MAX } from '../../../core/kernel/limits.ts';
import { ID, TIMESTAMP } from './common.ts';

const EVENTS = z.array(z.enum(WEBHOOK_EVENT_KINDS)).meta({
  description:
    'push: a branch or tag moved. create, delete: one came or went. ping is delivered on request, listed or not.',
});
const SECRET = z.string().meta({
  description: 'The key of the signatures. It is shown here once and never again.',
  examples: ['whsec_4fTq0aZr9yXw8vUt7sRq6pOn5mLk4jIh3gFe2dCb'],
});

const FIELDS = {
  id: ID,
  url: z.string(),
  events: EVENTS,
  active: z.boolean(),
  created_at: TIMESTAMP,
  updated_at: TIMESTAMP,
};

export const WEBHOOK = z.object(FIELDS).meta({ id: 'Webhook' });
export const WEBHOOK_WITH_SECRET = z.object({ ...FIELDS, secret: SECRET }).meta({ id: 'WebhookWithSecret' });
export const CHANGED_WEBHOOK = z
  .object({
    ...FIELDS,
    secret: SECRET.optional().meta({ description: 'A new one, when the URL changed; shown here once.' }),
  })
  .meta({ id: 'ChangedWebhook' });
export const WEBHOOKS = z.object({ webhooks: z.array(WEBHOOK) }).meta({ id: 'WebhookList' });

const SETTINGS = {
  url: z.string().meta({
    description: 'HTTPS, of a public host that is not this service, without user information.',
    maxLength: OUTGOING_URL_LENGTH_MAX,
    examples: ['https://receiver.example/hook'],
  }),
  events: EVENTS.meta({ minItems: 1 }),
  active: z.boolean(),
};

export const NEW_WEBHOOK = z.object({ ...SETTINGS, active: SETTINGS.active.default(true) });
export const WEBHOOK_CHANGES = z.object(SETTINGS).partial();
