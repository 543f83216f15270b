/** The table of a folder's entries, each with the commit that last touched it. */
import { commitTime } from '../../../core/git/commit-time.ts';
import { LINKED_NAME_BYTES_MAX } from '../../../core/kernel/limits.ts';
import type { ListedEntry, TreeListing } from '../../../core/use-cases/reading/list-tree.ts';
import { type Html, html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';
import { commitAddress, placeAddress } from './addresses.ts';
import type { PageRequest } from './page-request.ts';
import { type ListPage, rowsWithin } from './pager.ts';
import { shortId, shownName, subjectOf } from './shown-text.ts';

/** The drawings of the rows. They stand once on the page, since each row would repeat them. */
const ICONS = html`<svg class="icons" aria-hidden="true"><symbol id="icon-folder" viewBox="0 0 16 16"><path fill="currentColor" d="M1.5 3.2c0-.7.5-1.2 1.2-1.2h3.1l1.5 1.6h6c.7 0 1.2.5 1.2 1.2v7.4c0 .7-.5 1.2-1.2 1.2H2.7c-.7 0-1.2-.5-1.2-1.2z"/></symbol><symbol id="icon-file" viewBox="0 0 16 16"><path fill="none" stroke="currentColor" stroke-width="1.2" d="M3.6 1.6h5.6l3.2 3.2v9.6H3.6zM9.2 1.6v3.2h3.2"/></symbol></svg>`;

export interface FolderTable {
  readonly table: Html;
  /** The page that the table shows. */
  readonly page: ListPage;
}

export function folderTable(asked: PageRequest, { place, entries }: TreeListing, wanted: ListPage): FolderTable {
  const parent =
    place.names.length > 0 &&
    html`<tr><td class="folder">${icon('folder')}<a href="${placeAddress(
      asked.repository,
      'tree',
      place.ref,
      place.names.slice(0, -1),
    )}" aria-label="The folder above">..</a></td><td class="wide"></td><td></td></tr>`;
  const { rows, page } = rowsWithin(entries.items, wanted, (entry) => row(asked, place, entry));
  const rowsOf = (isFolder: boolean): readonly Html[] =>
    rows.filter(({ item }) => (item.type === 'dir') === isFolder).map((each) => each.row);
  // Folders first.
  const table = html`${ICONS}<table class="tree"><tbody>${parent}${rowsOf(true)}${rowsOf(false)}</tbody></table>`;
  return { table, page };
}

function row(asked: PageRequest, { ref, names }: TreeListing['place'], entry: ListedEntry): Html {
  const isFolder = entry.type === 'dir';
  const name = linkedName(entry, () =>
    placeAddress(asked.repository, isFolder ? 'tree' : 'blob', ref, [...names, entry.name]),
  );
  const { lastCommit } = entry;
  return html`<tr><td${isFolder && html` class="folder"`}>${icon(isFolder ? 'folder' : 'file')}<bdi>${name}</bdi></td><td class="wide" dir="auto">${
    lastCommit !== null &&
    html`<a href="${commitAddress(asked.repository, lastCommit.id)}">${subjectOf(lastCommit.message)}</a>`
  }</td><td>${lastCommit !== null && timeAgo(commitTime(lastCommit.committedAt), asked.visit.now)}</td></tr>`;
}

/** No client could ask for the address of a very long name. */
function linkedName({ type, id, name }: ListedEntry, address: () => string): Html {
  if (type === 'submodule') return html`<span>${shownName(name)} <span class="soft">@ ${shortId(id)}</span></span>`;
  if (name.length > LINKED_NAME_BYTES_MAX) return html`<span>${shownName(name)}</span>`;
  return html`<a href="${address()}">${shownName(name)}</a>`;
}

function icon(kind: 'folder' | 'file'): Html {
  return html`<svg aria-hidden="true"><use href="#icon-${kind}"></use></svg>`;
}
