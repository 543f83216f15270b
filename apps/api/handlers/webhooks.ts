/** Webhooks: list, create, read, change, delete, a new secret. */
import type { z } from 'zod';
import { parseUuid, type WebhookId } from '../../../core/kernel/ids.ts';
import { type Principal, selectionOf } from '../../../core/use-cases/callers/principal.ts';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  type FoundWebhook,
  findWebhook,
  listWebhooks,
  rotateWebhookSecret,
  type WebhookCommandOrigin,
  type WebhookViewer,
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

/** An id that is not a UUID gets 404, like any id of no webhook. */
const NOT_FOUND: Outcome = { refused: { code: 'webhook-not-found' } };

export async function postWebhook(
  call: AccountCall,
  { body }: { readonly body: z.output<typeof NEW_WEBHOOK> },
): Promise<Outcome> {
  const { context } = call;
  const secret = context.newWebhookSecret();
  const created = await createWebhook(context, await webhookOrigin(call), body, secret);
  if ('refused' in created) return created;
  const answer: z.output<typeof WEBHOOK_WITH_SECRET> = { ...webhookObject(created), secret };
  return ok(answer, 201);
}

export async function listAllWebhooks({ context, principal }: AccountCall): Promise<Outcome> {
  const webhooks = await listWebhooks(context, viewerOf(principal));
  const list: z.output<typeof WEBHOOKS> = { webhooks: webhooks.map(webhookObject) };
  return ok(list);
}

export async function getWebhook({ context, principal }: AccountCall, { params }: Identified): Promise<Outcome> {
  const id = parseUuid<WebhookId>(params.id);
  if (id === null) return NOT_FOUND;
  const found = await findWebhook(context, viewerOf(principal), id);
  return 'refused' in found ? found : ok(webhookObject(found));
}

export async function putWebhook(
  call: AccountCall,
  { params, body }: Identified & { readonly body: z.output<typeof WEBHOOK_CHANGES> },
): Promise<Outcome> {
  const id = parseUuid<WebhookId>(params.id);
  if (id === null) return NOT_FOUND;
  const changes = {
    ...(body.url === undefined ? {} : { url: body.url }),
    ...(body.events === undefined ? {} : { events: body.events }),
    ...(body.active === undefined ? {} : { active: body.active }),
  };
  const { context } = call;
  const changed = await changeWebhook(context, await webhookOrigin(call), id, changes, context.newWebhookSecret());
  if ('refused' in changed) return changed;
  const { secret } = changed;
  const answer: z.output<typeof CHANGED_WEBHOOK> = {
    ...webhookObject(changed),
    ...(secret === null ? {} : { secret }),
  };
  return ok(answer);
}

export async function postWebhookSecret(call: AccountCall, { params }: Identified): Promise<Outcome> {
  const id = parseUuid<WebhookId>(params.id);
  if (id === null) return NOT_FOUND;
  const { context } = call;
  const secret = context.newWebhookSecret();
  const rotated = await rotateWebhookSecret(context, await webhookOrigin(call), id, secret);
  if ('refused' in rotated) return rotated;
  const answer: z.output<typeof WEBHOOK_WITH_SECRET> = { ...webhookObject(rotated), secret };
  return ok(answer);
}

export async function removeWebhook(call: AccountCall, { params }: Identified): Promise<Outcome> {
  const id = parseUuid<WebhookId>(params.id);
  if (id === null) return NOT_FOUND;
  const deleted = await deleteWebhook(call.context, await webhookOrigin(call), id);
  return 'refused' in deleted ? deleted : noContent();
}

/** A caller sees only webhooks all of whose repositories its token sees. */
export function viewerOf(principal: Principal): WebhookViewer {
  return { account: principal.account, selection: selectionOf(principal) };
}

export async function webhookOrigin({ origin, principal }: AccountCall): Promise<WebhookCommandOrigin> {
  return { ...(await origin()), selection: selectionOf(principal) };
}

/** A webhook in the form of docs/interface.md, without its secret. */
function webhookObject({ webhook, url }: FoundWebhook): z.output<typeof WEBHOOK> {
  return {
    id: webhook.id,
    url,
    events: [...webhook.events],
    active: webhook.active,
    scope: webhook.repositories.scope,
    repository_ids: [...webhook.repositories.repositoryIds],
    created_at: webhook.createdAt,
    updated_at: webhook.updatedAt,
  };
}
