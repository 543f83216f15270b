/** Creating a repository, empty or with a README. */
import { parseUuid, type StorageBucketId } from '../../../core/kernel/ids.ts';
import { REPOSITORY_DESCRIPTION_LENGTH_MAX, REPOSITORY_NAME_LENGTH_MAX } from '../../../core/kernel/limits.ts';
import type { Refusal, RefusalCode } from '../../../core/kernel/refusal.ts';
import { FALLBACK_DEFAULT_BRANCH } from '../../../core/repository/state.ts';
import { type BucketChoice, bucketChoices } from '../../../core/use-cases/buckets/bucket-choices.ts';
import { type PlanRoom, planRoom } from '../../../core/use-cases/metering/account-usage.ts';
import {
  createRepositoryWithReadme,
  pushReadme,
  type ReadmeOptions,
} from '../../../core/use-cases/pushing/create-readme-commit.ts';
import { findDefaultBranch } from '../../../core/use-cases/reading/resolve-ref.ts';
import { createRepository, refusalsOfTexts } from '../../../core/use-cases/repositories/repositories.ts';
import { refusalText, refusedField } from '../../front-door/texts/refusals.ts';
import type { SiteContext } from '../context.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import {
  checkBox,
  type FieldErrors,
  type Fields,
  NO_FIELDS,
  postForm,
  selectField,
  textField,
} from '../layout/forms.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { repositoryAddress } from './addresses.ts';
import type { PageRequest } from './page-request.ts';
import { counted } from './shown-text.ts';

const DEFAULT_BRANCH = 'main';

/** A page to choose where the layers are, if the account has a bucket. */
export async function openNew(context: SiteContext, visit: PersonVisit): Promise<SiteAnswer> {
  return showNew(context, visit);
}

/** What the plan has left, which decides before the form does. */
function planText(room: PlanRoom | null): Content {
  if (room === null || room.repositories.quota === null) return null;
  const { used, quota } = room.repositories;
  const text = `${used} of the ${counted(quota, 'repository', 'repositories')} of your plan, ${room.plan}.`;
  if (used < quota) return html`<p class="soft">You have ${text}</p>`;
  return html`<p class="note">You have ${text} Delete one to create another.</p>`;
}

async function showNew(
  context: SiteContext,
  visit: PersonVisit,
  fields: Fields = NO_FIELDS,
  errors: FieldErrors = {},
): Promise<SiteAnswer> {
  const { account } = visit.person;
  const buckets = await bucketChoices(context, account);
  const room = planText(await planRoom(context, account));
  const isFirst = fields === NO_FIELDS;
  const content = postForm(
    { csrf: visit.csrf(), errors },
    html`${textField({
      name: 'name',
      label: 'Name',
      value: isFirst ? (visit.url.searchParams.get('name') ?? '') : fields.text('name'),
      hint: html`Letters, digits, <code>.</code>, <code>_</code> and <code>-</code>. Its address will be <code>${visit.webUrl}/${visit.person.username}/<span id="name-typed">…</span></code>`,
      error: errors['name'],
      required: true,
      lengthMax: REPOSITORY_NAME_LENGTH_MAX,
      verbatim: true,
    })}${textField({
      name: 'description',
      label: 'Description (optional)',
      value: fields.text('description'),
      error: errors['description'],
      lengthMax: REPOSITORY_DESCRIPTION_LENGTH_MAX,
    })}${textField({
      name: 'default_branch',
      label: 'Default branch',
      value: isFirst ? DEFAULT_BRANCH : fields.text('default_branch'),
      hint: html`The branch that people see first and that clones check out. Empty: the first push chooses, else <code>${FALLBACK_DEFAULT_BRANCH}</code>.`,
      error: errors['default_branch'],
      verbatim: true,
    })}${buckets.length > 0 && storageField(buckets, isFirst ? null : fields.text('storage'), errors)}<div>${checkBox({
      name: 'readme',
      value: 'yes',
      label: 'Add a README',
      hint: 'A first commit with the name and the description. Leave it out to push an existing project.',
      checked: fields.has('readme'),
    })}</div><div class="row"><button class="button main">Create repository</button><a class="button quiet" href="/${visit.person.username}">Cancel</a></div>`,
  );
  const status = Object.keys(errors).length === 0 ? 200 : 422;
  const title = 'New repository';
  return showPage(
    page(visit, { title, width: 'narrow', scripts: ['new-repository.js'] }, html`<h1>${title}</h1>${room}${content}`),
    status,
  );
}

/** The default bucket is chosen already, unless it cannot be used. */
function storageField(buckets: readonly BucketChoice[], chosen: string | null, errors: FieldErrors): Html {
  const usable = buckets.filter(({ status }) => status === 'VERIFIED');
  return selectField({
    name: 'storage',
    label: 'Storage',
    value: chosen ?? usable.find(({ isDefault }) => isDefault)?.id ?? PLATFORM,
    hint: 'Where the layers of its history are. It never changes. Only verified buckets are listed.',
    error: errors['storage'],
    options: [
      { value: PLATFORM, label: 'The platform’s storage' },
      ...usable.map(({ id, name }) => ({ value: id, label: name })),
    ],
  });
}

const PLATFORM = 'platform';

/** Returns undefined for a choice that no form offers. */
function storageIn(fields: Fields): StorageBucketId | null | undefined {
  const chosen = fields.text('storage');
  if (chosen === '' || chosen === PLATFORM) return null;
  return parseUuid<StorageBucketId>(chosen) ?? undefined;
}

export async function createFromForm(context: SiteContext, visit: PersonVisit, fields: Fields): Promise<SiteAnswer> {
  const name = fields.text('name').trim();
  const again = (errors: FieldErrors): Promise<SiteAnswer> => showNew(context, visit, fields, errors);
  const storageBucketId = storageIn(fields);
  const texts = {
    name,
    description: textOrNull(fields.text('description')),
    defaultBranch: textOrNull(fields.text('default_branch')),
  };
  const faults = errorsOfAll(refusalsOfTexts(texts));
  if (storageBucketId === undefined) return again({ ...faults, storage: 'Choose a storage' });
  if (Object.keys(faults).length > 0) return again(faults);
  const wanted = { ...texts, storageBucketId };
  const origin = await visit.origin(null);
  const made = fields.has('readme')
    ? await createRepositoryWithReadme(context, origin, wanted, readmeOptions(visit))
    : await createRepository(context, origin, wanted);
  if ('refused' in made) return again(errorsOf(made.refused));
  return redirectTo(repositoryAddress(made));
}

/** Begins an empty repository, also one whose README was cut short when it was made. */
export async function beginWithReadme({ context, visit, repository }: PageRequest): Promise<SiteAnswer> {
  const home = repositoryAddress(repository);
  if (findDefaultBranch(repository) !== null)
    return redirectTo(home, 'The repository is not empty any more.', 'failed');
  const begun = await pushReadme(context, await visit.origin(repository), repository, readmeOptions(visit));
  if ('refused' in begun) return redirectTo(home, refusalText(begun.refused), 'failed');
  return redirectTo(home);
}

/** A push that was begun is finished, also if the person leaves the page. */
function readmeOptions({ webUrl }: PersonVisit): ReadmeOptions {
  return { authorHost: new URL(webUrl).hostname, signal: new AbortController().signal };
}

function textOrNull(text: string): string | null {
  const trimmed = text.trim();
  return trimmed === '' ? null : trimmed;
}

/** These have no field in the API's table, since its answers there are no fault of the form. */
const FIELD_OF: { readonly [Code in RefusalCode]?: string } = {
  'repository-name-taken': 'name',
  'storage-bucket-not-found': 'storage',
  'storage-bucket-not-verified': 'storage',
};

export function errorsOf(refusal: Refusal): FieldErrors {
  const field = FIELD_OF[refusal.code] ?? refusedField(refusal) ?? 'form';
  return { [field]: refusalText(refusal) };
}

export function errorsOfAll(refusals: readonly Refusal[]): FieldErrors {
  return Object.fromEntries(refusals.flatMap((refusal) => Object.entries(errorsOf(refusal))));
}
