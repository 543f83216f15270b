/**
 * Moving and deleting files and folders at the head of a branch.
 *
 * Invariants: what is moved or deleted is what its writer saw, also of a folder: the form holds its id.
 */
import { decodeUtf8, encodeUtf8 } from '../../../core/git/utf8.ts';
import { type ObjectId, parseObjectId } from '../../../core/kernel/ids.ts';
import type { WantedChange } from '../../../core/use-cases/pushing/decide-commit.ts';
import type { RefPath } from '../../../core/use-cases/reading/ref-path.ts';
import { branchText } from '../../../core/use-cases/reading/resolve-ref.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { type Fields, hiddenField, NO_FIELDS, textField } from '../layout/forms.ts';
import { html, NOTHING } from '../layout/html.ts';
import { tooOftenProblem } from '../layout/problems.ts';
import { NEW_FORM, type RefusedForm, wrongForm } from '../layout/refused.ts';
import { namesOfField, pathField, pathOfNames, placeAddress } from './addresses.ts';
import { contentsAt } from './contents-at.ts';
import { notFoundHere, showRepositoryProblem } from './frame.ts';
import { type PageRequest, showRefusal } from './page-request.ts';
import { shownName } from './shown-text.ts';
import {
  branchShown,
  headNow,
  leadToWritten,
  type SeenBranch,
  showWriting,
  targetErrors,
  targetFields,
  targetOf,
  writeChanges,
} from './writing.ts';

type Doing = 'move' | 'remove';

interface SeenEntry extends SeenBranch {
  readonly names: RefPath['names'];
  /** The id of the file, or of the folder's tree. */
  readonly id: ObjectId;
}

export function showMove(asked: PageRequest, place: RefPath): Promise<SiteAnswer> {
  return show(asked, place, 'move');
}

export function showRemove(asked: PageRequest, place: RefPath): Promise<SiteAnswer> {
  return show(asked, place, 'remove');
}

async function show(asked: PageRequest, { ref, names }: RefPath, doing: Doing): Promise<SiteAnswer> {
  const seen = branchShown(asked, ref);
  const contents = await contentsAt(asked, { ref, names });
  if ('refused' in contents) return showRefusal(asked, contents.refused);
  if (seen === null || names.length === 0) return showRefusal(asked, { code: 'path-not-found' });
  return showForm(asked, { ...seen, names, id: contents.id }, doing, NO_FIELDS);
}

function showForm(
  asked: PageRequest,
  seen: SeenEntry,
  doing: Doing,
  fields: Fields,
  refused: RefusedForm = NEW_FORM,
): SiteAnswer {
  const { errors } = refused;
  const { names, id } = seen;
  const name = shownName(names.at(-1) ?? '');
  const moves = doing === 'move';
  const to = textField({
    name: 'to',
    label: 'New path',
    value: fields.has('to') ? fields.text('to') : plainPath(names),
    hint: 'From the root of the repository. Use slashes for folders: those that are missing are created.',
    error: errors['to'],
    required: true,
    autocomplete: 'off',
    verbatim: true,
  });
  const message = moves ? `Move ${name}` : `Delete ${name}`;
  return showWriting(asked, {
    action: doing,
    title: moves ? 'Move' : 'Delete',
    refused,
    seen,
    name,
    back: placeAddress(asked.repository, 'tree', branchText(asked.repository, seen.branch), names),
    button: moves ? 'Move' : 'Delete',
    grave: !moves,
    content: html`${hiddenField('path', pathField(names))}${hiddenField('id', id)}${moves ? to : NOTHING}${targetFields(
      seen,
      { message, fields, errors },
    )}`,
  });
}

/** A field of a form holds no line ends, and what it shows should be what it holds. */
function plainPath(names: RefPath['names']): string {
  const text = decodeUtf8(pathOfNames(names));
  return text === null || shownName(text) !== text ? '' : text;
}

export function saveMove(asked: PageRequest, fields: Fields): Promise<SiteAnswer> {
  return save(asked, fields, 'move');
}

export function saveRemove(asked: PageRequest, fields: Fields): Promise<SiteAnswer> {
  return save(asked, fields, 'remove');
}

async function save(asked: PageRequest, fields: Fields, doing: Doing): Promise<SiteAnswer> {
  const target = targetOf(fields);
  const names = namesOfField(fields.text('path'));
  const id = parseObjectId(fields.text('id'));
  if (target === null || names === null || id === null) return notFoundHere(asked);
  const seen = { branch: target.branch, head: target.head, names, id };
  const to = fields.text('to');
  const moves = doing === 'move';
  const errors = { ...(moves && to === '' ? { to: 'Say where it goes' } : {}), ...targetErrors(target) };
  if (Object.keys(errors).length > 0) return showForm(asked, seen, doing, fields, wrongForm(errors));
  const about = { path: pathOfNames(names), expected: id };
  const change: WantedChange = moves
    ? { ...about, action: 'move', to: encodeUtf8(to) }
    : { ...about, action: 'delete' };
  const written = await writeChanges(asked, target, [change]);
  if ('exceeded' in written) return showRepositoryProblem(asked, tooOftenProblem(written.exceeded));
  if ('form' in written) return showForm(asked, seen, doing, fields, written.form);
  if ('moved' in written) return showMoved(asked, seen, doing, fields);
  const name = shownName(names.at(-1) ?? '');
  if (!moves) {
    return leadToWritten(asked, written, { names: names.slice(0, -1), text: `${name} is deleted` });
  }
  const there = to.split('/').map(encodeUtf8);
  return leadToWritten(asked, written, { names: there, text: `${name} is moved` });
}

/** Somebody else changed it since the writer saw it. */
async function showMoved(asked: PageRequest, seen: SeenEntry, doing: Doing, fields: Fields): Promise<SiteAnswer> {
  const now = await contentsAt(asked, { ref: branchText(asked.repository, seen.branch), names: seen.names });
  if ('refused' in now) {
    const form = 'It was deleted or moved since this page was opened. Nothing is left to change.';
    return showForm(asked, seen, doing, fields, { errors: { form }, status: 409, headers: {} });
  }
  const form = 'Somebody changed it since this page was opened. Look at it before you send the form again.';
  const again = { ...seen, head: headNow(asked, seen.branch), id: now.id };
  return showForm(asked, again, doing, fields, { errors: { form }, status: 409, headers: {} });
}
