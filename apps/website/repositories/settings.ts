/**
 * The settings of a repository: its description, its default branch, its name, and its deletion, for which its name is
 * typed.
 */
import { REPOSITORY_DESCRIPTION_LENGTH_MAX, REPOSITORY_NAME_LENGTH_MAX } from '../../../core/kernel/limits.ts';
import { findDefaultBranch } from '../../../core/use-cases/reading/resolve-ref.ts';
import {
  changeRepository,
  deleteRepository,
  type RepositoryChanges,
  refusalsOfTexts,
} from '../../../core/use-cases/repositories/repositories.ts';
import { redirectTo, redirectWithUndo, type SiteAnswer } from '../layout/answer.ts';
import { type FieldErrors, type Fields, NO_FIELDS, postForm, textField } from '../layout/forms.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { sizeText } from '../layout/sizes.ts';
import { spanText } from '../layout/times.ts';
import { purgeAddress, repositoryAddress } from './addresses.ts';
import { DELETED } from './deleted.ts';
import { showRepositoryPage } from './frame.ts';
import { errorsOf, errorsOfAll } from './new.ts';
import type { PageRequest } from './page-request.ts';
import { shownName } from './shown-text.ts';

export function showSettings(asked: PageRequest, fields: Fields = NO_FIELDS, errors: FieldErrors = {}): SiteAnswer {
  const content = html`<div class="stack middle start"><h1>Settings</h1>${about(asked, fields, errors)}${storage(
    asked,
  )}${naming(asked, fields, errors)}${purge(asked)}${deletion(asked, fields, errors)}</div>`;
  const status = Object.keys(errors).length === 0 ? 200 : 422;
  return showRepositoryPage(asked, { title: 'Settings', tab: 'Settings', status }, content);
}

function about({ visit, repository }: PageRequest, fields: Fields, errors: FieldErrors): Html {
  const isSent = fields.has('default_branch');
  const own = isSent ? errors : {};
  const form = postForm(
    { action: `${repositoryAddress(repository)}/settings`, csrf: visit.csrf(), errors: own },
    html`${textField({
      name: 'description',
      label: 'Description',
      value: isSent ? fields.text('description') : (repository.owned.description ?? ''),
      error: own['description'],
      lengthMax: REPOSITORY_DESCRIPTION_LENGTH_MAX,
    })}${textField({
      name: 'default_branch',
      label: 'Default branch',
      value: isSent ? fields.text('default_branch') : repository.defaultBranch,
      hint: 'The branch that people see first and that clones check out.',
      error: own['default_branch'],
      required: true,
      verbatim: true,
    })}${missingBranch(repository)}<div class="row"><button class="button main">Save changes</button></div>`,
  );
  return html`<section class="box"><header><h2>About</h2></header><div class="stack part">${form}</div></section>`;
}

/** In an empty repository no branch exists, which needs no warning. */
function missingBranch(repository: PageRequest['repository']): Content {
  if (repository.entity.state.refs.size === 0 || findDefaultBranch(repository) !== null) return null;
  return html`<p class="note">The branch ${shownName(repository.defaultBranch)} does not exist. Until it is pushed, the repository’s page shows no files, and clones check out nothing. <a href="${repositoryAddress(repository)}/branches">Show the branches</a></p>`;
}

function storage({ repository }: PageRequest): Html {
  return html`<section class="box"><header><h2>Storage</h2></header><div class="part"><dl class="facts"><dt>Stored in</dt><dd>${storedIn(repository)}</dd><dt>Size</dt><dd>${sizeText(
    repository.entity.state.layersSizeBytes,
  )}</dd></dl></div></section>`;
}

function storedIn({ account, owned: { storageBucketId } }: PageRequest['repository']): Html | string {
  if (storageBucketId === null) return 'the platform’s storage';
  const name = account.storageBuckets.get(storageBucketId)?.name;
  return html`<a href="/storage-buckets/${storageBucketId}">${name ?? storageBucketId}</a>`;
}

/** A form of its own: who changes the description of a page that was open for long must not give an old name back. */
function naming({ visit, repository }: PageRequest, fields: Fields, errors: FieldErrors): Html {
  const isSent = fields.has('name');
  const own = isSent ? errors : {};
  const form = postForm(
    { action: `${repositoryAddress(repository)}/rename`, csrf: visit.csrf(), errors: own },
    html`<p>Links and clones go on to work with the old name, until another repository takes it.</p>${textField({
      name: 'name',
      label: 'Name',
      value: isSent ? fields.text('name') : repository.owned.name,
      error: own['name'],
      required: true,
      lengthMax: REPOSITORY_NAME_LENGTH_MAX,
      autocomplete: 'off',
      verbatim: true,
    })}<div class="row"><button class="button">Rename repository</button></div>`,
  );
  return html`<section class="box"><header><h2>Rename</h2></header><div class="stack part">${form}</div></section>`;
}

function purge({ repository }: PageRequest): Html {
  return html`<section class="box"><header><h2>Purge</h2></header><div class="stack part"><p>Removes for good what no branch and no tag reaches any more, such as a secret that you pushed and forced away.</p><div class="row"><a class="button" href="${purgeAddress(
    repository,
  )}">Purge…</a></div></div></section>`;
}

function deletion({ context, visit, repository }: PageRequest, fields: Fields, errors: FieldErrors): Html {
  const own = fields.has('confirmation') ? errors : {};
  const form = postForm(
    { action: `${repositoryAddress(repository)}/delete`, csrf: visit.csrf(), errors: own },
    html`<p>Clones, pushes and this page stop working, and the name is free again. You can undo this for ${spanText(context.retentionMs)}.</p>${textField(
      {
        name: 'confirmation',
        label: `Type ${repository.owned.name} to confirm`,
        value: fields.text('confirmation'),
        error: own['confirmation'],
        required: true,
        autocomplete: 'off',
        verbatim: true,
      },
    )}<div class="row"><button class="button grave">Delete repository</button></div>`,
  );
  return html`<section class="box"><header><h2>Delete</h2></header><div class="stack part">${form}</div></section>`;
}

export async function saveSettings(asked: PageRequest, fields: Fields): Promise<SiteAnswer> {
  const { context, visit, repository } = asked;
  const description = fields.text('description').trim();
  const defaultBranch = fields.text('default_branch').trim();
  // A full name that was recorded as a short one becomes the short one when it is sent back.
  const isAsShown = defaultBranch === repository.defaultBranch && !defaultBranch.startsWith('refs/');
  const changes: RepositoryChanges = {
    description: description === '' ? null : description,
    ...(isAsShown ? {} : { defaultBranch }),
  };
  const faults = errorsOfAll(
    refusalsOfTexts({
      description: changes.description ?? null,
      defaultBranch: defaultBranch === repository.defaultBranch ? null : defaultBranch,
    }),
  );
  if (Object.keys(faults).length > 0) return showSettings(asked, fields, faults);
  const changed = await changeRepository(context, await visit.origin(repository), repository.id, changes);
  if ('refused' in changed) return showSettings(asked, fields, errorsOf(changed.refused));
  return redirectTo(`${repositoryAddress(changed)}/settings`, 'The settings are saved.');
}

export async function renameFromForm(asked: PageRequest, fields: Fields): Promise<SiteAnswer> {
  const { context, visit, repository } = asked;
  const rename = { name: fields.text('name').trim(), takesFormerNames: true };
  const renamed = await changeRepository(context, await visit.origin(repository), repository.id, { rename });
  if ('refused' in renamed) return showSettings(asked, fields, errorsOf(renamed.refused));
  return redirectTo(`${repositoryAddress(renamed)}/settings`, `The repository is ${renamed.owned.name} now.`);
}

export async function removeRepository(asked: PageRequest, fields: Fields): Promise<SiteAnswer> {
  const { context, visit, repository } = asked;
  const { name } = repository.owned;
  if (fields.text('confirmation').trim() !== name) {
    return showSettings(asked, fields, { confirmation: `This is not the repository’s name, ${name}` });
  }
  const deleted = await deleteRepository(context, await visit.origin(repository), repository.id);
  if ('refused' in deleted) return showSettings(asked, fields, errorsOf(deleted.refused));
  const undo = `${DELETED}#deleted-${repository.id}`;
  return redirectWithUndo(`/${visit.person.username}`, `The repository ${name} is deleted.`, undo);
}
