/** A folder of a repository. */
import { commitTime } from '../../../core/git/commit-time.ts';
import type { ObjectId } from '../../../core/kernel/ids.ts';
import { lastCommitOf } from '../../../core/use-cases/reading/last-commit-of.ts';
import { listTree, type TreeListing } from '../../../core/use-cases/reading/list-tree.ts';
import type { RefPath } from '../../../core/use-cases/reading/ref-path.ts';
import { redirectTo, type SiteAnswer } from '../layout/answer.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';
import { commitAddress, placeAddress } from './addresses.ts';
import { downloadLinks } from './archive.ts';
import { contentsAt } from './contents-at.ts';
import { folderTable } from './folder-table.ts';
import { breadcrumbs, goToFile, refPicker, showRepositoryPage } from './frame.ts';
import { type PageRequest, showRefusal } from './page-request.ts';
import { type ListPage, numberedTitle, pageAsked, pager } from './pager.ts';
import { readmeOf } from './readme.ts';
import { pathText, shortId, shownName, subjectOf } from './shown-text.ts';
import { folderLinks } from './writing.ts';

/** Entries of a folder on one page of the website. */
export const PAGE_ENTRIES_MAX = 100;

export function folderPage({ visit }: PageRequest): ListPage {
  return pageAsked(visit, PAGE_ENTRIES_MAX);
}

export async function showTree(asked: PageRequest, { ref, names }: RefPath): Promise<SiteAnswer> {
  const { context, repository } = asked;
  const wanted = folderPage(asked);
  const path = { names, folder: false };
  const listing = await listTree(context, repository, { ref, path, entries: wanted, signal: asked.visit.signal });
  if ('refused' in listing) {
    const file = await contentsAt(asked, { ref, names });
    if ('refused' in file) return showRefusal(asked, file.refused);
    return redirectTo(placeAddress(repository, 'blob', ref, names));
  }
  const { table, page } = folderTable(asked, listing, wanted);
  const more = pager(placeAddress(repository, 'tree', ref, names), page, listing.entries.total);
  const above = html`<div class="row">${await refPicker(asked, 'tree', ref, names)}${breadcrumbs(asked, ref, names)}${goToFile(asked, ref)}${
    listing.commit !== null &&
    html`<a class="button quiet end" href="${placeAddress(repository, 'commits', ref, names)}">History</a>`
  }${folderLinks(asked, { ref, names })}${downloadLinks(asked, { ref, folder: names, label: 'Download' })}</div>
<h1 class="unseen">${shownName(names.at(-1) ?? repository.owned.name)}</h1>
<section class="box" aria-label="Files">${await lastCommitAt(asked, listing.commit?.id ?? null, names)}${table}</section>${more}`;
  const readme = await readmeOf(asked, listing);
  const content = html`${above}${readme}`;
  const title = numberedTitle(`${pathText(names)} at ${shownName(ref)}`, page);
  return showRepositoryPage(asked, { title, tab: 'Code', ref }, content);
}

/** The commit that last touched a folder or a file, if that is known. */
export async function lastCommitAt(
  asked: PageRequest,
  tip: ObjectId | null,
  names: readonly Uint8Array[],
): Promise<Html> {
  const { context, repository, visit } = asked;
  const commit = tip === null ? null : await lastCommitOf(context, repository, { tip, names, signal: visit.signal });
  return html`${lastCommit(asked, { commit })}`;
}

/** The commit that a page's files are of, if they are of one. */
export function lastCommit({ visit, repository }: PageRequest, { commit }: Pick<TreeListing, 'commit'>): Content {
  if (commit === null) return null;
  const address = commitAddress(repository, commit.id);
  return html`<header><strong dir="auto">${shownName(commit.author.name)}</strong> <a class="subject" dir="auto" href="${address}">${subjectOf(
    commit.message,
  )}</a> <span class="end">${timeAgo(commitTime(commit.committedAt), visit.now)} <a class="id" href="${address}">${shortId(
    commit.id,
  )}</a></span></header>`;
}
