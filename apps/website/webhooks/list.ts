/** The list of webhooks, with the health of each. */
import { WEBHOOKS_MAX } from '../../../core/kernel/limits.ts';
import {
  listOwnRepositories,
  type OwnRepository,
} from '../../../core/use-cases/repositories/repositories-for-tokens.ts';
import { listWebhookHealths, type WebhookHealth } from '../../../core/use-cases/webhooks/list-webhook-deliveries.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import type { Site } from '../layout/room.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { repositoriesText } from '../tokens/words.ts';
import { pathOf, viewerOf } from './webhook-visit.ts';

export function listRoutes({ context, page: add }: Site): void {
  add('/webhooks', async (visit) => {
    const webhooks = await listWebhookHealths(context, viewerOf(visit), visit.position);
    return showList(visit, webhooks, await listOwnRepositories(context, visit.person.account));
  });
}

function showList(visit: PersonVisit, webhooks: readonly WebhookHealth[], own: readonly OwnRepository[]): SiteAnswer {
  const isFull = webhooks.length >= WEBHOOKS_MAX;
  const head = html`<div class="row"><h1 class="title">Webhooks</h1>${!isFull && html`<a class="button main end" href="/webhooks/create">New webhook</a>`}</div>
<p>Strata tells your own servers when somebody pushes. Each delivery is signed, and sent again when it fails.</p>`;
  const content = html`${webhooks.length > 0 && table(webhooks, own)}${webhooks.length === 0 && emptyList()}${
    isFull
      ? html`<p class="soft">An account has at most ${WEBHOOKS_MAX} webhooks. Delete one to create another.</p>`
      : html`<p class="soft">${webhooks.length} of ${WEBHOOKS_MAX} webhooks</p>`
  }`;
  return showPage(page(visit, { title: 'Webhooks', head }, content));
}

function emptyList(): Html {
  return html`<div class="box empty"><h2>No webhooks yet</h2><p>A webhook sends a request to a URL of yours whenever a branch or tag is pushed, created or deleted: to start a build, or to tell a chat.</p></div>`;
}

function table(webhooks: readonly WebhookHealth[], own: readonly OwnRepository[]): Html {
  return html`<section class="box"><div class="scroll" tabindex="0" role="group" aria-label="Webhooks"><table class="cards"><thead><tr><th>URL</th><th>Repositories</th><th>Events</th><th>State</th><th>Last deliveries</th></tr></thead><tbody>
${webhooks.map((health) => rowOf(health, own))}</tbody></table></div></section>`;
}

function rowOf(health: WebhookHealth, own: readonly OwnRepository[]): Html {
  const { webhook, url } = health;
  return html`<tr><td class="wrap"><a href="${pathOf(webhook.id)}">${shortUrl(url)}</a></td><td class="wrap" data-label="Repositories">${repositoriesText(webhook.repositories, own)}</td><td data-label="Events">${webhook.events.join(', ')}</td><td data-label="State">${
    webhook.active ? 'active' : html`<span class="soft">inactive</span>`
  }</td><td data-label="Deliveries"><span>${healthMark(health)}</span></td></tr>
`;
}

/** How the newest deliveries ended, in words and in colour. */
function healthMark({ succeeded, failed, pending }: WebhookHealth): Html {
  const total = succeeded + failed + pending;
  if (total === 0) return html`<span class="soft">none yet</span>`;
  const colour = failed > 0 ? 'bad' : pending > 0 ? 'warn' : 'good';
  return html`<span class="mark ${colour}">${succeeded} of ${total} delivered</span>${
    pending > 0 && html` <span class="soft">${pending} pending</span>`
  }`;
}

/** Returns the URL without its scheme, which is always HTTPS. */
export function shortUrl(url: string): string {
  return url.replace(/^https:\/\//, '');
}
