/**
 * Finds a file of a ref by a part of its path. The script go-to-file.js shows this page's results while somebody types.
 */
import type { ListedFile } from '../../../core/git/file-list.ts';
import { decodeUtf8Lossy } from '../../../core/git/utf8.ts';
import { LINKED_NAME_BYTES_MAX, PAGE_COMMITS_MAX } from '../../../core/kernel/limits.ts';
import { findFiles } from '../../../core/use-cases/reading/find-files.ts';
import { namesIn } from '../../../core/use-cases/reading/list-tree.ts';
import { branchText } from '../../../core/use-cases/reading/resolve-ref.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { hiddenField } from '../layout/forms.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { markInvisible } from '../rendering/invisible.ts';
import { filesAddress, placeAddress, repositoryAddress, searchAddress } from './addresses.ts';
import { momentField } from './as-of.ts';
import { showRepositoryPage } from './frame.ts';
import { FOUND_BYTES_MAX } from './limits.ts';
import { finding, marked } from './marked.ts';
import { type PageRequest, showRefusal } from './page-request.ts';
import { numberedTitle, pageAsked, pager, rowsWithin } from './pager.ts';
import { nothingFound, SEARCH_LENGTH_MAX, searchAsked } from './refs-search.ts';
import { counted, NAME_LENGTH_MAX, shownName } from './shown-text.ts';

export async function showFiles(asked: PageRequest): Promise<SiteAnswer> {
  const { context, repository, visit } = asked;
  const ref = refAsked(asked);
  const text = searchAsked(asked);
  const wanted = pageAsked(visit, PAGE_COMMITS_MAX);
  const query: Readonly<Record<string, string>> = text === '' ? {} : { q: text };
  const found = await findFiles(context, repository, { ref, text, page: wanted, signal: visit.signal });
  if ('refused' in found) return showRefusal(asked, found.refused, (id) => filesAddress(repository, id, query));
  const { items, total } = found.files;
  const pattern = text === '' ? null : finding(text, true);
  const { rows, page } = rowsWithin(items, wanted, (file) => rowOf(asked, ref, file, pattern), FOUND_BYTES_MAX);
  const address = filesAddress(repository, ref);
  const list = html`<section class="box" aria-label="Files"><ol class="paths">${rows.map(({ row }) => row)}</ol></section>`;
  const count = html`${counted(total, 'file')}${text !== '' && html` with “${shownName(text)}”`} in ${refLink(asked, ref)}`;
  const more = pager(address, page, total, { query });
  const content = html`<h1>Go to file</h1>${form(asked, ref, text)}<p class="soft" role="status" id="count">${count}</p><div id="found" class="stack">${
    total > 0 ? list : nothingFound(address, text, 'files')
  }${more}</div><p><a href="${searchAddress(repository, ref)}">Search in the files instead</a></p>`;
  const title = text === '' ? `Files of ${shownName(ref)}` : `Files with “${shownName(text)}” of ${shownName(ref)}`;
  return showRepositoryPage(asked, { title: numberedTitle(title, page), tab: 'Code', ref }, content);
}

/** The ref that the address of a search names; without one the default branch. */
export function refAsked({ repository, visit }: Pick<PageRequest, 'repository' | 'visit'>): string {
  const ref = (visit.url.searchParams.get('ref') ?? '').trim();
  return ref === '' ? branchText(repository, repository.defaultBranch) : ref;
}

export function refLink({ repository }: Pick<PageRequest, 'repository'>, ref: string): Html {
  return html`<a href="${placeAddress(repository, 'tree', ref, [])}"><bdi>${shownName(ref)}</bdi></a>`;
}

function form({ repository }: PageRequest, ref: string, text: string): Html {
  return html`<form class="row search go-to-file" action="${repositoryAddress(repository)}/files" role="search">${momentField(
    repository,
  )}${hiddenField('ref', ref)}<label for="q" class="unseen">Part of the path</label><input id="q" name="q" type="search" value="${text}" maxlength="${SEARCH_LENGTH_MAX}" placeholder="Part of the path" autofocus autocomplete="off" autocapitalize="none" spellcheck="false"><button class="button">Find</button></form>`;
}

function rowOf(asked: PageRequest, ref: string, { path, kind }: ListedFile, pattern: RegExp | null): Html {
  const text = marked(shownPath(path), pattern);
  const more = kind !== 'file' && html` <span class="soft">${kind === 'symlink' ? 'link' : kind}</span>`;
  return html`<li><bdi>${pathLink(asked, ref, path, text)}</bdi>${more}</li>`;
}

/** No client could ask for the address of a very long path. */
export function pathLink({ repository }: PageRequest, ref: string, path: Uint8Array, text: Content): Html {
  if (path.length > LINKED_NAME_BYTES_MAX) return html`<span>${text}</span>`;
  return html`<a href="${placeAddress(repository, 'blob', ref, namesIn(path))}">${text}</a>`;
}

/** Returns a path as a text, of a long one its end. */
export function shownPath(path: Uint8Array): string {
  const text = markInvisible(decodeUtf8Lossy(path)).replaceAll(/[\n\t]/g, '␤');
  return text.length <= NAME_LENGTH_MAX ? text : `…${text.slice(1 - NAME_LENGTH_MAX).toWellFormed()}`;
}
