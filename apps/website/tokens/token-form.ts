/**
 * The fields that choose what a token may do: of a new token, of a changed one, and of a device login.
 *
 * Invariants: the API's own schemas and rules judge what was chosen, so the website takes nothing that the API
 * refuses. A field with one value counts once: a form that sends it twice is refused, so that no appended field widens
 * a token. Boxes count only where their group is chosen, which hides them otherwise.
 */
import type { z } from 'zod';
import type { AccessTokenSettings } from '../../../core/access-token/commands.ts';
import { expiryRefusal, settingsRefusals } from '../../../core/access-token/decide.ts';
import { GRANTS, type Grant } from '../../../core/kernel/grants.ts';
import { plusMs, type Timestamp } from '../../../core/kernel/ids.ts';
import { TOKEN_NAME_LENGTH_MAX } from '../../../core/kernel/limits.ts';
import type { Refusal } from '../../../core/kernel/refusal.ts';
import type { AccessTokenRow } from '../../../core/ports/access-token-lists.ts';
import type { OwnRepository } from '../../../core/use-cases/repositories/repositories-for-tokens.ts';
import { NEW_ACCESS_TOKEN } from '../../api/schemas/access-tokens.ts';
import { refusalText, refusedField } from '../../front-door/texts/refusals.ts';
import {
  checkBox,
  type FieldErrors,
  type Fields,
  fieldSet,
  radioButton,
  selectField,
  textArea,
  textField,
} from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { GRANT_LABELS } from './words.ts';

/** What a form holds, as it was sent or as it is first shown. */
export interface TokenChoice {
  readonly name: string;
  readonly permissions: string;
  readonly grants: readonly string[];
  readonly scope: string;
  readonly repositoryIds: readonly string[];
  /** One a line; only in a form for enough repositories that there are no boxes. */
  readonly repositoryNames: string;
  readonly expiry: string;
  readonly expiryTime: string;
}

/** Repositories that get a box each; with more of them, their names are typed. */
const BOXES_MAX = 100;
const DAY_MS = 24 * 60 * 60_000;

const NEVER = 'never';
const AT_A_TIME = 'time';
const KEEP = 'keep';
const EXPIRIES: readonly { readonly value: string; readonly label: string; readonly days: number }[] = [
  { value: '7', label: 'In 7 days', days: 7 },
  { value: '30', label: 'In 30 days', days: 30 },
  { value: '90', label: 'In 90 days', days: 90 },
  { value: '365', label: 'In a year', days: 365 },
];

export function newChoice(name: string): TokenChoice {
  const lists = { grants: [], repositoryIds: [], repositoryNames: '' };
  return { name, permissions: 'all', scope: 'ALL_REPO', expiry: NEVER, expiryTime: '', ...lists };
}

export function choiceOf(token: AccessTokenRow, own: readonly OwnRepository[]): TokenChoice {
  const isAll = token.grants.includes('ALL');
  const ids = new Set<string>(token.repositoryIds);
  const names = own.flatMap(({ id, name }) => (ids.has(id) ? [name] : []));
  return {
    name: token.name,
    permissions: isAll ? 'all' : 'chosen',
    grants: isAll ? [] : token.grants,
    scope: token.scope,
    repositoryIds: token.repositoryIds,
    repositoryNames: names.join('\n'),
    expiry: KEEP,
    expiryTime: '',
  };
}

export function choiceSent(fields: Fields): TokenChoice {
  return {
    name: fields.text('name').trim(),
    permissions: fields.text('permissions'),
    grants: fields.all('grants'),
    scope: fields.text('scope'),
    repositoryIds: fields.all('repository_ids'),
    repositoryNames: fields.text('repository_names'),
    expiry: fields.text('expiry'),
    expiryTime: fields.text('expiry_time'),
  };
}

export type ParsedChoice =
  | { readonly settings: AccessTokenSettings; readonly keepsExpiry: boolean }
  | { readonly errors: FieldErrors };

const SINGLE_FIELDS = ['name', 'permissions', 'scope', 'repository_names', 'expiry', 'expiry_time'] as const;

export interface ParseOptions {
  /** The repositories that the person may choose. */
  readonly own: readonly OwnRepository[];
  readonly now: Timestamp;
  /** Whether there is an expiry that the token may keep. */
  readonly isChange: boolean;
}

/** Judges what was sent by the schema of the API. */
export function parseChoice(fields: Fields, { own, now, isChange }: ParseOptions): ParsedChoice {
  const choice = choiceSent(fields);
  const repeated = SINGLE_FIELDS.find((name) => fields.all(name).length > 1);
  if (repeated !== undefined)
    return { errors: { form: 'The page did not send this form. Open the page again, and send it from there.' } };
  const repositories = repositoriesChosen(choice, own);
  const keepsExpiry = isChange && choice.expiry === KEEP;
  const expiry = keepsExpiry ? { expiresAt: null } : expiryChosen(choice, now);
  const parsed = NEW_ACCESS_TOKEN.safeParse({
    name: choice.name,
    scope: choice.scope,
    grants: grantsChosen(choice),
    repository_ids: 'error' in repositories ? [] : repositories.ids,
  });
  const others = {
    ...('error' in repositories ? { repository_ids: repositories.error } : {}),
    ...('error' in expiry ? { expiry: expiry.error } : {}),
  };
  if (!parsed.success) return { errors: { ...errorsOfSchema(parsed.error), ...others } };
  const { name, scope, grants, repository_ids: repositoryIds } = parsed.data;
  const settings = { name, scope, grants, repositoryIds };
  const errors = { ...errorsOfAll(settingsRefusals(settings)), ...others };
  if (Object.keys(errors).length > 0 || 'error' in expiry) return { errors };
  return { settings: { ...settings, expiresAt: expiry.expiresAt }, keepsExpiry };
}

function errorsOfAll(refusals: readonly Refusal[]): FieldErrors {
  return Object.fromEntries(refusals.flatMap((refusal) => Object.entries(errorsOfRefusal(refusal))));
}

export function grantsChosen({ permissions, grants }: Pick<TokenChoice, 'permissions' | 'grants'>): readonly string[] {
  if (permissions === 'all') return ['ALL'];
  // `ALL` is no box, so a form that ticks it is no form of ours.
  return permissions === 'chosen' ? grants.map((grant) => (grant === 'ALL' ? '' : grant)) : [''];
}

/** What the boxes and names of a form choose. */
export type RepositoryChoice = Pick<TokenChoice, 'scope' | 'repositoryIds' | 'repositoryNames'>;

export function repositoriesChosen(
  { scope, repositoryIds, repositoryNames }: RepositoryChoice,
  own: readonly OwnRepository[],
): { readonly ids: readonly string[] } | { readonly error: string } {
  if (scope !== 'SELECTED_REPO') return { ids: [] };
  const names = repositoryNames
    .split('\n')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const ids: string[] = own.length > BOXES_MAX ? [] : [...repositoryIds];
  const byName = new Map(
    own.flatMap(({ id, name, formerNames }) => [name, ...formerNames].map((one) => [one.toLowerCase(), id] as const)),
  );
  for (const name of names) {
    const id = byName.get(name.toLowerCase());
    if (id === undefined) return { error: `You have no repository ${name}` };
    ids.push(id);
  }
  return { ids };
}

function expiryChosen(
  { expiry, expiryTime }: TokenChoice,
  now: Timestamp,
): { readonly expiresAt: Timestamp | null } | { readonly error: string } {
  if (expiry === NEVER) return { expiresAt: null };
  if (expiry === AT_A_TIME) return expiryWritten(expiryTime, now);
  const preset = EXPIRIES.find(({ value }) => value === expiry);
  if (preset === undefined) return { error: 'Choose when the token expires' };
  return { expiresAt: plusMs(now, preset.days * DAY_MS) };
}

function expiryWritten(
  text: string,
  now: Timestamp,
): { readonly expiresAt: Timestamp | null } | { readonly error: string } {
  // A browser sends `2026-12-24T18:00`, with seconds if they are not 0.
  const parsed = NEW_ACCESS_TOKEN.shape.expires_at.safeParse(`${text}${/T\d\d:\d\d$/.test(text) ? ':00' : ''}Z`);
  if (!parsed.success) return { error: 'Choose a time such as 2026-12-24 18:00' };
  const refusal = expiryRefusal(parsed.data, now);
  return refusal === null ? { expiresAt: parsed.data } : { error: refusalText(refusal) };
}

const FIELD_OF: Readonly<Record<string, string>> = { grants: 'permissions', expires_at: 'expiry' };

const SCHEMA_ERRORS: Readonly<Record<string, string>> = {
  scope: 'Choose which repositories the token reaches',
  permissions: 'Choose what the token may do',
  repository_ids: 'Choose repositories from the list',
};

function errorsOfSchema({ issues }: z.ZodError): FieldErrors {
  const errors: Record<string, string> = {};
  for (const { path, message } of issues) {
    const field = fieldOf(String(path[0] ?? 'form'));
    errors[field] ??= SCHEMA_ERRORS[field] ?? message;
  }
  return errors;
}

function fieldOf(apiField: string): string {
  return FIELD_OF[apiField] ?? apiField;
}

/** Where the API's words name its own fields. */
const FORM_WORDS: { readonly [Code in Refusal['code']]?: string } = {
  'token-grants-empty': 'Choose at least one permission',
  'token-scope-needs-repositories': 'Choose at least one repository',
  'token-unknown-repositories': 'A repository of your choice is not there any more: choose again',
};

/** Returns a refusal of the use case by its field, in the words of the form. */
export function errorsOfRefusal(refusal: Refusal): FieldErrors {
  const { code } = refusal;
  return { [fieldOf(refusedField(refusal) ?? 'form')]: FORM_WORDS[code] ?? refusalText(refusal) };
}

export interface TokenFieldsOptions {
  readonly choice: TokenChoice;
  readonly own: readonly OwnRepository[];
  readonly errors: FieldErrors;
  /** The expiry that a changed token may keep; absent for a new token. */
  readonly keeps?: Html;
}

export function tokenFields({ choice, own, errors, keeps }: TokenFieldsOptions): Html {
  return html`${textField({
    name: 'name',
    label: 'Name of the token',
    value: choice.name,
    hint: 'What you will know it by in the list, such as the machine that uses it.',
    error: errors['name'],
    required: true,
    lengthMax: TOKEN_NAME_LENGTH_MAX,
  })}${permissionFields(choice, errors)}${repositoryFields(choice, own, errors)}${expiryFields(choice, errors, keeps)}`;
}

export function permissionFields(
  { permissions, grants }: Pick<TokenChoice, 'permissions' | 'grants'>,
  errors: FieldErrors,
): Html {
  const boxes = GRANTS.filter((grant): grant is Exclude<Grant, 'ALL'> => grant !== 'ALL').map((grant) =>
    checkBox({
      name: 'grants',
      value: grant,
      label: GRANT_LABELS[grant],
      hint: html`<code>${grant}</code>`,
      checked: grants.includes(grant),
    }),
  );
  return fieldSet(
    { name: 'permissions', legend: 'What it may do', error: errors['permissions'] },
    html`${radioButton({
      name: 'permissions',
      value: 'all',
      label: 'Everything (Grant All Permissions)',
      checked: permissions === 'all',
    })}${radioButton({
      name: 'permissions',
      value: 'chosen',
      label: 'Only these:',
      checked: permissions === 'chosen',
    })}<div class="chosen">${boxes}</div>`,
  );
}

export function repositoryFields(
  { scope, repositoryIds, repositoryNames }: RepositoryChoice,
  own: readonly OwnRepository[],
  errors: FieldErrors,
): Html {
  const boxes = (): Html =>
    html`${own.map(({ id, name }) =>
      checkBox({ name: 'repository_ids', value: id, label: name, checked: repositoryIds.includes(id) }),
    )}`;
  const names = (): Html =>
    textArea({
      name: 'repository_names',
      label: 'Names of repositories, one a line',
      value: repositoryNames,
      verbatim: true,
    });
  const picker = own.length > BOXES_MAX ? names : boxes;
  return fieldSet(
    { name: 'repository_ids', legend: 'Repositories', error: errors['repository_ids'] ?? errors['scope'] },
    html`${radioButton({
      name: 'scope',
      value: 'ALL_REPO',
      label: 'All, also future ones',
      checked: scope === 'ALL_REPO',
    })}${radioButton({
      name: 'scope',
      value: 'SELECTED_REPO',
      label: own.length === 0 ? 'Only some (you have no repository yet)' : 'Only these:',
      checked: scope === 'SELECTED_REPO',
    })}<div class="chosen">${picker()}</div>`,
  );
}

function expiryFields({ expiry, expiryTime }: TokenChoice, errors: FieldErrors, keeps?: Html): Html {
  const kept = keeps === undefined ? [] : [{ value: KEEP, label: 'As it is' }];
  return html`<div class="expiry stack">${selectField({
    name: 'expiry',
    label: 'Expires',
    value: expiry,
    options: [...kept, { value: NEVER, label: 'Never' }, ...EXPIRIES, { value: AT_A_TIME, label: 'At a time…' }],
    ...(keeps === undefined ? {} : { hint: keeps }),
    error: errors['expiry'],
  })}<div class="chosen">${textField({
    name: 'expiry_time',
    label: 'Time (UTC)',
    type: 'datetime-local',
    value: expiryTime,
  })}</div></div>`;
}
