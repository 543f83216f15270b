/**
 * Previews of the text in a form: rendered as Markdown, and as the diff against what its writer saw.
 *
 * Invariants: nothing is stored, and no ref moves. A preview takes no more than the form that saves the text: the diff
 * is that of a commit that is decided and checked as a push, and then left.
 */
import type { WantedChange } from '../../../core/use-cases/pushing/decide-commit.ts';
import { tryCommit } from '../../../core/use-cases/pushing/write-commit.ts';
import type { KnownDiffs } from '../../../core/use-cases/reading/read-diff.ts';
import { branchText } from '../../../core/use-cases/reading/resolve-ref.ts';
import { CHANGE_FAULTS } from '../../front-door/texts/change-faults.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { type Fields, sentence } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { notFound } from '../layout/problems.ts';
import { type RefusedForm, refusedForm, wrongForm } from '../layout/refused.ts';
import { oneFileView } from './diff-view.ts';
import { sentEdit } from './edit.ts';
import { bytesOfText } from './editable-text.ts';
import { showRepositoryPage } from './frame.ts';
import { PAGE_WHOLE_BYTES_MAX } from './limits.ts';
import { sentFile } from './new-file.ts';
import type { PageRequest } from './page-request.ts';
import { shortenedReadme } from './readme.ts';
import { renderedMarkdown } from './rendered.ts';
import { changeOf, type SentText } from './sent-text.ts';
import { pathText, shownName } from './shown-text.ts';
import { accountSignature, headNow, unwritten } from './writing.ts';

type Preview = { readonly shown: Html } | { readonly refused: RefusedForm };

/** Takes the form of editing and that of creating a file. */
export async function showPreview(asked: PageRequest, fields: Fields): Promise<SiteAnswer> {
  const sent = fields.has('blob') ? sentEdit(fields) : sentFile(fields);
  const shows = fields.text('show');
  if (sent === null || (shows !== 'markdown' && shows !== 'diff')) return notFound(asked.visit);
  const { change, errors } = changeOf(sent);
  if (Object.keys(errors).length > 0) return previewPage(asked, sent, { refused: wrongForm(errors) });
  const preview = shows === 'diff' ? await diffOf(asked, sent, change) : await markdownOf(asked, sent);
  return previewPage(asked, sent, preview);
}

/** The script shows what is in the class `preview`. */
function previewPage(asked: PageRequest, { names }: SentText, preview: Preview): SiteAnswer {
  const [shown, status] =
    'refused' in preview ? [refusal(preview.refused), preview.refused.status] : [preview.shown, 200];
  const content = html`<h1>Preview of <bdi>${shownName(names.at(-1) ?? '')}</bdi></h1><div class="preview"><h2 class="unseen">Preview</h2>${shown}</div>`;
  const title = `Preview of ${pathText(names)}`;
  return showRepositoryPage(asked, { title, tab: 'Code', status }, content);
}

function refusal({ errors }: RefusedForm): Html {
  const lines = Object.values(errors).map((text) => text !== undefined && html`<p>${sentence(text)}</p>`);
  return html`<div class="note bad" role="alert">${lines}</div>`;
}

async function markdownOf(asked: PageRequest, { names, target, edited }: SentText): Promise<Preview> {
  const { context, repository } = asked;
  const { text } = edited;
  if (text === '') return { shown: html`<p class="soft">This file is empty.</p>` };
  // Rendered texts are kept by their ids.
  const id = context.newObjects.name({ type: 'blob', bytes: bytesOfText(edited) });
  if (id === null) return { refused: wrongForm({ text: CHANGE_FAULTS['content-refused'] }) };
  const source = { id, text, ref: branchText(repository, target.branch), names };
  const render = (part: typeof source): Promise<Html | null> => renderedMarkdown(asked, part);
  const { markup, isWhole } = await shortenedReadme(render, source, PAGE_WHOLE_BYTES_MAX);
  return {
    shown: html`<section class="box">${markup}</section>${!isWhole && html`<p class="soft">Only the start is shown.</p>`}`,
  };
}

/** Nobody asks for the diff of a commit again that was left. */
const NO_KNOWN_DIFFS: KnownDiffs = { get: () => undefined, set: () => undefined };

/**
 * The diff of the commit on the branch as its writer saw it. Where that has moved since, it is one on a branch that
 * begins there.
 */
async function diffOf(asked: PageRequest, { target }: SentText, change: WantedChange): Promise<Preview> {
  const { context, visit, repository } = asked;
  const { branch, head } = target;
  const isThere = headNow(asked, branch) === head;
  const author = accountSignature(asked);
  const wanted = {
    repository,
    branch: isThere ? branch : `preview-${context.ids.next()}`,
    expected: isThere ? head : null,
    start: isThere ? null : head,
    message: 'Preview\n',
    author,
    committer: author,
    changes: [change],
    allowEmpty: true,
    key: null,
    signal: visit.signal,
  };
  const known = { ...context, knownDiffs: NO_KNOWN_DIFFS };
  const tried = await tryCommit(known, await visit.origin(repository), wanted, {});
  if ('refused' in tried) return { refused: refusedForm(tried.refused, {}) };
  if (!('fault' in tried)) return { shown: oneFileView(tried.diff) };
  const failed = unwritten(tried.fault, [change], { path: 'path', branch: 'form' });
  return {
    refused: 'form' in failed ? failed.form : { ...wrongForm({ path: CHANGE_FAULTS['blob-moved'] }), status: 409 },
  };
}
