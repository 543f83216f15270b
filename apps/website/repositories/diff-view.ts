/**
 * What changed, file by file, each in a part that folds, with a list of the files beside it.
 *
 * Invariants: every file is on a page, and each of its lines. Files that a page cannot hold are folded, with their
 * counts and the way to their lines. What a bound left out is said.
 */
import type { ChangedFile, Diff, DiffBound, FileVersion } from '../../../core/git/diff/diff.ts';
import { entryType } from '../../../core/use-cases/reading/entry-at-path.ts';
import { namesIn } from '../../../core/use-cases/reading/list-tree.ts';
import { type Content, type Html, html, NOTHING } from '../layout/html.ts';
import { turnsOf } from '../layout/turns.ts';
import { LONG_PAGE_ROOM, type Weight } from '../rendering/weight.ts';
import { placeAddress } from './addresses.ts';
import { CONTEXTS, type DiffPage, PAGE_FILES_MAX, queryOf } from './diff-page.ts';
import {
  coloursOf,
  type DiffReader,
  heldBytesOf,
  hunksWithin,
  lastName,
  nameOf,
  type Plan,
  type PlannedFile,
  planOf,
  type ShownDiff,
} from './diff-plan.ts';
import { PAGE_WHOLE_BYTES_MAX } from './limits.ts';
import { mediaKind } from './raw.ts';
import { laterDiff } from './rendered.ts';
import { counted, shownName } from './shown-text.ts';

/** `beside` is what else the page shows. */
export async function diffView(
  asked: DiffReader,
  shown: ShownDiff,
  beside: Weight = { bytes: 0, elements: 0 },
): Promise<Html> {
  const { diff, page } = shown;
  if (diff.filesTotal === 0) return html`<p class="soft">No file differs.</p>`;
  const room = {
    bytes: LONG_PAGE_ROOM.bytes - beside.bytes,
    elements: LONG_PAGE_ROOM.elements - beside.elements,
  };
  const plan = await planOf(shown, room, turnsOf(asked.visit.signal));
  const coloured = await coloursOf(asked, shown, plan, room);
  const files = laterDiff(heldBytesOf(plan.files), coloured, () => filesOf(asked, shown, plan));
  const isListed = page.file === null && plan.files.length > 1;
  return html`${summaryOf(shown)}${boundsNote(shown)}<div class="diffs${page.isSplit && ' spread'}${isListed && ' listed'}">${
    isListed && fileList(shown, plan)
  }<div class="stack">${files}</div></div>${filesPager(shown, plan)}`;
}

/** The changed lines of the one file of a diff, plain, as many as a preview has room for. */
export function oneFileView({ files: [file], filesTotal }: Diff): Html {
  if (file === undefined) {
    return html`<p class="soft">${filesTotal === 0 ? 'Nothing is changed.' : 'The comparison took too long.'}</p>`;
  }
  const room = { bytes: PAGE_WHOLE_BYTES_MAX, elements: LONG_PAGE_ROOM.elements };
  const used = { bytes: 0, elements: 0 };
  const { hunks, lines, isCut } = hunksWithin(file.hunks, false, { used, room });
  const planned = { file, index: 0, hunks, lines, start: 0 };
  const after = html`</div>${(isCut || file.cut) && html`<p class="empty">More lines changed than are shown.</p>`}</details>`;
  return laterDiff(heldBytesOf([planned]), null, () =>
    hunks.length === 0
      ? [
          {
            before: html`${headOf(planned)}<p class="empty">${noLines(0, file)}</p></details>`,
            rows: null,
            after: NOTHING,
          },
        ]
      : [
          {
            before: html`${headOf(planned)}${linesHead(file, false)}`,
            rows: { file: 0, hunks, isSplit: false, start: 0 },
            after,
          },
        ],
  );
}

function summaryOf({ diff, page, address }: ShownDiff): Html {
  const link = (other: Partial<DiffPage>, label: string): Html =>
    html`<a href="${address(queryOf(page, other))}">${label}</a>`;
  const { ignoresWhiteSpace, isSplit } = page;
  const views = html`<span class="end row">${link(
    { ignoresWhiteSpace: !ignoresWhiteSpace, linesBefore: 0 },
    ignoresWhiteSpace ? 'Show white space' : 'Ignore white space',
  )}${link({ isSplit: !isSplit, linesBefore: 0 }, isSplit ? 'One column' : 'Side by side')}${
    page.file !== null && html`<a class="button" href="${address(queryOf(page, { file: null }))}">All files</a>`
  }</span>`;
  const counts = ['additions', 'deletions'] as const;
  const [added, deleted] = counts.map((kind) => sumOf(diff, kind).toLocaleString('en-US'));
  return html`<div class="row"><h2>${countOf(diff)}</h2> <span class="plus">+${added ?? ''}</span> <span class="minus">−${
    deleted ?? ''
  }</span>${views}</div>`;
}

function countOf({ files, filesTotal }: Diff): string {
  return filesTotal === null ? `More than ${counted(files.length, 'file')}` : counted(filesTotal, 'file');
}

function sumOf({ files }: Diff, kind: 'additions' | 'deletions'): number {
  return files.reduce((sum, file) => sum + (file[kind] ?? 0), 0);
}

/** What is folded is not left out: only what cannot be opened on this or another page is said. */
const BOUNDS: Readonly<Partial<Record<DiffBound, string>>> = {
  bytes: 'The differences are longer than is read for a page: open a file to see its lines.',
  time: 'The comparison took too long and was ended: what it had found by then is shown.',
};

function boundsNote({ diff, page }: ShownDiff): Content {
  const said = diff.truncated.map((bound) => (bound === 'bytes' && page.file !== null ? undefined : BOUNDS[bound]));
  return said.map((text) => text !== undefined && html`<p class="note">${text}</p>`);
}

/** A file that is folded opens alone, in one step. */
function fileList({ page, address }: ShownDiff, { files }: Plan): Html {
  const entries = files.map(({ file, index, hunks }) => {
    const leads = hunks === null ? address(queryOf(page, { file: index, linesBefore: 0 })) : `#d${index}`;
    return html`<li><a href="${leads}"><bdi>${shownName(file.path)}</bdi></a> ${countsOf(file)}</li>`;
  });
  return html`<nav class="files" aria-label="Changed files"><ul>${entries}</ul></nav>`;
}

function countsOf({ binary, additions, deletions }: ChangedFile): Content {
  if (binary || additions === null || deletions === null || additions + deletions === 0) return null;
  return html`<span class="plus">+${additions}</span> <span class="minus">−${deletions}</span>`;
}

function filesPager({ diff, page, address }: ShownDiff, { files }: Plan): Content {
  if (page.file !== null) return null;
  const { filesBefore } = page;
  const end = filesBefore + files.length;
  const hasMore = diff.filesTotal === null ? files.length < diff.files.length : end < diff.filesTotal;
  if (filesBefore === 0 && !hasMore) return null;
  const link = (to: number, rel: string, label: string): Html =>
    html`<a class="button" rel="${rel}" href="${address(queryOf(page, { filesBefore: to }))}">${label}</a>`;
  return html`<nav class="row pager" aria-label="Pages of files">${
    filesBefore > 0 && link(Math.max(0, filesBefore - PAGE_FILES_MAX), 'prev', 'Files before')
  }<span class="soft">Files ${(filesBefore + 1).toLocaleString('en-US')} to ${end.toLocaleString('en-US')}</span>${
    hasMore && link(end, 'next', 'Next files')
  }</nav>`;
}

function* filesOf(asked: DiffReader, shown: ShownDiff, { files }: Plan) {
  const { isSplit } = shown.page;
  for (const planned of files) {
    const { file, index, hunks, start } = planned;
    const head = headOf(planned);
    if (hunks === null) {
      yield { before: html`${head}${foldedNote(shown, planned)}</details>`, rows: null, after: NOTHING };
      continue;
    }
    const above = html`${head}${toolsOf(asked, shown, planned)}`;
    const below = html`${belowLines(shown, planned)}</details>`;
    if (hunks.length === 0) {
      yield { before: html`${above}${withoutLines(asked, shown, file)}`, rows: null, after: below };
      continue;
    }
    const before = html`${above}${linesHead(file, isSplit)}`;
    yield { before, rows: { file: index, hunks, isSplit, start }, after: html`</div>${below}` };
  }
}

function headOf({ file, index, hunks }: PlannedFile): Html {
  return html`<details class="box file" id="d${index}"${hunks !== null && html` open`}><summary><code><bdi>${nameOf(
    file,
  )}</bdi></code>${STATUSES[file.status]}<span class="end">${countsOf(file)}</span></summary>`;
}

function linesHead({ path }: ChangedFile, isSplit: boolean): Html {
  return html`<div class="diff${isSplit && ' split'}" tabindex="0" role="group" aria-label="Changes of ${shownName(path)}">`;
}

const STATUSES: Readonly<Record<ChangedFile['status'], Content>> = {
  added: html` <span class="mark good">new</span>`,
  deleted: html` <span class="mark bad">deleted</span>`,
  modified: null,
  renamed: html` <span class="mark">renamed</span>`,
  typechange: html` <span class="mark warn">another type</span>`,
};

/** The script diff.js opens such a link in the place of the file. */
function inPlace(href: string, label: string): Html {
  return html`<a data-in-place href="${href}">${label}</a>`;
}

function foldedNote({ page, address }: ShownDiff, { file, index }: PlannedFile): Html {
  const { additions, deletions } = file;
  const said =
    additions === null || deletions === null
      ? 'Its changed lines were not counted.'
      : `It has ${counted(additions + deletions, 'changed line')}, for which this page has no room.`;
  const alone = address(queryOf(page, { file: index, linesBefore: 0 }));
  return html`<p class="empty">${said} ${inPlace(alone, 'Show its changes')}</p>`;
}

/** The addresses of the two versions. */
function sidesOf(
  { repository }: DiffReader,
  { before, after, earlier = repository }: ShownDiff,
  file: ChangedFile,
  kind: 'blob' | 'raw',
) {
  const sides = [
    { name: 'before', version: file.before, commit: before, path: file.previousPath ?? file.path, at: earlier },
    { name: 'after', version: file.after, commit: after, path: file.path, at: repository },
  ] as const;
  return sides.flatMap(({ name, version, commit, path, at }) => {
    if (version === null || commit === null) return [];
    return [{ name, version, address: placeAddress(at, kind, commit, namesIn(path)) }];
  });
}

const VIEWS = { before: 'View file before', after: 'View file' };

function toolsOf(asked: DiffReader, shown: ShownDiff, { file, index }: PlannedFile): Html {
  const { page, address } = shown;
  const views = sidesOf(asked, shown, file, 'blob').map(
    ({ name, version, address: view }) => isOfBlob(version) && html`<a href="${view}">${VIEWS[name]}</a>`,
  );
  const wider = CONTEXTS.find((context) => context > page.context);
  const hasContext = file.before !== null && file.after !== null && file.hunks.length > 0;
  const context =
    hasContext &&
    wider !== undefined &&
    inPlace(address(queryOf(page, { file: index, context: wider, linesBefore: 0 })), 'More context');
  return html`<p class="row tools">${modesOf(file)}<span class="end row">${context}${views}</span></p>`;
}

function isOfBlob({ mode }: FileVersion): boolean {
  return entryType(mode) !== 'submodule';
}

function modesOf({ before, after }: ChangedFile): Content {
  if (before === null || after === null || before.mode === after.mode) return null;
  return html`<span class="soft">Mode ${before.mode} → ${after.mode}</span>`;
}

/** An image before and after, or why there are no lines. */
function withoutLines(asked: DiffReader, shown: ShownDiff, file: ChangedFile): Html {
  const isImage = mediaKind(lastName(file.path)) === 'image' && file.binary;
  if (isImage) {
    const figures = sidesOf(asked, shown, file, 'raw').map(
      ({ name, address }) =>
        html`<figure><figcaption class="soft">${name === 'before' ? 'Before' : 'After'}</figcaption><img src="${address}" alt="${shownName(file.path)} ${name}" loading="lazy"></figure>`,
    );
    return html`<div class="image-box images">${figures}</div>`;
  }
  return html`<p class="empty">${noLines(shown.page.linesBefore, file)}</p>`;
}

function noLines(linesBefore: number, { status, binary, cut, before, after }: ChangedFile): string {
  if (binary) return 'A binary file.';
  if (cut) return 'Its lines could not be read.';
  if (linesBefore > 0) return 'It has no more changed lines.';
  if (before !== null && after !== null && before.id !== after.id) return 'Only white space changed.';
  if (status === 'renamed') return 'Only its name changed.';
  return before?.mode === after?.mode
    ? 'An empty file.'
    : before === null || after === null
      ? 'An empty file.'
      : 'Only its mode changed.';
}

/** The way to the lines that a page of one file has no room for. */
function belowLines({ page, address }: ShownDiff, { file, lines, hunks }: PlannedFile): Content {
  const guessed = file.hunks.some((hunk) => hunk.lines.some((line) => line.guessed));
  const read = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  const hasMore = page.file !== null && hunks !== null && lines > 0 && (lines < read || file.cut);
  const last = page.linesBefore + lines;
  const pages =
    page.file !== null &&
    (hasMore || page.linesBefore > 0) &&
    html`<nav class="row pager" aria-label="Lines of the file">${
      page.linesBefore > 0 &&
      html`<a class="button" href="${address(queryOf(page, { linesBefore: 0 }))}">First lines</a>`
    }<span class="soft">Lines ${(page.linesBefore + 1).toLocaleString('en-US')} to ${last.toLocaleString('en-US')} of the difference</span>${
      hasMore &&
      html`<a class="button" rel="next" href="${address(queryOf(page, { linesBefore: last }))}">Next lines</a>`
    }</nav>`;
  return html`${
    guessed && html`<p class="empty">Lines that are not UTF-8 are shown as Windows-1252, by a guess.</p>`
  }${pages}`;
}
