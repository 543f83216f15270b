/** Creating a webhook. */
import {
  listOwnRepositories,
  type OwnRepository,
} from '../../../core/use-cases/repositories/repositories-for-tokens.ts';
import { createWebhook, refusalsOfWebhook } from '../../../core/use-cases/webhooks/webhooks.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { postForm } from '../layout/forms.ts';
import { html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { NEW_FORM, type RefusedForm, refusedForm, withAll, wrongForm } from '../layout/refused.ts';
import type { Site } from '../layout/room.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { type RepositoryChoice, repositoryFields } from '../tokens/token-form.ts';
import { shortUrl } from './list.ts';
import { showSecret } from './secret-page.ts';
import {
  type EnteredWebhook,
  EVERY_REPOSITORY,
  enteredIn,
  FIELD_OF,
  NEW_WEBHOOK_ENTERED,
  parseRepositories,
  parseWebhook,
  repositoriesIn,
  webhookFields,
} from './webhook-form.ts';
import { pathOf, webhookOrigin } from './webhook-visit.ts';

const CREATE = '/webhooks/create';

export function createRoutes(site: Site): void {
  const { context } = site;
  site.page(CREATE, async (visit) => {
    const own = await listOwnRepositories(context, visit.person.account);
    return showForm(visit, { entered: NEW_WEBHOOK_ENTERED, choice: EVERY_REPOSITORY, own }, NEW_FORM);
  });
  site.form(CREATE, async (visit, fields) => {
    const own = await listOwnRepositories(context, visit.person.account);
    const entered = enteredIn(fields);
    const choice = repositoriesIn(fields);
    const wanted = parseWebhook(entered);
    const selection = parseRepositories(choice, own);
    const unchosen = 'error' in selection ? { repository_ids: selection.error } : {};
    const again = ({ errors, ...form }: RefusedForm): SiteAnswer =>
      showForm(visit, { entered, choice, own }, { ...form, errors: { ...errors, ...unchosen } });
    if ('errors' in wanted) return again(wrongForm(wanted.errors));
    const all = () => refusalsOfWebhook(context, wanted);
    if ('error' in selection) return again(withAll(wrongForm({}), await all(), FIELD_OF));
    const secret = context.newWebhookSecret();
    const created = await createWebhook(context, { ...(await webhookOrigin(visit)), selection }, wanted, secret);
    if ('refused' in created) return again(withAll(refusedForm(created.refused, FIELD_OF), await all(), FIELD_OF));
    const text = html`Deliveries go to <b>${shortUrl(created.url)}</b>.`;
    return showSecret(visit, { title: 'Webhook created', text, secret, next: pathOf(created.webhook.id) });
  });
}

interface FormState {
  readonly entered: EnteredWebhook;
  readonly choice: RepositoryChoice;
  readonly own: readonly OwnRepository[];
}

function showForm(
  visit: PersonVisit,
  { entered, choice, own }: FormState,
  { errors, status, headers }: RefusedForm,
): SiteAnswer {
  const content = html`<h1>New webhook</h1><p class="soft">Its repositories stay as they are chosen here. The URL, the events and the state can change.</p>${postForm(
    { action: CREATE, csrf: visit.csrf(), errors },
    html`${webhookFields(entered, errors)}${repositoryFields(choice, own, errors)}<div class="row"><button class="button main">Create webhook</button><a class="button quiet" href="/webhooks">Cancel</a></div>`,
  )}`;
  return showPage(page(visit, { title: 'New webhook', width: 'narrow' }, content), status, headers);
}
