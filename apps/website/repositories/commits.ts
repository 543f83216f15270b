/** The commits of a ref or of one path, newest first, by day. */
import type { CommitRow } from '../../../core/git/commit-row.ts';
import { commitTime } from '../../../core/git/commit-time.ts';
import { PAGE_COMMITS_MAX } from '../../../core/kernel/limits.ts';
import { type CommitList, listCommits } from '../../../core/use-cases/reading/list-commits.ts';
import type { RefPath } from '../../../core/use-cases/reading/ref-path.ts';
import { branchText, findDefaultBranch } from '../../../core/use-cases/reading/resolve-ref.ts';
import { redirectTo, type SiteAnswer } from '../layout/answer.ts';
import { errorSummary } from '../layout/forms.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';
import { commitAddress, placeAddress } from './addresses.ts';
import { commitSearchAsked, commitSearchForm, searchTitle } from './commit-search.ts';
import { breadcrumbs, refPicker, showRepositoryPage } from './frame.ts';
import { FOUND_BYTES_MAX } from './limits.ts';
import { showNoCommits } from './no-commits.ts';
import { type PageRequest, showRefusal } from './page-request.ts';
import { type ListPage, numberedTitle, pageAsked, pager, rowsWithin } from './pager.ts';
import { pathText, shortId, shownName, subjectOf } from './shown-text.ts';

/** The tab's address: the commits of the default branch. */
export async function showDefaultCommits(asked: PageRequest): Promise<SiteAnswer> {
  const { repository } = asked;
  if (findDefaultBranch(repository) === null) return showNoCommits(asked);
  return redirectTo(placeAddress(repository, 'commits', branchText(repository, repository.defaultBranch), []));
}

/** The commits of a ref, or of one path, which need not exist any more; of these, those that a search finds. */
export async function showCommits(asked: PageRequest, { ref, names }: RefPath): Promise<SiteAnswer> {
  const { context, repository, visit } = asked;
  const wanted = pageAsked(visit, PAGE_COMMITS_MAX);
  const ofPath = names.length === 0 ? null : { path: { names, folder: false }, follow: true, signal: visit.signal };
  const searched = commitSearchAsked(visit);
  const isWrong = Object.keys(searched.errors).length > 0;
  const list = isWrong
    ? NO_LIST
    : await listCommits(context, repository, { ref, ofPath, search: searched.search, page: wanted });
  if ('refused' in list) {
    // A tag of a folder or a file, which the picker leads to: its files are what there is to see.
    const hasNone = list.refused.code === 'ref-not-a-commit' && names.length === 0;
    return hasNone ? redirectTo(placeAddress(repository, 'tree', ref, [])) : showRefusal(asked, list.refused);
  }
  const room = searched.search === null ? undefined : FOUND_BYTES_MAX;
  const { days, page } = daysOf(asked, list.commits, wanted, room);
  const address = placeAddress(repository, 'commits', ref, names);
  const heading = names.length === 0 ? `Commits of ${shownName(ref)}` : `History of ${pathText(names)}`;
  const isNothing = searched.search !== null && !isWrong && days.length === 0;
  const content = html`<div class="row">${await refPicker(asked, 'commits', ref, names)}${
    names.length > 0 && breadcrumbs(asked, ref, names)
  }</div>
<h1 class="unseen">${heading}</h1>${errorSummary(searched.errors)}${commitSearchForm(asked, address, searched)}${earlierNote(
    list,
  )}${days}${
    isNothing &&
    html`<section class="box empty"><h2>No commit matches</h2><p><a href="${address}">Show all commits</a></p></section>`
  }${
    list.truncated && html`<p class="note">Older commits may be missing: the search for them took too long.</p>`
  }${pagerOf(list, address, wanted, page, searched.texts)}`;
  const place = names.length === 0 ? '' : ` at ${shownName(ref)}`;
  const title = `${heading}${place}${searchTitle(searched)}`;
  return showRepositoryPage(
    asked,
    { title: numberedTitle(title, page), tab: 'Commits', ref, ...(isWrong ? { status: 422 } : {}) },
    content,
  );
}

/** What is listed where the search cannot be read. */
const NO_LIST: Omit<CommitList, 'version' | 'ref'> = {
  commits: [],
  total: 0,
  hasMore: false,
  truncated: false,
  earlierPaths: [],
};

/** Says of which earlier names of the file commits are on the page. */
function earlierNote({ earlierPaths }: Pick<CommitList, 'earlierPaths'>): Content {
  if (earlierPaths.length === 0) return null;
  const names = earlierPaths.map((path, index) => html`${index > 0 && ', '}<code><bdi>${shownName(path)}</bdi></code>`);
  return html`<p class="note">The file was renamed. Commits of its earlier name are here too: ${names}</p>`;
}

/** The links between the pages of a list, whose length is not known for a path or a search. */
function pagerOf(
  { commits, total, hasMore }: Pick<CommitList, 'commits' | 'total' | 'hasMore'>,
  address: string,
  wanted: ListPage,
  shown: ListPage,
  query: Readonly<Record<string, string>>,
): Html {
  if (total !== null) return pager(address, shown, total, { query });
  const end = wanted.offset + commits.length;
  return pager(address, shown, hasMore ? end + 1 : end, { query, isExact: !hasMore });
}

export interface Days {
  readonly days: readonly Html[];
  /** The page that they show. */
  readonly page: ListPage;
}

/** One list for each day on which commits were made, in UTC. */
export function daysOf(asked: PageRequest, commits: readonly CommitRow[], wanted: ListPage, bytesMax?: number): Days {
  const found = rowsWithin(commits, wanted, (commit) => rowOf(asked, commit), bytesMax);
  const days: { readonly day: string; readonly rows: Html[] }[] = [];
  for (const { item, row } of found.rows) {
    const day = commitTime(item.committedAt).slice(0, 10);
    const last = days.at(-1);
    if (last?.day === day) last.rows.push(row);
    else days.push({ day, rows: [row] });
  }
  return { days: days.map(dayView), page: found.page };
}

function dayView({ day, rows }: { readonly day: string; readonly rows: readonly Html[] }): Html {
  return html`<section class="box"><header><h2><time datetime="${day}">${longDay(day)}</time></h2></header><ol class="commits">${rows}</ol></section>`;
}

function rowOf({ visit, repository }: PageRequest, { id, message, author, committedAt }: CommitRow): Html {
  const address = commitAddress(repository, id);
  return html`<li><a class="subject" dir="auto" href="${address}">${subjectOf(message)}</a><span class="soft"><bdi>${shownName(
    author.name,
  )}</bdi> committed ${timeAgo(commitTime(committedAt), visit.now)}</span><a class="id" href="${address}">${shortId(id)}</a></li>`;
}

const DAY = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeZone: 'UTC' });

function longDay(day: string): string {
  return DAY.format(new Date(`${day}T00:00:00.000Z`));
}
