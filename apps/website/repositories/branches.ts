/** The branches of a repository, each with how far it is from the default branch. */
import { commitTime } from '../../../core/git/commit-time.ts';
import { PAGE_COMMITS_MAX } from '../../../core/kernel/limits.ts';
import {
  type BranchOrder,
  type ListedBranch,
  listBranchPage,
} from '../../../core/use-cases/reading/list-branch-page.ts';
import { branchRef, branchText } from '../../../core/use-cases/reading/resolve-ref.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';
import { commitAddress, placeAddress, repositoryAddress, shownAddress } from './addresses.ts';
import { compareAddress } from './compare.ts';
import { showRepositoryPage } from './frame.ts';
import { deleteLink, newRefButton } from './new-ref.ts';
import type { PageRequest } from './page-request.ts';
import { type Fitting, numberedTitle, pageAsked, pager, rowsWithin } from './pager.ts';
import { nothingFound, refsSearch, searchAsked, searchedTitle } from './refs-search.ts';
import { counted, shownName, subjectOf } from './shown-text.ts';

export async function showBranches(asked: PageRequest): Promise<SiteAnswer> {
  const { context, visit, repository } = asked;
  const search = searchAsked(asked);
  const wanted = pageAsked(visit, PAGE_COMMITS_MAX);
  const order = visit.url.searchParams.get('sort') === 'name' ? 'name' : 'changed';
  const list = await listBranchPage(context, repository, { search, order, page: wanted, signal: visit.signal });
  const { items, total } = list.branches;
  const { rows, page } = rowsWithin(items, wanted, (branch) => rowOf(asked, branch));
  const address = `${repositoryAddress(repository)}/branches`;
  const query = { ...(order === 'name' ? { sort: order } : {}), ...(search === '' ? {} : { q: search }) };
  const isOther = list.order !== order;
  const content = html`<h1 class="unseen">Branches</h1>${newRefButton(repository, 'branch')}${refsSearch(
    asked,
    address,
    {
      label: 'Find a branch',
      text: search,
      found: counted(total, 'branch', 'branches'),
      keep: order === 'name' ? { sort: order } : {},
    },
  )}${items.length > 1 && orderLinks(asked, order, search)}${
    isOther && html`<p class="note">The dates of so many branches took too long to read: these are sorted by name.</p>`
  }${items.length > 0 && table(list.defaultBranch, rows)}${total === 0 && nothingFound(shownAddress(repository, address), search, 'branches')}${pager(shownAddress(repository, address), page, total, { query })}`;
  const title = numberedTitle(searchedTitle(order === 'name' ? 'Branches by name' : 'Branches', search), page);
  return showRepositoryPage(asked, { title, tab: 'Branches' }, content);
}

const ORDERS: Readonly<Record<BranchOrder, string>> = { changed: 'Last change', name: 'Name' };

function orderLinks({ repository }: PageRequest, order: BranchOrder, search: string): Html {
  const address = `${repositoryAddress(repository)}/branches`;
  const link = (to: BranchOrder): Html => {
    const query = { ...(to === 'name' ? { sort: to } : {}), ...(search === '' ? {} : { q: search }) };
    return html`<a href="${shownAddress(repository, address, query)}"${to === order && html` aria-current="true"`}>${ORDERS[to]}</a>`;
  };
  return html`<p class="soft">Sorted by ${link('changed')} · ${link('name')}</p>`;
}

function table(defaultBranch: string, rows: Fitting<ListedBranch>['rows']): Html {
  return html`<div class="box"><div class="scroll" tabindex="0" role="group" aria-label="Branches"><table class="cards fits"><thead><tr><th scope="col">Branch</th><th scope="col">Compared with ${shownName(
    defaultBranch,
  )}</th><th scope="col" class="wide">Last commit</th><th scope="col" class="number">When</th></tr></thead><tbody>${rows.map(
    ({ row }) => row,
  )}</tbody></table></div></div>`;
}

function rowOf({ visit, repository }: PageRequest, { name, isDefault, commit, aheadBehind }: ListedBranch): Html {
  return html`<tr><td class="wrap"><a href="${placeAddress(repository, 'tree', branchText(repository, name), [])}"><bdi>${shownName(name)}</bdi></a></td><td class="apart">${
    isDefault
      ? html`<span class="mark">default</span>`
      : html`<a href="${compareAddress(repository, { base: branchText(repository, repository.defaultBranch), head: branchText(repository, name), direct: false })}">${distance(aheadBehind)}</a>${deleteLink(repository, branchRef(name), name)}`
  }</td><td class="wide" dir="auto"><a class="subject" href="${commitAddress(repository, commit.id)}">${subjectOf(
    commit.message,
  )}</a></td><td class="number">${timeAgo(commitTime(commit.committedAt), visit.now)}</td></tr>`;
}

function distance(aheadBehind: ListedBranch['aheadBehind']): Content {
  if (aheadBehind === null) return html`<span class="soft">not counted</span>`;
  const { ahead, behind } = aheadBehind;
  if (ahead === 0 && behind === 0) return html`<span class="soft">up to date</span>`;
  return html`<span class="${ahead === 0 ? 'soft' : 'plus'}">${ahead.toLocaleString('en-US')} ahead</span>, <span class="soft">${behind.toLocaleString(
    'en-US',
  )} behind</span>`;
}
