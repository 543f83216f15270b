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
import { type AccountCall, accountRoute, type Outcome, type Route } from '../route.ts';
import { ID_PARAMS } from '../schemas/params.ts';
import {
  CHANGED_WEBHOOK,
  NEW_WEBHOOK,
  WEBHOOK,
  WEBHOOK_CHANGES,
  WEBHOOK_WITH_SECRET,
  WEBHOOKS,
} from '../schemas/webhooks.ts';

export const WEBHOOK_ROUTES: readonly Route[] = [
  accountRoute({
    operationId: 'createWebhook',
    tag: 'Webhooks',
    summary: 'Create a webhook',
    description:
      'The webhook covers the repositories in the scope of the token that creates it, whatever happens to the token later. Only this answer shows the secret. An account has at most 20 webhooks. The URL is checked here and at every delivery; a URL whose host name does not resolve yet may be saved.',
    method: 'POST',
    path: '/v1/webhooks',
    grant: 'API_WEBHOOKS',
    schemas: { body: NEW_WEBHOOK },
    answers: { 201: WEBHOOK_WITH_SECRET },
    problems: [],
    handle: postWebhook,
  }),
  accountRoute({
    operationId: 'listWebhooks',
    tag: 'Webhooks',
    summary: 'List webhooks',
    description:
      'Oldest first, without secrets. A token of scope SELECTED_REPO sees and changes only webhooks whose repositories are all in its scope.',
    method: 'GET',
    path: '/v1/webhooks',
    grant: 'API_WEBHOOKS',
    schemas: {},
    answers: { 200: WEBHOOKS },
    problems: [],
    handle: listAllWebhooks,
  }),
  accountRoute({
    operationId: 'getWebhook',
    tag: 'Webhooks',
    summary: 'Read a webhook',
    method: 'GET',
    path: '/v1/webhooks/{id}',
    grant: 'API_WEBHOOKS',
    schemas: { params: ID_PARAMS },
    answers: { 200: WEBHOOK },
    problems: [404],
    handle: getWebhook,
  }),
  accountRoute({
    operationId: 'updateWebhook',
    tag: 'Webhooks',
    summary: 'Change a webhook',
    description:
      'Fields that are absent stay as they are. A change of the URL makes a new secret, which only this answer shows: the new receiver never gets a signature by the old secret.',
    method: 'PUT',
    path: '/v1/webhooks/{id}',
    grant: 'API_WEBHOOKS',
    schemas: { params: ID_PARAMS, body: WEBHOOK_CHANGES },
    answers: { 200: CHANGED_WEBHOOK },
    problems: [404],
    standing: getWebhook,
    handle: putWebhook,
  }),
  accountRoute({
    operationId: 'rotateWebhookSecret',
    tag: 'Webhooks',
    summary: 'Give a webhook a new secret',
    description:
      'Only this answer shows the new secret. For 24 hours deliveries are signed with the previous secret as well.',
    method: 'POST',
    path: '/v1/webhooks/{id}/secret',
    grant: 'API_WEBHOOKS',
    schemas: { params: ID_PARAMS },
    answers: { 200: WEBHOOK_WITH_SECRET },
    problems: [404],
    handle: postWebhookSecret,
  }),
  accountRoute({
    operationId: 'deleteWebhook',
    tag: 'Webhooks',
    summary: 'Delete a webhook',
    description: 'Pending deliveries are not attempted again.',
    method: 'DELETE',
    path: '/v1/webhooks/{id}',
    grant: 'API_WEBHOOKS',
    schemas: { params: ID_PARAMS },
    answers: { 204: null },
    problems: [404],
    handle: removeWebhook,
  }),
];

type Identified = { readonly params: z.output<typeof ID_PARAMS> };

/** An id that is not a UUID gets 404, like any id of no webhook. */
const NOT_FOUND: Outcome = { refused: { code: 'webhook-not-found' } };

async function postWebhook(
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

async function listAllWebhooks({ context, principal }: AccountCall): Promise<Outcome> {
  const webhooks = await listWebhooks(context, viewerOf(principal));
  const list: z.output<typeof WEBHOOKS> = { webhooks: webhooks.map(webhookObject) };
  return ok(list);
}

async function getWebhook({ context, principal }: AccountCall, { params }: Identified): Promise<Outcome> {
  const id = parseUuid<WebhookId>(params.id);
  if (id === null) return NOT_FOUND;
  const found = await findWebhook(context, viewerOf(principal), id);
  return 'refused' in found ? found : ok(webhookObject(found));
}

async function putWebhook(
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

async function postWebhookSecret(call: AccountCall, { params }: Identified): Promise<Outcome> {
  const id = parseUuid<WebhookId>(params.id);
  if (id === null) return NOT_FOUND;
  const { context } = call;
  const secret = context.newWebhookSecret();
  const rotated = await rotateWebhookSecret(context, await webhookOrigin(call), id, secret);
  if ('refused' in rotated) return rotated;
  const answer: z.output<typeof WEBHOOK_WITH_SECRET> = { ...webhookObject(rotated), secret };
  return ok(answer);
}

async function removeWebhook(call: AccountCall, { params }: Identified): Promise<Outcome> {
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
