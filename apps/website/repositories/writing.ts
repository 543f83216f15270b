/**
 * What the forms share that write a commit: its branch and its message, the head that the writer saw, and what is said
 * where nothing was written.
 *
 * Invariants: a form holds the head of its branch. A new branch begins there, whatever came in between; on the branch
 * itself a change is made on its current head, if the branch is still there and what it touches is what the writer saw.
 */

import type { Signature } from '../../../core/git/objects.ts';
import { utf8Length } from '../../../core/git/utf8.ts';
import { type ObjectId, parseObjectId, ZERO_OBJECT_ID } from '../../../core/kernel/ids.ts';
import { withLineEnd } from '../../../core/kernel/text.ts';
import { type CommitFault, pathAtFault, type WantedChange } from '../../../core/use-cases/pushing/decide-commit.ts';
import { serviceSignature } from '../../../core/use-cases/pushing/service-author.ts';
import { type WrittenCommit, writeCommit } from '../../../core/use-cases/pushing/write-commit.ts';
import type { RefPath } from '../../../core/use-cases/reading/ref-path.ts';
import {
  branchRef,
  branchText,
  findOfKind,
  findRef,
  shortNameOf,
} from '../../../core/use-cases/reading/resolve-ref.ts';
import { findRepositoryById } from '../../../core/use-cases/repositories/repositories.ts';
import { NEW_MESSAGE_BYTES_MAX } from '../../api/schemas/new-commits.ts';
import { type RateRefusal, refChangesOf } from '../../front-door/callers.ts';
import { CHANGE_FAULTS } from '../../front-door/texts/change-faults.ts';
import { reasonOf } from '../../front-door/texts/ref-faults.ts';
import type { ScriptName } from '../assets/files.ts';
import { redirectTo, redirectWithUndo, type SiteAnswer } from '../layout/answer.ts';
import {
  type FieldErrors,
  type Fields,
  fieldSet,
  hiddenField,
  postForm,
  radioButton,
  textArea,
  textField,
} from '../layout/forms.ts';
import { type Content, type Html, html, NOTHING } from '../layout/html.ts';
import { type RefusedForm, refusedForm, wrongForm } from '../layout/refused.ts';
import { sizeText } from '../layout/sizes.ts';
import { type FormKind, placeAddress, repositoryAddress } from './addresses.ts';
import { contentsAt } from './contents-at.ts';
import { breadcrumbs, showRepositoryPage } from './frame.ts';
import type { PageRequest } from './page-request.ts';
import { restorationAddress } from './restore.ts';
import { pathText, shortId, shownName } from './shown-text.ts';

/** A branch, as the page of a form shows it. */
export interface SeenBranch {
  readonly branch: string;
  /** Null: it does not exist yet. */
  readonly head: ObjectId | null;
}

/** Returns the branch whose head a page shows; null for a tag, a commit and a page of the past. */
export function branchShown(
  { repository }: PageRequest,
  ref: string,
): (SeenBranch & { readonly head: ObjectId }) | null {
  const found = repository.asOf === undefined ? findRef(repository, ref) : null;
  const branch = found === null ? undefined : shortNameOf('branch', found.fullName);
  return found === null || branch === undefined ? null : { branch, head: found.ref.id };
}

/** The links to what can be done in a folder of a branch. Its root is neither moved nor deleted. */
export function folderLinks(asked: PageRequest, { ref, names }: RefPath): Content {
  if (branchShown(asked, ref) === null) return null;
  const link = (kind: FormKind, label: string): Html =>
    html`<a class="button quiet" href="${placeAddress(asked.repository, kind, ref, names)}">${label}</a>`;
  return html`${link('create', 'New file')}${link('upload', 'Upload')}${
    names.length > 0 && html`${link('move', 'Move')}${link('remove', 'Delete')}`
  }`;
}

export function headNow({ repository }: PageRequest, branch: string): ObjectId | null {
  return findOfKind(repository.entity.state.refs, 'branch', branch)?.id ?? null;
}

/** Where a commit goes, and what it says. */
export interface Target extends SeenBranch {
  /** Null: on the branch itself. */
  readonly newBranch: string | null;
  readonly message: string;
}

/** Null for what no form of this site sends. */
export function targetOf(fields: Fields): Target | null {
  const head = parseObjectId(fields.text('head'));
  const branch = fields.text('branch');
  if (head === null || branch === '') return null;
  const newBranch = fields.text('where') === 'new' ? fields.text('new_branch').trim() : null;
  return { branch, head: head === ZERO_OBJECT_ID ? null : head, newBranch, message: fields.text('message').trim() };
}

export const MESSAGE_TOO_LONG = `A message has at most ${sizeText(NEW_MESSAGE_BYTES_MAX)}`;

export function messageIsLong(message: string): boolean {
  return utf8Length(message) > NEW_MESSAGE_BYTES_MAX;
}

/** What is wrong with a target before anything is read. */
export function targetErrors({ newBranch, message }: Target): FieldErrors {
  return {
    ...(message === '' ? { message: 'Say what the commit changes' } : {}),
    ...(messageIsLong(message) ? { message: MESSAGE_TOO_LONG } : {}),
    ...(newBranch === '' ? { new_branch: 'Name the new branch' } : {}),
  };
}

/** The fields that `targetOf` reads. */
export function targetFields(
  { branch, head }: SeenBranch,
  { message, fields, errors }: { readonly message: string; readonly fields: Fields; readonly errors: FieldErrors },
): Html {
  const isNew = fields.text('where') === 'new';
  const choice =
    head === null
      ? NOTHING
      : fieldSet(
          { name: 'where', legend: 'Where it is saved' },
          html`${radioButton({
            name: 'where',
            value: 'branch',
            label: html`On the branch <strong><bdi>${shownName(branch)}</bdi></strong>`,
            checked: !isNew,
          })}${radioButton({ name: 'where', value: 'new', label: 'On a new branch', checked: isNew })}${textField({
            name: 'new_branch',
            label: 'Name of the new branch',
            value: fields.text('new_branch'),
            error: errors['new_branch'],
            autocomplete: 'off',
            verbatim: true,
          })}`,
        );
  return html`${hiddenField('branch', branch)}${hiddenField('head', head ?? ZERO_OBJECT_ID)}${textArea({
    name: 'message',
    label: 'Message of the commit',
    value: fields.has('message') ? fields.text('message') : message,
    error: errors['message'],
    required: true,
    rows: 3,
  })}${choice}`;
}

export interface WritingForm {
  readonly action: FormKind;
  readonly title: string;
  /** The name behind the title. */
  readonly name?: string;
  readonly refused: RefusedForm;
  /** The branch, and the path that the form is about. */
  readonly seen: SeenBranch & { readonly names: readonly Uint8Array[] };
  /** What stands above the form. */
  readonly above?: Content;
  readonly content: Content;
  readonly button: string;
  /** Whether the button deletes. */
  readonly grave?: boolean;
  /** Where cancelling leads. */
  readonly back: string;
  readonly scripts?: readonly ScriptName[];
}

export function showWriting(asked: PageRequest, form: WritingForm): SiteAnswer {
  const { visit, repository } = asked;
  const { action, title, name, refused, seen, above = null, button, grave = false, back, scripts = [] } = form;
  const { errors, status } = refused;
  const { branch, head, names } = seen;
  const body = html`${form.content}<div class="row"><button class="button ${grave ? 'grave' : 'main'}">${button}</button><a class="button quiet" href="${back}">Cancel</a></div>`;
  const target = { action: `${repositoryAddress(repository)}/${action}`, csrf: visit.csrf(), errors, parts: true };
  const content = html`${
    head !== null && html`<div class="row">${breadcrumbs(asked, branchText(repository, branch), names)}</div>`
  }<h1>${title}${name !== undefined && html` <bdi>${name}</bdi>`}</h1>${above}${postForm(target, body)}`;
  const what = name === undefined ? `${title} in ${pathText(names)}` : `${title} ${pathText(names)}`;
  const shown = `${what} at ${shownName(branch)}`;
  return showRepositoryPage(asked, { title: shown, tab: 'Code', status, scripts }, content);
}

export type Unwritten =
  | { readonly form: RefusedForm }
  /** Something else is at the path of this change than its writer saw. */
  | { readonly moved: number }
  | { readonly exceeded: RateRefusal };

/** Who commits and tags are by that the account makes on the site, at this moment. */
export function accountSignature({ context, visit, repository }: PageRequest): Signature {
  return serviceSignature(repository.account.username, new URL(visit.webUrl).hostname, context.clock.now());
}

/** Writes the changes as a commit of the account. `pathField` is the field that their paths come from. */
export async function writeChanges(
  asked: PageRequest,
  target: Target,
  changes: readonly WantedChange[],
  pathField = 'path',
): Promise<WrittenCommit | Unwritten> {
  const { context, visit, repository } = asked;
  const { branch, head, newBranch, message } = target;
  const written = newBranch ?? branch;
  const exceeded = context.callers.recordRefs(visit.person.principal, refChangesOf(branchRef(written)));
  if (exceeded !== null) return { exceeded };
  const author = accountSignature(asked);
  const isNew = newBranch !== null || head === null;
  const outcome = await writeCommit(context, await visit.origin(repository), {
    repository,
    branch: written,
    expected: isNew ? null : 'any-head',
    start: newBranch === null ? null : head,
    message: withLineEnd(message),
    author,
    committer: author,
    changes,
    allowEmpty: false,
    key: null,
    signal: visit.signal,
  });
  if ('refused' in outcome) return { form: refusedForm(outcome.refused, {}) };
  if (!('fault' in outcome)) return outcome;
  return unwritten(outcome.fault, changes, { path: pathField, branch: newBranch === null ? 'form' : 'new_branch' });
}

/** `fields` are those that the path of a change and the name of the branch come from. */
export function unwritten(
  fault: CommitFault,
  changes: readonly WantedChange[],
  fields: { readonly path: string; readonly branch: string },
): Exclude<Unwritten, { readonly exceeded: RateRefusal }> {
  switch (fault.at) {
    case 'branch': {
      const { head, ref, code } = fault.fault;
      const name = shownName(shortNameOf('branch', ref) ?? ref);
      const errors =
        code === 'ref-missing'
          ? { form: `The branch ${name} was deleted since this page was opened. Save on a new branch.` }
          : { [fields.branch]: `${name}: ${reasonOf(fault.fault)}` };
      return { form: { errors, status: head === null ? 422 : 409, headers: {} } };
    }
    case 'start':
      return {
        form: wrongForm({
          form: 'No branch or tag has the commit any more that this page began with. Copy your changes, and open the page again.',
        }),
      };
    case 'changes':
      return { form: NOTHING_CHANGED };
    case 'objects':
      return { form: wrongForm({ form: fault.detail }) };
    case 'change': {
      const { code, index, field } = fault;
      if (code === 'blob-moved') return { moved: index };
      const text = `${shownName(pathAtFault(changes, fault) ?? '')}: ${CHANGE_FAULTS[code]}`;
      return { form: wrongForm({ [{ path: fields.path, to: 'to', blob: 'form', content: 'text' }[field]]: text }) };
    }
  }
}

export const NOTHING_CHANGED: RefusedForm = wrongForm({ form: 'Nothing is changed, so there is nothing to save.' });

/** Leads to what is at a path of the branch that was written, or to the next folder above that there is. */
export async function leadToWritten(
  asked: PageRequest,
  { ref, commit, event }: WrittenCommit,
  { names, text }: { readonly names: readonly Uint8Array[]; readonly text: string },
): Promise<SiteAnswer> {
  const { context, repository } = asked;
  const now = await findRepositoryById(context, repository.accountId, repository.id);
  if (now === null) return redirectTo(repositoryAddress(repository));
  const branch = branchText(now, shortNameOf('branch', ref) ?? ref);
  let shown = names;
  let found = await contentsAt({ ...asked, repository: now }, { ref: branch, names: shown });
  while ('refused' in found && shown.length > 0) {
    shown = shown.slice(0, -1);
    found = await contentsAt({ ...asked, repository: now }, { ref: branch, names: shown });
  }
  const kind = 'refused' in found || found.type === 'dir' ? 'tree' : 'blob';
  const path = placeAddress(now, kind, branch, shown);
  const message = `${text} in commit ${shortId(commit.id)}.`;
  return event === null ? redirectTo(path) : redirectWithUndo(path, message, restorationAddress(now, event, ref));
}
