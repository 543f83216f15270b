/** Searches in the files of a ref: lines that hold a text, each with those around it. */
import type { CodeMatch } from '../../../core/git/grep-lines.ts';
import { decodeUtf8Lossy, encodeUtf8 } from '../../../core/git/utf8.ts';
import { LINKED_NAME_BYTES_MAX, PAGE_COMMITS_MAX } from '../../../core/kernel/limits.ts';
import type { Refusal } from '../../../core/kernel/refusal.ts';
import type { ContentsPath } from '../../../core/use-cases/reading/entry-at-path.ts';
import { namesIn } from '../../../core/use-cases/reading/list-tree.ts';
import { findRef, idNamed, isShortId, shortNameOf } from '../../../core/use-cases/reading/resolve-ref.ts';
import { type CodeSearch, SEARCH_TEXT_LENGTH_MAX, searchCode } from '../../../core/use-cases/reading/search-code.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { refusalText } from '../../front-door/texts/refusals.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { checkBox, errorSummary, type FieldErrors, hiddenField, textField } from '../layout/forms.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { separatorOf } from '../rendering/csv-rows.ts';
import { markInvisible } from '../rendering/invisible.ts';
import { isMarkdown } from '../rendering/language.ts';
import { filesAddress, pathField, placeAddress, repositoryAddress, searchAddress, shownAddress } from './addresses.ts';
import { momentField } from './as-of.ts';
import { pathLink, refAsked, refLink, shownPath } from './files.ts';
import { showRepositoryPage } from './frame.ts';
import { FOUND_BYTES_MAX } from './limits.ts';
import { finding, marked } from './marked.ts';
import { type PageRequest, showRefusal } from './page-request.ts';
import { type ListPage, numberedTitle, pageAsked, pager, rowsWithin } from './pager.ts';
import { mediaKind } from './raw.ts';
import { counted, shownName } from './shown-text.ts';

interface Asked {
  readonly ref: string;
  readonly text: string;
  readonly isRegex: boolean;
  /** What the form has. */
  readonly path: string;
}

export async function showSearch(asked: PageRequest): Promise<SiteAnswer> {
  const { context, repository, visit } = asked;
  const query = visit.url.searchParams;
  const wanted: Asked = {
    ref: refAsked(asked),
    // Spaces at its ends are a part of it.
    text: (query.get('q') ?? '').slice(0, SEARCH_TEXT_LENGTH_MAX).toWellFormed(),
    isRegex: query.has('regex'),
    path: (query.get('path') ?? '').trim(),
  };
  const page = pageAsked(visit, PAGE_COMMITS_MAX);
  if (wanted.text === '') return show(asked, wanted, page, {});
  const found = await searchCode(context, repository, {
    ...wanted,
    path: pathOf(wanted.path),
    page,
    signal: visit.signal,
  });
  if (!('refused' in found)) return show(asked, wanted, page, { results: resultsOf(asked, wanted, found, page) });
  const wrong = wrongField(found.refused);
  return wrong === null
    ? showRefusal(asked, found.refused, (id) => searchAddress(repository, id, queryOf(wanted)))
    : show(asked, wanted, page, wrong);
}

/** Returns what the form says of a refusal that one of its fields caused. */
function wrongField(refused: Refusal): Outcome | null {
  const { code } = refused;
  if (code === 'regex-invalid' || code === 'regex-unavailable') {
    return { status: 422, errors: { q: refusalText(refused) } };
  }
  if (code === 'path-not-found') return { status: 404, errors: { path: 'Nothing has this path at this commit' } };
  return code === 'file-too-large' ? { status: 403, errors: { path: 'This file is too large to search' } } : null;
}

/** A path as people write it: a slash at its end is of a folder. */
function pathOf(text: string): ContentsPath {
  const folder = text.endsWith('/');
  const written = folder ? text.slice(0, -1) : text;
  return written === '' ? { names: [], folder: true } : { names: namesIn(encodeUtf8(written)), folder };
}

interface Outcome {
  readonly status?: number;
  readonly errors?: FieldErrors;
  readonly results?: Content;
}

function show(asked: PageRequest, wanted: Asked, page: ListPage, outcome: Outcome): SiteAnswer {
  const { status = 200, errors = {}, results = null } = outcome;
  const content = html`<h1>Search</h1>${errorSummary(errors)}${form(asked, wanted, errors)}${results}`;
  const options = { title: numberedTitle(titleOf(wanted), page), tab: 'Search', ref: wanted.ref, status } as const;
  return showRepositoryPage(asked, options, content);
}

function titleOf({ ref, text, isRegex, path }: Asked): string {
  const where = path === '' ? shownName(ref) : `${shownName(path)} at ${shownName(ref)}`;
  return text === '' ? `Search in ${where}` : `${isRegex ? 'Expression ' : ''}“${shownName(text)}” in ${where}`;
}

function form({ repository }: PageRequest, { ref, text, isRegex, path }: Asked, errors: FieldErrors): Html {
  const named = findRef(repository, ref);
  // A repository without commits has no other page to search, and a tag may lead to a tree, which has no commits.
  const isThere = named !== null || idNamed(ref) !== null || isShortId(repository, ref);
  const hasCommits = isThere && (named === null || shortNameOf('branch', named.fullName) !== undefined);
  const commits = hasCommits && html`<a href="${placeAddress(repository, 'commits', ref, [])}">Search commits</a>`;
  const others = html`<span class="end row"><a href="${filesAddress(repository, ref)}">Find a file by its path</a>${commits}</span>`;
  return html`<form class="box part filters" action="${repositoryAddress(repository)}/search" role="search">${momentField(
    repository,
  )}${hiddenField('ref', ref)}${textField({
    name: 'q',
    label: 'Text in the files',
    value: text,
    error: errors['q'],
    verbatim: true,
    autocomplete: 'off',
    lengthMax: SEARCH_TEXT_LENGTH_MAX,
  })}${textField({
    name: 'path',
    label: 'Below this folder or file (optional)',
    value: path,
    error: errors['path'],
    verbatim: true,
    autocomplete: 'off',
  })}<div class="row">${checkBox({
    name: 'regex',
    value: 'yes',
    label: 'Regular expression',
    checked: isRegex,
  })}<button class="button">Search</button>${isThere && others}</div></form>`;
}

function resultsOf(
  asked: PageRequest,
  searched: Asked,
  { matches: { items, total }, isComplete, filesSearched }: CodeSearch,
  wanted: ListPage,
): Html {
  const { ref, text, isRegex } = searched;
  const pattern = isRegex ? null : finding(markInvisible(text), false);
  const { rows, page } = rowsWithin(items, wanted, (match) => fileOf(asked, ref, [match], pattern), FOUND_BYTES_MAX);
  const files = new Map<string, CodeMatch[]>();
  for (const { item } of rows) {
    const key = pathField([item.path]);
    const ofFile = files.get(key);
    if (ofFile === undefined) files.set(key, [item]);
    else ofFile.push(item);
  }
  const searchedFiles = counted(filesSearched, 'file was searched', 'files were searched');
  return html`<p class="soft" role="status">${counted(total, 'match', 'matches')} at ${refLink(asked, ref)}. ${searchedFiles}${
    isComplete && total === 0 && '; the case of letters counts'
  }.</p>${
    !isComplete &&
    html`<p class="note">Not all files were searched: a search ends after 1,000 matches or 5 seconds of work, and leaves out very large texts. A longer text, or a folder, narrows it.</p>`
  }${[...files.values()].map((ofFile) => fileOf(asked, ref, ofFile, pattern))}${pager(
    searchAddress(asked.repository, ref),
    page,
    total,
    { query: queryOf(searched) },
  )}`;
}

/** What the address of a search has beside the ref. */
function queryOf({ text, isRegex, path }: Asked): Readonly<Record<string, string>> {
  return { q: text, ...(isRegex ? { regex: 'yes' } : {}), ...(path === '' ? {} : { path }) };
}

/** The matches of one file. */
function fileOf(asked: PageRequest, ref: string, matches: readonly CodeMatch[], pattern: RegExp | null): Html {
  const [first] = matches;
  if (first === undefined) throw new TypeError('A file without matches is not shown');
  const { path } = first;
  const isLinked = path.length <= LINKED_NAME_BYTES_MAX;
  const line = ([number, { text, isMatch }]: readonly [number, ShownLine]): Html => {
    const shown = markInvisible(text);
    // Only the lines that match are links, so that few stand between one file and the next.
    const link =
      isLinked && isMatch
        ? html`<a href="${lineAddress(asked.repository, ref, namesIn(path), number)}">${number}</a>`
        : html`<span class="unlinked">${number}</span>`;
    return html`${link}${isMatch ? marked(shown, pattern) : shown}
`;
  };
  const groups = groupsOf(matches).map(
    (lines) => html`<pre class="lines" tabindex="0"><code>${lines.map(line)}</code></pre>`,
  );
  return html`<section class="box found"><header><h2><bdi>${pathLink(asked, ref, path, shownPath(path))}</bdi></h2></header>${groups}</section>`;
}

/** Lines that a window of a large file shows above the one that is linked. */
const LINES_ABOVE = 20;

function lineAddress(repository: FoundRepository, ref: string, names: readonly Uint8Array[], line: number): string {
  const name = decodeUtf8Lossy(names.at(-1) ?? new Uint8Array());
  const query = {
    // What is not shown as its lines by itself.
    ...(isMarkdown(name) || mediaKind(name) === 'image' || separatorOf(name) !== null ? { view: 'source' } : {}),
    ...(line > LINES_ABOVE ? { from: String(line - LINES_ABOVE) } : {}),
  };
  return `${shownAddress(repository, placeAddress(repository, 'blob', ref, names), query)}#L${line}`;
}

interface ShownLine {
  readonly text: string;
  readonly isMatch: boolean;
}

/** Returns runs of lines that follow each other, each line once. */
function groupsOf(matches: readonly CodeMatch[]): readonly (readonly (readonly [number, ShownLine])[])[] {
  const lines = new Map<number, ShownLine>();
  const add = (number: number, text: string, isMatch: boolean): void => {
    if (isMatch || !lines.has(number)) lines.set(number, { text, isMatch });
  };
  for (const { line, text, before, after } of matches) {
    for (const [index, other] of before.entries()) add(line - before.length + index, other, false);
    add(line, text, true);
    for (const [index, other] of after.entries()) add(line + 1 + index, other, false);
  }
  const groups: (readonly [number, ShownLine])[][] = [];
  for (const [number, line] of [...lines].sort(([a], [b]) => a - b)) {
    const last = groups.at(-1);
    if (last?.at(-1)?.[0] === number - 1) last.push([number, line]);
    else groups.push([[number, line]]);
  }
  return groups;
}
