/** Webhooks on the wire. */
import { z } from 'zod';
import { SCOPES } from '../../../core/kernel/grants.ts';
import { OUTGOING_URL_LENGTH_MAX } from '../../../core/kernel/limits.ts';
import { WEBHOOK_EVENT_KINDS } from '../../../core/kernel/webhook-events.ts';
import { ID, TIMESTAMP, URL_PATTERN } from './common.ts';

const EVENTS = z.array(z.enum(WEBHOOK_EVENT_KINDS)).meta({
  description:
    'push: a branch or tag moved. create, delete: one was created or deleted. ping: sent on request, even if not listed.',
});
const SECRET = z.string().meta({
  description: 'The key of the signatures. Only this answer shows it.',
  examples: ['whsec_4fTq0aZr9yXw8vUt7sRq6pOn5mLk4jIh3gFe2dCb'],
});

const FIELDS = {
  id: ID,
  url: z.string(),
  events: EVENTS,
  active: z.boolean(),
  scope: z.enum(SCOPES).meta({
    description: 'ALL_REPO: all repositories. SELECTED_REPO: only those of repository_ids. Set by the creating token.',
  }),
  repository_ids: z.array(ID),
  created_at: TIMESTAMP,
  updated_at: TIMESTAMP,
};

export const WEBHOOK = z.object(FIELDS).meta({ id: 'Webhook' });
export const WEBHOOK_WITH_SECRET = z.object({ ...FIELDS, secret: SECRET }).meta({ id: 'WebhookWithSecret' });
export const CHANGED_WEBHOOK = z
  .object({
    ...FIELDS,
    secret: SECRET.optional().meta({ description: 'The new secret, if the URL changed. Only this answer shows it.' }),
  })
  .meta({ id: 'ChangedWebhook' });
export const WEBHOOKS = z.object({ webhooks: z.array(WEBHOOK) }).meta({ id: 'WebhookList' });

const SETTINGS = {
  url: z.string().meta({
    description: 'HTTPS, of a public host that is not this service, without user information.',
    maxLength: OUTGOING_URL_LENGTH_MAX,
    pattern: URL_PATTERN,
    examples: ['https://receiver.example/hook'],
  }),
  events: EVENTS.meta({ minItems: 1 }),
  active: z.boolean(),
};

export const NEW_WEBHOOK = z.strictObject({ ...SETTINGS, active: SETTINGS.active.default(true) });
export const WEBHOOK_CHANGES = z.strictObject(SETTINGS).partial();
