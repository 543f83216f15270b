/**
 * The form that creates and changes a trust rule.
 *
 * Invariants: a form is judged by the API's own schema and rules, so the page takes exactly what the API takes. A
 * field with one value that was sent twice is refused, so that no appended field widens a rule.
 */
import {
  OUTGOING_URL_LENGTH_MAX,
  TOKEN_NAME_LENGTH_MAX,
  TRUST_RULE_PATTERN_LENGTH_MAX,
} from '../../../core/kernel/limits.ts';
import type { Refusal } from '../../../core/kernel/refusal.ts';
import type { OwnRepository } from '../../../core/use-cases/repositories/repositories-for-tokens.ts';
import {
  type FoundTrustRule,
  type NewTrustRule,
  refusalsOfTrustRule,
} from '../../../core/use-cases/tokens/trust-rules.ts';
import { NEW_TRUST_RULE } from '../../api/schemas/trust-rules.ts';
import { refusalText, refusedField } from '../../front-door/texts/refusals.ts';
import { type FieldErrors, type Fields, textArea, textField } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { grantsChosen, permissionFields, repositoriesChosen, repositoryFields } from '../tokens/token-form.ts';

/** What a form holds, as it was sent or as it is first shown. */
export interface RuleChoice {
  readonly name: string;
  readonly issuer: string;
  readonly subject: string;
  /** One claim a line: its name, `=` and its pattern. */
  readonly claims: string;
  readonly permissions: string;
  readonly grants: readonly string[];
  readonly scope: string;
  readonly repositoryIds: readonly string[];
  readonly repositoryNames: string;
}

export const NEW_RULE: RuleChoice = {
  name: '',
  issuer: '',
  subject: '',
  claims: '',
  permissions: 'chosen',
  grants: [],
  scope: 'ALL_REPO',
  repositoryIds: [],
  repositoryNames: '',
};

export function choiceOf({ rule, conditions }: FoundTrustRule, own: readonly OwnRepository[]): RuleChoice {
  const isAll = rule.grants.includes('ALL');
  const { scope, repositoryIds } = rule.repositories;
  const names = own.flatMap(({ id, name }) => (repositoryIds.includes(id) ? [name] : []));
  return {
    name: rule.name,
    issuer: rule.issuer,
    subject: conditions.subject,
    claims: Object.entries(conditions.claims)
      .map(([claim, pattern]) => `${claim} = ${pattern}`)
      .join('\n'),
    permissions: isAll ? 'all' : 'chosen',
    grants: isAll ? [] : rule.grants,
    scope,
    repositoryIds,
    repositoryNames: names.join('\n'),
  };
}

export function choiceSent(fields: Fields): RuleChoice {
  return {
    name: fields.text('name').trim(),
    issuer: fields.text('issuer').trim(),
    subject: fields.text('subject').trim(),
    claims: fields.text('claims'),
    permissions: fields.text('permissions'),
    grants: fields.all('grants'),
    scope: fields.text('scope'),
    repositoryIds: fields.all('repository_ids'),
    repositoryNames: fields.text('repository_names'),
  };
}

const SINGLE_FIELDS = ['name', 'issuer', 'subject', 'claims', 'permissions', 'scope', 'repository_names'] as const;

export function parseRule(fields: Fields, own: readonly OwnRepository[]): ParsedRule {
  if (SINGLE_FIELDS.some((name) => fields.all(name).length > 1)) {
    return {
      wanted: null,
      errors: { form: 'The page did not send this form. Open the page again, and send it from there.' },
    };
  }
  const choice = choiceSent(fields);
  const claims = claimsIn(choice.claims);
  const repositories = repositoriesChosen(choice, own);
  const { name, issuer, subject, scope } = choice;
  const parsed = NEW_TRUST_RULE.safeParse({
    name,
    issuer,
    subject,
    scope,
    grants: grantsChosen(choice),
    claims: 'error' in claims ? {} : claims.claims,
    repository_ids: 'error' in repositories ? [] : repositories.ids,
  });
  const others = {
    ...('error' in claims ? { claims: claims.error } : {}),
    ...('error' in repositories ? { repository_ids: repositories.error } : {}),
  };
  if (!parsed.success) {
    const wrong = parsed.error.issues.map(({ path, message }) => [fieldOf(String(path[0])), message] as const);
    return { wanted: null, errors: { ...Object.fromEntries(wrong), ...others } };
  }
  const { repository_ids: repositoryIds, ...wanted } = parsed.data;
  return { wanted: { ...wanted, repositoryIds }, errors: others };
}

/** What a form says, as far as it can be read, and what cannot. */
interface ParsedRule {
  readonly wanted: NewTrustRule | null;
  readonly errors: FieldErrors;
}

/** Saves what a form says; returns all of its faults together where it is refused. `kept` is the issuer until now. */
export async function saveRule<Saved extends object>(
  context: Parameters<typeof refusalsOfTrustRule>[0],
  { wanted, errors, kept = null }: ParsedRule & { readonly kept?: string | null },
  save: (wanted: NewTrustRule) => Promise<Saved | { readonly refused: Refusal }>,
): Promise<Saved | { readonly refused: Refusal | null; readonly errors: FieldErrors }> {
  const isFine = wanted !== null && Object.keys(errors).length === 0;
  const saved = isFine ? await save(wanted) : { refused: null };
  if (!('refused' in saved)) return saved;
  const refusals = wanted === null ? [] : await refusalsOfTrustRule(context, wanted, kept);
  const { refused } = saved;
  const all = [...refusals, ...(refused === null ? [] : [refused])].flatMap((one) => Object.entries(errorsOf(one)));
  return { refused, errors: { ...Object.fromEntries(all), ...errors } };
}

/** A later line of the same claim would silently replace the first, so it is refused. */
function claimsIn(text: string): { readonly claims: Readonly<Record<string, string>> } | { readonly error: string } {
  const claims = new Map<string, string>();
  for (const line of text.split('\n').filter((one) => one.trim() !== '')) {
    const at = line.indexOf('=');
    if (at === -1) return { error: 'Write each claim as name = value, such as environment = production' };
    const name = line.slice(0, at).trim();
    if (claims.has(name)) return { error: `The claim ${name} is there twice` };
    claims.set(name, line.slice(at + 1).trim());
  }
  return { claims: Object.fromEntries(claims) };
}

function fieldOf(apiField: string): string {
  return apiField === 'grants' ? 'permissions' : apiField;
}

/** Returns a refusal of the use case by its field. */
function errorsOf(refusal: Refusal): FieldErrors {
  const { code } = refusal;
  if (code === 'token-grants-empty') return { permissions: 'Choose at least one permission' };
  return { [fieldOf(refusedField(refusal) ?? 'form')]: `${refusalText(refusal)}.` };
}

export function ruleFields(choice: RuleChoice, own: readonly OwnRepository[], errors: FieldErrors): Html {
  return html`${textField({
    name: 'name',
    label: 'Name',
    value: choice.name,
    hint: 'What you will know the rule by.',
    error: errors['name'],
    required: true,
    lengthMax: TOKEN_NAME_LENGTH_MAX,
  })}${textField({
    name: 'issuer',
    type: 'url',
    label: 'Issuer',
    value: choice.issuer,
    hint: html`The address of the CI system, as its tokens have it. GitHub Actions: <code>https://token.actions.githubusercontent.com</code>`,
    error: errors['issuer'],
    required: true,
    lengthMax: OUTGOING_URL_LENGTH_MAX,
    verbatim: true,
  })}${textField({
    name: 'subject',
    label: 'Subject',
    value: choice.subject,
    hint: html`The jobs to let in, such as <code>repo:*/*:ref:refs/heads/main</code> with the claims of the repository, without which it lets in every repository of GitHub. <code>*</code> stands for one or more characters but <code>/</code> and <code>:</code>`,
    error: errors['subject'],
    required: true,
    lengthMax: TRUST_RULE_PATTERN_LENGTH_MAX,
    verbatim: true,
  })}${textArea({
    name: 'claims',
    label: 'Further claims (optional)',
    value: choice.claims,
    hint: html`One a line, such as <code>repository_id = 456789</code> and <code>repository_owner_id = 123456</code> of GitHub, which outlast the names. All must match.`,
    error: errors['claims'],
    verbatim: true,
  })}${permissionFields(choice, errors)}${repositoryFields(choice, own, errors)}`;
}
