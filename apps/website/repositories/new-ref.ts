/**
 * Creating and deleting branches and tags.
 *
 * Invariants: nothing is created over what is there, and nothing is deleted but what its writer saw.
 */
import { type ObjectId, parseObjectId } from '../../../core/kernel/ids.ts';
import { withLineEnd } from '../../../core/kernel/text.ts';
import { changeRefs, type RefFault } from '../../../core/use-cases/pushing/change-refs.ts';
import { createTag } from '../../../core/use-cases/pushing/create-tag.ts';
import { branchRef, findRef, shortNameOf, tagText } from '../../../core/use-cases/reading/resolve-ref.ts';
import { refChangesOf } from '../../front-door/callers.ts';
import { refusedChange } from '../../front-door/changes.ts';
import { reasonOf } from '../../front-door/texts/ref-faults.ts';
import { redirectTo, redirectWithUndo, type SiteAnswer } from '../layout/answer.ts';
import { type Fields, hiddenField, NO_FIELDS, postForm, textArea, textField } from '../layout/forms.ts';
import { type Content, html, NOTHING } from '../layout/html.ts';
import { tooOftenProblem } from '../layout/problems.ts';
import { NEW_FORM, type RefusedForm, refusedForm, wrongForm } from '../layout/refused.ts';
import { spanText } from '../layout/times.ts';
import { repositoryAddress } from './addresses.ts';
import { contentsAt } from './contents-at.ts';
import { notFoundHere, showRepositoryPage, showRepositoryProblem } from './frame.ts';
import { type PageRequest, showRefusal } from './page-request.ts';
import { restorationAddress } from './restore.ts';
import { shortId, shownName } from './shown-text.ts';
import { accountSignature, MESSAGE_TOO_LONG, messageIsLong } from './writing.ts';

type Kind = 'branch' | 'tag';

const WORDS = {
  branch: { tab: 'Branches', list: 'branches', title: 'New branch', subject: 'The branch', button: 'Create branch' },
  tag: { tab: 'Tags', list: 'tags', title: 'New tag', subject: 'The tag', button: 'Create tag' },
} as const;

export async function showNewBranch(asked: PageRequest): Promise<SiteAnswer> {
  return newForm(asked, 'branch', NO_FIELDS);
}

export async function showNewTag(asked: PageRequest): Promise<SiteAnswer> {
  return newForm(asked, 'tag', NO_FIELDS);
}

function newForm(asked: PageRequest, kind: Kind, fields: Fields, refused: RefusedForm = NEW_FORM): SiteAnswer {
  const { visit, repository } = asked;
  const { errors, status } = refused;
  const { tab, list, title, button } = WORDS[kind];
  const home = repositoryAddress(repository);
  const message = textArea({
    name: 'message',
    label: 'Message (optional)',
    value: fields.text('message'),
    hint: 'With a message the tag says who made it and when.',
    error: errors['message'],
    rows: 3,
  });
  const form = postForm(
    { action: `${home}/new-${kind}`, csrf: visit.csrf(), errors, parts: kind === 'tag' },
    html`${textField({
      name: 'name',
      label: 'Name',
      value: fields.text('name'),
      error: errors['name'],
      required: true,
      autocomplete: 'off',
      verbatim: true,
    })}${textField({
      name: 'at',
      label: kind === 'branch' ? 'Begins at' : 'Leads to',
      value: fields.has('at') ? fields.text('at') : repository.defaultBranch,
      hint: 'A branch, a tag or the id of a commit.',
      error: errors['at'],
      required: true,
      autocomplete: 'off',
      verbatim: true,
    })}${kind === 'tag' ? message : NOTHING}<div class="row"><button class="button main">${button}</button><a class="button quiet" href="${home}/${list}">Cancel</a></div>`,
  );
  const content = html`<div class="stack middle start"><h1>${title}</h1>${form}</div>`;
  return showRepositoryPage(asked, { title, tab, status }, content);
}

export function createBranch(asked: PageRequest, fields: Fields): Promise<SiteAnswer> {
  return create(asked, 'branch', fields);
}

export function createTagFromForm(asked: PageRequest, fields: Fields): Promise<SiteAnswer> {
  return create(asked, 'tag', fields);
}

async function create(asked: PageRequest, kind: Kind, fields: Fields): Promise<SiteAnswer> {
  const { context, visit, repository } = asked;
  const again = (refused: RefusedForm): SiteAnswer => newForm(asked, kind, fields, refused);
  const name = fields.text('name').trim();
  const message = fields.text('message').trim();
  const target = await commitAt(asked, fields.text('at').trim());
  if (target === null || name === '' || messageIsLong(message)) {
    return again(
      wrongForm({
        ...(name === '' ? { name: `Enter a name for the ${kind}` } : {}),
        ...(target === null ? { at: 'No branch, tag or commit has this name' } : {}),
        ...(messageIsLong(message) ? { message: MESSAGE_TOO_LONG } : {}),
      }),
    );
  }
  const ref = kind === 'branch' ? branchRef(name) : tagText(name);
  const exceeded = context.callers.recordRefs(visit.person.principal, refChangesOf(ref));
  if (exceeded !== null) return showRepositoryProblem(asked, tooOftenProblem(exceeded));
  const { signal } = visit;
  const origin = await visit.origin(repository);
  const annotation = message === '' ? null : { message: withLineEnd(message), tagger: accountSignature(asked) };
  const made =
    kind === 'tag'
      ? await createTag(context, origin, { repository, name, target, expected: null, annotation, key: null, signal })
      : await changeRefs(context, origin, {
          repository,
          updates: [{ ref, expected: null, after: target }],
          atomic: true,
          key: null,
          signal,
        });
  if ('refused' in made) return again(refusedForm(made.refused, {}));
  const fault = 'fault' in made ? made.fault : 'faults' in made ? made.faults[0] : undefined;
  if (fault !== undefined) return again(faultForm(fault, 'name'));
  const event = 'event' in made ? made.event : null;
  return leadToList(asked, kind, `${WORDS[kind].subject} ${shownName(name)} is created.`, { ref, event });
}

/** Returns the commit that a text names; null if there is none, and for a tag of a tree or a blob. */
async function commitAt(asked: PageRequest, text: string): Promise<ObjectId | null> {
  if (text === '') return null;
  const found = await contentsAt(asked, { ref: text, names: [] });
  return 'refused' in found ? null : found.place.commit;
}

function faultForm(fault: RefFault, field: string): RefusedForm {
  const errors = { [field]: `${shownName(fault.ref)}: ${reasonOf(fault)}` };
  return { errors, status: fault.head === null ? 422 : 409, headers: {} };
}

function leadToList(
  { repository }: PageRequest,
  kind: Kind,
  text: string,
  { ref, event }: { readonly ref: string; readonly event: string | null },
): SiteAnswer {
  const path = `${repositoryAddress(repository)}/${WORDS[kind].list}`;
  return event === null
    ? redirectTo(path, text)
    : redirectWithUndo(path, text, restorationAddress(repository, event, ref));
}

/** What stands above a list; nothing on a page of the past, and where no commit is there yet. */
export function newRefButton(repository: PageRequest['repository'], kind: Kind): Content {
  if (repository.asOf !== undefined || repository.entity.state.refs.size === 0) return null;
  const { title } = WORDS[kind];
  return html`<div class="row"><a class="button" href="${repositoryAddress(repository)}/new-${kind}">${title}</a></div>`;
}

/** The address of the page that asks whether to delete a branch or a tag, by its full name. */
function deleteRefAddress(repository: PageRequest['repository'], ref: string): string {
  return `${repositoryAddress(repository)}/delete-ref?${new URLSearchParams({ ref }).toString()}`;
}

/** The link of a row in a list; none on a page of the past. */
export function deleteLink(repository: PageRequest['repository'], ref: string, name: string): Content {
  if (repository.asOf !== undefined) return null;
  return html` <a class="soft" href="${deleteRefAddress(repository, ref)}">Delete<span class="unseen"> ${shownName(name)}</span></a>`;
}

export async function askToDeleteRef(asked: PageRequest): Promise<SiteAnswer> {
  return deleteForm(asked, asked.visit.url.searchParams.get('ref') ?? '');
}

function kindOf(ref: string): Kind | null {
  if (shortNameOf('branch', ref) !== undefined) return 'branch';
  return shortNameOf('tag', ref) === undefined ? null : 'tag';
}

function deleteForm(asked: PageRequest, ref: string, refused: RefusedForm = NEW_FORM): SiteAnswer {
  const { context, visit, repository } = asked;
  const kind = kindOf(ref);
  const found = kind === null ? null : findRef(repository, ref);
  if (kind === null || found === null) return showRefusal(asked, { code: 'ref-not-found' });
  const { errors, status } = refused;
  const { tab, list } = WORDS[kind];
  const home = repositoryAddress(repository);
  const name = shownName(shortNameOf(kind, ref) ?? ref);
  const title = `Delete the ${kind} ${name}`;
  const form = postForm(
    { action: `${home}/delete-ref`, csrf: visit.csrf(), errors },
    html`${hiddenField('ref', ref)}${hiddenField('expected', found.ref.id)}<div class="row"><button class="button grave">Delete ${kind}</button><a class="button quiet" href="${home}/${list}">Cancel</a></div>`,
  );
  const content = html`<div class="stack middle start"><h1>Delete the ${kind} <bdi>${name}</bdi></h1><p>It leads to <code class="id">${shortId(
    found.ref.id,
  )}</code>. You can undo the deletion for ${spanText(context.retentionMs)}; until then, what no other branch or tag reaches is kept.</p>${form}</div>`;
  return showRepositoryPage(asked, { title, tab, status }, content);
}

export async function deleteRef(asked: PageRequest, fields: Fields): Promise<SiteAnswer> {
  const { context, visit, repository } = asked;
  const ref = fields.text('ref');
  const kind = kindOf(ref);
  const expected = parseObjectId(fields.text('expected'));
  if (kind === null || expected === null) return notFoundHere(asked);
  const { principal } = visit.person;
  const used = await refusedChange(context, principal, 'ref-deletion');
  const exceeded = used ?? context.callers.recordRefs(principal, refChangesOf(ref));
  if (exceeded !== null) return showRepositoryProblem(asked, tooOftenProblem(exceeded));
  const changed = await changeRefs(context, await visit.origin(repository), {
    repository,
    updates: [{ ref, expected, after: null }],
    atomic: true,
    key: null,
    signal: visit.signal,
  });
  if ('refused' in changed) return deleteForm(asked, ref, refusedForm(changed.refused, {}));
  const [fault] = changed.faults;
  if (fault === undefined) {
    const name = shownName(shortNameOf(kind, ref) ?? ref);
    return leadToList(asked, kind, `${WORDS[kind].subject} ${name} is deleted.`, { ref, event: changed.event });
  }
  const moved = 'It was changed since this page was opened. This is where it leads now';
  return deleteForm(
    asked,
    ref,
    fault.head === null ? faultForm(fault, 'form') : { errors: { form: moved }, status: 409, headers: {} },
  );
}
