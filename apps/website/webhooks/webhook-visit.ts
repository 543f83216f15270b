/** What the pages of webhooks take from a visit: the viewer, the origin of a change, and the webhook of the address. */
import { ALL_REPOSITORIES } from '../../../core/access-token/repository-selection.ts';
import { parseUuid, type WebhookId } from '../../../core/kernel/ids.ts';
import {
  type FoundWebhook,
  findWebhook,
  type WebhookCommandOrigin,
  type WebhookViewer,
} from '../../../core/use-cases/webhooks/webhooks.ts';
import type { SiteContext } from '../context.ts';
import type { PersonVisit } from '../layout/visit.ts';

/** A person sees every webhook of the own account. */
export function viewerOf({ person }: PersonVisit): WebhookViewer {
  return { account: person.account, selection: ALL_REPOSITORIES };
}

export async function webhookOrigin(visit: PersonVisit): Promise<WebhookCommandOrigin> {
  return { ...(await visit.origin(null)), selection: ALL_REPOSITORIES };
}

/** Returns the webhook that the address names; null if there is none. */
export async function webhookOf(context: SiteContext, visit: PersonVisit): Promise<FoundWebhook | null> {
  const id = parseUuid<WebhookId>(visit.params['id'] ?? '');
  if (id === null) return null;
  const found = await findWebhook(context, viewerOf(visit), id);
  return 'refused' in found ? null : found;
}

/** Returns the address of a webhook's page, or of one below it. */
export function pathOf(id: WebhookId, below = ''): string {
  return `/webhooks/${id}${below}`;
}
