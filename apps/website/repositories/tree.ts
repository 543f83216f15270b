/** A folder of a repository. */
import { commitTime } from '../../../core/git/commit-time.ts';
import { PAGE_ENTRIES_MAX } from '../../../core/kernel/limits.ts';
import { type Page, pageNumbered } from '../../../core/kernel/page.ts';
import type { RefPath } from '../../../core/use-cases/reading/ref-path.ts';
import { type Place, readContents } from '../../../core/use-cases/reading/read-contents.ts';
import { redirectTo, type SiteAnswer } from '../layout/answer.ts';
import { html, type Html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';
import { commitAddress, placeAddress } from './addresses.ts';
import { type Asked, numberAsked, showRefusal } from './asked.ts';
import { folderTable } from './folder-table.ts';
import { breadcrumbs, refPicker, showRepositoryPage } from './frame.ts';
import { pager } from './pager.ts';
import { readmeOf } from './readme.ts';
import { shortId, shownName, subjectOf } from './shown-text.ts';

export function folderPage({ visit }: Asked): Page {
  return pageNumbered(numberAsked(visit, 'page', 0), PAGE_ENTRIES_MAX);
}

export async function showTree(asked: Asked, { ref, names }: RefPath): Promise<SiteAnswer> {
  const { context, repository } = asked;
  const page = folderPage(asked);
  const wanted = { ref, path: { names, folder: false }, entries: page, judgeStreamed: false };
  const contents = await readContents(context, repository, wanted);
  if ('refused' in contents) return showRefusal(asked, contents.refused);
  if (contents.type !== 'dir') return redirectTo(placeAddress(repository, 'blob', ref, names));
  const more = pager(placeAddress(repository, 'tree', ref, names), page, contents.entries.total);
  const content = html`<div class="row">${refPicker(asked, 'tree', ref, names)}${breadcrumbs(
    asked,
    ref,
    names,
    false,
  )}<a class="button quiet end" href="${placeAddress(repository, 'commits', ref, names)}">History</a></div>
<h1 class="unseen">${shownName(names.at(-1) ?? repository.owned.name)}</h1>
<section class="box" aria-label="Files">${lastCommit(asked, contents.place)}${folderTable(asked, contents)}</section>${more}${await readmeOf(
    asked,
    contents,
  )}`;
  return showRepositoryPage(asked, { title: `${pathText(names)} at ${shownName(ref)}`, tab: 'Code' }, content);
}

export function pathText(names: readonly Uint8Array[]): string {
  return names.length === 0 ? 'Files' : names.map(shownName).join('/');
}

/** The commit that a page's files are of. */
export function lastCommit({ visit, repository }: Asked, { tip }: Place): Html {
  const address = commitAddress(repository, tip.id);
  return html`<header><strong dir="auto">${shownName(tip.author.name)}</strong> <a class="subject" dir="auto" href="${address}">${subjectOf(
    tip.message,
  )}</a> <span class="end">${timeAgo(commitTime(tip.committer.seconds), visit.now)} <a class="id" href="${address}">${shortId(
    tip.id,
  )}</a></span></header>`;
}
