/**
 * Creating a file in any folder of a branch, and uploading files into one; also in a repository without commits.
 *
 * Invariants: nothing is replaced unless its writer says so.
 */
import { encodeUtf8 } from '../../../core/git/utf8.ts';
import type { WantedChange } from '../../../core/use-cases/pushing/decide-commit.ts';
import type { RefPath } from '../../../core/use-cases/reading/ref-path.ts';
import { branchText } from '../../../core/use-cases/reading/resolve-ref.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { checkBox, type Fields, filesField, hiddenField, NO_FIELDS, textField } from '../layout/forms.ts';
import { html } from '../layout/html.ts';
import { tooOftenProblem } from '../layout/problems.ts';
import { NEW_FORM, type RefusedForm, wrongForm } from '../layout/refused.ts';
import { sizeText } from '../layout/sizes.ts';
import { isMarkdown } from '../rendering/language.ts';
import { namesOfField, pathField, pathOfNames, placeAddress, repositoryAddress } from './addresses.ts';
import { notFoundHere, showRepositoryProblem } from './frame.ts';
import { UPLOAD_FORM_BYTES_MAX } from './limits.ts';
import { type PageRequest, showRefusal } from './page-request.ts';
import { changeOf, type SentText } from './sent-text.ts';
import { counted, shownName } from './shown-text.ts';
import { EDITOR_SCRIPTS, textEditor } from './text-editor.ts';
import {
  branchShown,
  headNow,
  leadToWritten,
  type SeenBranch,
  showWriting,
  type Target,
  targetErrors,
  targetFields,
  targetOf,
  writeChanges,
} from './writing.ts';

interface SeenFolder extends SeenBranch {
  readonly folder: RefPath['names'];
}

/** Null where the page is of no branch. The folder need not exist. */
function folderShown(asked: PageRequest, place: RefPath | null): SeenFolder | null {
  if (place === null) {
    const { defaultBranch } = asked.repository;
    return { branch: defaultBranch, head: headNow(asked, defaultBranch), folder: [] };
  }
  const seen = branchShown(asked, place.ref);
  return seen === null ? null : { ...seen, folder: place.names };
}

function folderSent(fields: Fields): { readonly target: Target; readonly seen: SeenFolder } | null {
  const target = targetOf(fields);
  const text = fields.text('folder');
  const folder = text === '' ? [] : namesOfField(text);
  return target === null || folder === null ? null : { target, seen: { ...target, folder } };
}

/** `place` is null for the default branch, which need not exist. */
export async function showCreate(asked: PageRequest, place: RefPath | null): Promise<SiteAnswer> {
  const seen = folderShown(asked, place);
  return seen === null ? showRefusal(asked, { code: 'ref-not-found' }) : createForm(asked, seen, NO_FIELDS);
}

function createForm(asked: PageRequest, seen: SeenFolder, fields: Fields, refused: RefusedForm = NEW_FORM): SiteAnswer {
  const { errors } = refused;
  return showWriting(asked, {
    action: 'create',
    title: 'Create a file',
    refused,
    seen: { ...seen, names: seen.folder },
    back: folderAddress(asked, seen),
    button: 'Create file',
    scripts: EDITOR_SCRIPTS,
    content: html`${hiddenField('folder', pathField(seen.folder))}${textField({
      name: 'path',
      label: 'Path',
      value: fields.text('path'),
      hint: `${belowText(seen)} Use slashes for folders: those that are missing are created.`,
      error: errors['path'],
      required: true,
      autocomplete: 'off',
      verbatim: true,
    })}${textEditor(asked, {
      value: fields.text('text'),
      error: errors['text'],
      isMarkdown: isMarkdown(fields.text('path')),
    })}${targetFields(seen, { message: 'Add a file', fields, errors })}`,
  });
}

function belowText({ folder }: SeenFolder): string {
  return folder.length === 0 ? 'From the root of the repository.' : `Below ${shownName(pathOfNames(folder))}.`;
}

function folderAddress({ repository }: PageRequest, { branch, head, folder }: SeenFolder): string {
  return head === null
    ? repositoryAddress(repository)
    : placeAddress(repository, 'tree', branchText(repository, branch), folder);
}

/** Null for what no form of this site sends. */
export function sentFile(fields: Fields): (SentText & { readonly seen: SeenFolder }) | null {
  const sent = folderSent(fields);
  if (sent === null) return null;
  const names = [...sent.seen.folder, ...fields.text('path').split('/').map(encodeUtf8)];
  return { ...sent, names, blob: null, edited: { text: fields.text('text'), lineEnds: 'lf' } };
}

export async function saveCreate(asked: PageRequest, fields: Fields): Promise<SiteAnswer> {
  const sent = sentFile(fields);
  if (sent === null) return notFoundHere(asked);
  const { target, seen, names } = sent;
  const { change, errors: ofText } = changeOf(sent);
  const errors = { ...ofText, ...targetErrors(target) };
  const again = (refused: RefusedForm): SiteAnswer => createForm(asked, seen, fields, refused);
  if (Object.keys(errors).length > 0) return again(wrongForm(errors));
  const written = await writeChanges(asked, target, [change]);
  if ('exceeded' in written) return showRepositoryProblem(asked, tooOftenProblem(written.exceeded));
  if ('form' in written) return again(written.form);
  if ('moved' in written) return again({ ...wrongForm({ path: 'Something is at this path already' }), status: 409 });
  return leadToWritten(asked, written, { names, text: `${shownName(names.at(-1) ?? '')} is created` });
}

/** `place` is null for the default branch, which need not exist. */
export async function showUpload(asked: PageRequest, place: RefPath | null): Promise<SiteAnswer> {
  const seen = folderShown(asked, place);
  return seen === null ? showRefusal(asked, { code: 'ref-not-found' }) : uploadForm(asked, seen, NO_FIELDS);
}

function uploadForm(asked: PageRequest, seen: SeenFolder, fields: Fields, refused: RefusedForm = NEW_FORM): SiteAnswer {
  const { errors } = refused;
  return showWriting(asked, {
    action: 'upload',
    title: 'Upload files',
    refused,
    seen: { ...seen, names: seen.folder },
    back: folderAddress(asked, seen),
    button: 'Upload',
    content: html`${hiddenField('folder', pathField(seen.folder))}${filesField({
      name: 'files',
      label: 'Files',
      hint: `At most ${sizeText(UPLOAD_FORM_BYTES_MAX)} in all; git takes more.`,
      error: errors['files'],
      required: true,
    })}${checkBox({
      name: 'replace',
      value: 'yes',
      label: 'Replace files of the same name',
      checked: fields.has('replace'),
    })}${targetFields(seen, { message: 'Upload files', fields, errors })}`,
  });
}

export async function saveUpload(asked: PageRequest, fields: Fields): Promise<SiteAnswer> {
  const sent = folderSent(fields);
  if (sent === null) return notFoundHere(asked);
  const { target, seen } = sent;
  // A browser sends a file without a name where none is chosen.
  const files = fields.files('files').filter(({ name }) => name !== '');
  const errors = { ...(files.length === 0 ? { files: 'Choose a file' } : {}), ...targetErrors(target) };
  const again = (refused: RefusedForm): SiteAnswer => uploadForm(asked, seen, fields, refused);
  if (Object.keys(errors).length > 0) return again(wrongForm(errors));
  const expected = fields.has('replace') ? 'any' : null;
  const changes = files.map(({ name, bytes }): WantedChange => {
    const path = pathOfNames([...seen.folder, encodeUtf8(name)]);
    return { action: 'put', path, expected, mode: null, content: bytes };
  });
  const written = await writeChanges(asked, target, changes, 'files');
  if ('exceeded' in written) return showRepositoryProblem(asked, tooOftenProblem(written.exceeded));
  if ('form' in written) return again(written.form);
  if ('moved' in written) {
    const text = `${shownName(files[written.moved]?.name ?? '')} is there already. Nothing was saved: choose the files again`;
    return again({ ...wrongForm({ files: text }), status: 409 });
  }
  const text = `${counted(files.length, 'file')} uploaded`;
  return leadToWritten(asked, written, { names: seen.folder, text });
}
