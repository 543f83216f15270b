/**
 * Editing a file at the head of a branch.
 *
 * Invariants: the form holds the head and the blob that its writer saw. What somebody else made of the file in between
 * is shown beside the writer's text, and nobody's text is lost or replaced unseen.
 */
import { decodeUtf8Lossy } from '../../../core/git/utf8.ts';
import { type ObjectId, parseObjectId } from '../../../core/kernel/ids.ts';
import type { FileContents } from '../../../core/use-cases/reading/read-contents.ts';
import type { RefPath } from '../../../core/use-cases/reading/ref-path.ts';
import { branchText } from '../../../core/use-cases/reading/resolve-ref.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { type Fields, hiddenField, NO_FIELDS, shownText } from '../layout/forms.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { tooOftenProblem } from '../layout/problems.ts';
import { NEW_FORM, type RefusedForm, wrongForm } from '../layout/refused.ts';
import { markInvisible } from '../rendering/invisible.ts';
import { isMarkdown } from '../rendering/language.ts';
import { namesOfField, pathField, placeAddress } from './addresses.ts';
import { contentsAt } from './contents-at.ts';
import { type EditableText, editableText } from './editable-text.ts';
import { notFoundHere, showRepositoryProblem } from './frame.ts';
import { type PageRequest, showRefusal } from './page-request.ts';
import { changeOf, type SentText } from './sent-text.ts';
import { shownName } from './shown-text.ts';
import { EDITOR_SCRIPTS, textEditor } from './text-editor.ts';
import {
  branchShown,
  headNow,
  leadToWritten,
  NOTHING_CHANGED,
  type SeenBranch,
  showWriting,
  targetErrors,
  targetFields,
  targetOf,
  writeChanges,
} from './writing.ts';

/** What the form holds of the file that its writer saw. */
interface SeenFile extends SeenBranch {
  readonly names: RefPath['names'];
  readonly blob: ObjectId;
}

export async function showEdit(asked: PageRequest, { ref, names }: RefPath): Promise<SiteAnswer> {
  const { repository } = asked;
  const seen = branchShown(asked, ref);
  const contents = await contentsAt(asked, { ref, names });
  if ('refused' in contents) return showRefusal(asked, contents.refused);
  const back = { path: placeAddress(repository, 'blob', ref, names), label: 'the file' };
  const refuse = (text: string): SiteAnswer =>
    showRepositoryProblem(asked, { status: 422, title: 'This cannot be edited here', text, back });
  if (seen === null) return refuse('Only the files at the head of a branch can be edited.');
  if (contents.type !== 'file') return refuse('Only files can be edited.');
  const editable = editableText(contents.content);
  if ('why' in editable) return refuse(`The file cannot be edited here: ${editable.why}. A clone has it whole.`);
  return showForm(asked, { ...seen, names, blob: contents.id }, editable, NO_FIELDS);
}

interface Shown {
  readonly refused?: RefusedForm;
  /** What stands above the form. */
  readonly above?: Content;
  readonly title?: string;
  readonly button?: string;
}

function showForm(
  asked: PageRequest,
  seen: SeenFile,
  { text, lineEnds }: EditableText,
  fields: Fields,
  { refused = NEW_FORM, above = null, title = 'Edit', button = 'Save' }: Shown = {},
): SiteAnswer {
  const { errors } = refused;
  const { names, blob, branch } = seen;
  const name = shownName(names.at(-1) ?? '');
  return showWriting(asked, {
    action: 'edit',
    title,
    name,
    refused,
    seen,
    above,
    button,
    back: placeAddress(asked.repository, 'blob', branchText(asked.repository, branch), names),
    scripts: EDITOR_SCRIPTS,
    content: html`${hiddenField('path', pathField(names))}${hiddenField('blob', blob)}${hiddenField('line_ends', lineEnds)}${textEditor(
      asked,
      {
        value: text,
        error: errors['text'],
        isMarkdown: isMarkdown(decodeUtf8Lossy(names.at(-1) ?? new Uint8Array())),
        ...(hidesCharacters(text) ? { hint: HIDDEN_CHARACTERS } : {}),
      },
    )}${targetFields(seen, { message: `Update ${name}`, fields, errors })}`,
  });
}

const HIDDEN_CHARACTERS =
  'The text has characters that nobody sees, or that change the order in which it is shown. The page of the file shows where.';

function hidesCharacters(text: string): boolean {
  return markInvisible(text) !== text;
}

/** Null for what no form of this site sends. */
export function sentEdit(fields: Fields): (SentText & Pick<SeenFile, 'blob'>) | null {
  const target = targetOf(fields);
  const names = namesOfField(fields.text('path'));
  const blob = parseObjectId(fields.text('blob'));
  if (target === null || names === null || blob === null) return null;
  const lineEnds = fields.text('line_ends') === 'crlf' ? 'crlf' : 'lf';
  return { target, names, blob, edited: { text: fields.text('text'), lineEnds } };
}

export async function saveEdit(asked: PageRequest, fields: Fields): Promise<SiteAnswer> {
  const sent = sentEdit(fields);
  if (sent === null) return notFoundHere(asked);
  const { target, names, blob, edited } = sent;
  const seen = { branch: target.branch, head: target.head, names, blob };
  const again = (refused: RefusedForm): SiteAnswer => showForm(asked, seen, edited, fields, { refused });
  const { change, errors: ofText } = changeOf(sent);
  const errors = { ...ofText, ...targetErrors(target) };
  if (Object.keys(errors).length > 0) return again(wrongForm(errors));
  const written = await writeChanges(asked, target, [change]);
  if ('exceeded' in written) return showRepositoryProblem(asked, tooOftenProblem(written.exceeded));
  if ('form' in written) return again(written.form);
  if ('moved' in written) return showConflict(asked, seen, edited, fields);
  if (written.event === null) return again(NOTHING_CHANGED);
  return leadToWritten(asked, written, { names, text: `${shownName(names.at(-1) ?? '')} is saved` });
}

/** Somebody else changed the file since the writer saw it: shows what they made of it, and the writer's text. */
async function showConflict(
  asked: PageRequest,
  seen: SeenFile,
  edited: EditableText,
  fields: Fields,
): Promise<SiteAnswer> {
  const ref = branchText(asked.repository, seen.branch);
  const theirs = await contentsAt(asked, { ref, names: seen.names });
  const isFile = !('refused' in theirs) && theirs.type === 'file';
  if (!isFile) {
    const form =
      'The file was deleted or replaced since this page was opened. Save your text on a new branch, or copy it.';
    const refused = { errors: { form }, status: 409, headers: {} };
    return showForm(asked, seen, edited, fields, { refused });
  }
  const form = 'Somebody changed this file since you opened it. Nothing was saved yet.';
  const head = headNow(asked, seen.branch);
  return showForm(asked, { ...seen, head, blob: theirs.id }, edited, fields, {
    refused: { errors: { form }, status: 409, headers: {} },
    above: html`${theirText(asked, theirs, ref)}<h2>Your text</h2><p>Put into it what you want to keep of theirs. Saved on top, it replaces their text.</p>`,
    title: 'Changed meanwhile:',
    button: 'Save on top',
  });
}

function theirText({ repository }: PageRequest, theirs: FileContents, ref: string): Html {
  const editable = editableText(theirs.content);
  const link = html`<a href="${placeAddress(repository, 'blob', ref, theirs.place.names)}">Their file</a>`;
  if ('why' in editable) return html`<p>Their file is not shown here: ${editable.why}. ${link}</p>`;
  return shownText({ name: 'theirs', label: 'Their text', value: editable.text });
}
