/**
 * The form that creates and changes a webhook.
 *
 * Invariants: a form is checked by the API's own schema, so the page takes exactly what the API takes.
 */
import { ALL_REPOSITORIES, type RepositorySelection } from '../../../core/access-token/repository-selection.ts';
import { OUTGOING_URL_LENGTH_MAX } from '../../../core/kernel/limits.ts';
import { WEBHOOK_EVENT_KINDS } from '../../../core/kernel/webhook-events.ts';
import type { OwnRepository } from '../../../core/use-cases/repositories/repositories-for-tokens.ts';
import type { NewWebhook } from '../../../core/use-cases/webhooks/webhooks.ts';
import { TOKEN_REPOSITORIES_MAX } from '../../api/schemas/access-tokens.ts';
import { NEW_WEBHOOK } from '../../api/schemas/webhooks.ts';
import { checkBox, type FieldErrors, type Fields, fieldSet, textField } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { type RepositoryChoice, repositoriesChosen } from '../tokens/token-form.ts';

/** The field at fault for each refusal that one field causes. */
export const FIELD_OF = {
  'webhook-url-refused': 'url',
  'webhook-events-empty': 'events',
} as const;

/** What stands in the fields. */
export interface EnteredWebhook {
  readonly url: string;
  readonly events: readonly string[];
  readonly active: boolean;
}

/** The repositories whose events a new webhook gets; an old one keeps them. */
export const EVERY_REPOSITORY: RepositoryChoice = { scope: 'ALL_REPO', repositoryIds: [], repositoryNames: '' };

export function repositoriesIn(fields: Fields): RepositoryChoice {
  return {
    scope: fields.text('scope'),
    repositoryIds: fields.all('repository_ids'),
    repositoryNames: fields.text('repository_names'),
  };
}

/** Returns the repositories of the account that were chosen, or what is wrong with the choice. */
export function parseRepositories(
  choice: RepositoryChoice,
  own: readonly OwnRepository[],
): RepositorySelection | { readonly error: string } {
  if (choice.scope === 'ALL_REPO') return ALL_REPOSITORIES;
  if (choice.scope !== 'SELECTED_REPO') return { error: 'Choose which repositories the webhook gets events of' };
  const chosen = repositoriesChosen(choice, own);
  if ('error' in chosen) return chosen;
  const ids = new Set(chosen.ids);
  const repositoryIds = own.flatMap(({ id }) => (ids.has(id) ? [id] : []));
  if (repositoryIds.length === 0) return { error: 'Choose at least one repository' };
  if (repositoryIds.length < ids.size) return { error: 'Choose repositories from the list' };
  if (repositoryIds.length > TOKEN_REPOSITORIES_MAX) {
    return { error: `Choose at most ${TOKEN_REPOSITORIES_MAX} repositories, or all` };
  }
  return { scope: 'SELECTED_REPO', repositoryIds };
}

export const NEW_WEBHOOK_ENTERED: EnteredWebhook = { url: '', events: ['push'], active: true };

export function enteredIn(fields: Fields): EnteredWebhook {
  return { url: fields.text('url').trim(), events: fields.all('events'), active: fields.has('active') };
}

/** Returns the settings, or the errors of a form that no browser sends. */
export function parseWebhook(entered: EnteredWebhook): NewWebhook | { readonly errors: FieldErrors } {
  const parsed = NEW_WEBHOOK.safeParse(entered);
  if (parsed.success) return parsed.data;
  return { errors: Object.fromEntries(parsed.error.issues.map(({ path, message }) => [String(path[0]), message])) };
}

const EVENT_TEXTS = {
  push: 'A branch or tag is pushed',
  create: 'A branch or tag is created',
  delete: 'A branch or tag is deleted',
  ping: 'Sent when you ask for it, ticked or not',
} as const;

export function webhookFields({ url, events, active }: EnteredWebhook, errors: FieldErrors): Html {
  const boxes = WEBHOOK_EVENT_KINDS.map((kind) =>
    checkBox({ name: 'events', value: kind, label: kind, checked: events.includes(kind), hint: EVENT_TEXTS[kind] }),
  );
  return html`${textField({
    name: 'url',
    type: 'url',
    label: 'URL',
    value: url,
    error: errors['url'],
    hint: 'HTTPS, at a public address. Each delivery is a POST to it.',
    required: true,
    lengthMax: OUTGOING_URL_LENGTH_MAX,
    verbatim: true,
  })}${fieldSet({ name: 'events', legend: 'Events', error: errors['events'] }, boxes)}${checkBox({
    name: 'active',
    value: 'true',
    label: 'Active',
    checked: active,
    hint: 'An inactive webhook gets no request.',
  })}`;
}
