/** Webhooks: list, create, read, change, delete, a new secret. */
import type { z } from 'zod';
import { parseUuid, type WebhookId } from '../../../core/kernel/ids.ts';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  type FoundWebhook,
  findWebhook,
  listWebhooks,
  rotateWebhookSecret,
} from '../../../core/use-cases/webhooks/webhooks.ts';
import { noContent, ok } from '../http/answer.ts';
import type { AccountCall, Outcome } from '../route.ts';
import type { ID_PARAMS } from '../schemas/params.ts';
import type {
  CHANGED_WEBHOOK,
  NEW_WEBHOOK,
  WEBHOOK,
  WEBHOOK_CHANGES,
  WEBHOOK_WITH_SECRET,
  WEBHOOKS,
} from '../schemas/webhooks.ts';

type Identified = { readonly params: z.output<typeof ID_PARAMS> };

/** An id that is no UUID names no webhook: 404 as for any other that names none. */
const NOT_FOUND: Outcome = { refused: { code: 'webhook-not-found' } };

export async function postWebhook(
  { context, origin }: AccountCall,
  { body }: { readonly body: z.output<typeof NEW_WEBHOOK> },
): Promise<Outcome> {
  const secret = context.newWebhookSecret();
  const created = await createWebhook(context, await origin(), body, secret);
  if ('refused' in created) return created;
  const answer: z.output<typeof WEBHOOK_WITH_SECRET> = { ...webhookObject(created), secret };
  return ok(answer, 201);
}

export async function listAllWebhooks({ context, bearer }: AccountCall): Promise<Outcome> {
  const webhooks = await listWebhooks(context, bearer.token.account);
  const list: z.output<typeof WEBHOOKS> = { webhooks: webhooks.map(webhookObject) };
  return ok(list);
}

export async function getWebhook({ context, bearer }: AccountCall, { params }: Identified): Promise<Outcome> {
  const id = parseUuid<WebhookId>(params.id);
  if (id === null) return NOT_FOUND;
  const found = await findWebhook(context, bearer.token.account, id);
  return 'refused' in found ? found : ok(webhookObject(found));
}

export async function putWebhook(
  { context, origin }: AccountCall,
  { params, body }: Identified & { readonly body: z.output<typeof WEBHOOK_CHANGES> },
): Promise<Outcome> {
  const id = parseUuid<WebhookId>(params.id);
  if (id === null) return NOT_FOUND;
  const changes = {
    ...(body.url === undefined ? {} : { url: body.url }),
    ...(body.events === undefined ? {} : { events: body.events }),
    ...(body.active === undefined ? {} : { active: body.active }),
  };
  const changed = await changeWebhook(context, await origin(), id, changes, context.newWebhookSecret());
  if ('refused' in changed) return changed;
  const { secret } = changed;
  const answer: z.output<typeof CHANGED_WEBHOOK> = {
    ...webhookObject(changed),
    ...(secret === null ? {} : { secret }),
  };
  return ok(answer);
}

export async function postWebhookSecret({ context, origin }: AccountCall, { params }: Identified): Promise<Outcome> {
  const id = parseUuid<WebhookId>(params.id);
  if (id === null) return NOT_FOUND;
  const secret = context.newWebhookSecret();
  const rotated = await rotateWebhookSecret(context, await origin(), id, secret);
  if ('refused' in rotated) return rotated;
  const answer: z.output<typeof WEBHOOK_WITH_SECRET> = { ...webhookObject(rotated), secret };
  return ok(answer);
}

export async function removeWebhook({ context, origin }: AccountCall, { params }: Identified): Promise<Outcome> {
  const id = parseUuid<WebhookId>(params.id);
  if (id === null) return NOT_FOUND;
  const deleted = await deleteWebhook(context, await origin(), id);
  return 'refused' in deleted ? deleted : noContent();
}

/** A webhook as interface.md shows it, without its secret. */
function webhookObject({ webhook, url }: FoundWebhook): z.output<typeof WEBHOOK> {
  return {
    id: webhook.id,
    url,
    events: [...webhook.events],
    active: webhook.active,
    created_at: webhook.createdAt,
    updated_at: webhook.updatedAt,
  };
}
