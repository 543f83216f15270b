/** The commits of a ref, newest first, by day. */
import type { CommitRow } from '../../../core/git/commit-row.ts';
import { commitTime } from '../../../core/git/commit-time.ts';
import { PAGE_COMMITS_MAX } from '../../../core/kernel/limits.ts';
import { type CommitList, listCommits } from '../../../core/use-cases/reading/list-commits.ts';
import type { RefPath } from '../../../core/use-cases/reading/ref-path.ts';
import { branchText, findDefaultBranch, withoutDefaultBranch } from '../../../core/use-cases/reading/resolve-ref.ts';
import { redirectTo, type SiteAnswer } from '../layout/answer.ts';
import { type Html, html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';
import { commitAddress, placeAddress } from './addresses.ts';
import { breadcrumbs, refPicker, showRepositoryPage } from './frame.ts';
import { type PageRequest, showRefusal } from './page-request.ts';
import { type ListPage, pageAsked, pager, rowsWithin } from './pager.ts';
import { pathText, shortId, shownName, subjectOf } from './shown-text.ts';

/** The tab's address: the commits of the default branch. */
export async function showDefaultCommits(asked: PageRequest): Promise<SiteAnswer> {
  const { repository } = asked;
  if (findDefaultBranch(repository) === null) return showRefusal(asked, withoutDefaultBranch(repository));
  return redirectTo(placeAddress(repository, 'commits', branchText(repository, repository.defaultBranch), []));
}

export async function showCommits(asked: PageRequest, ref: string): Promise<SiteAnswer> {
  const { context, repository, visit } = asked;
  const wanted = pageAsked(visit, PAGE_COMMITS_MAX);
  const list = await listCommits(context, repository, { ref, ofPath: null, page: wanted });
  if ('refused' in list) return showRefusal(asked, list.refused);
  const { days, page } = daysOf(asked, list.commits, wanted);
  const content = html`<div class="row">${await refPicker(asked, 'commits', ref, [])}</div><h1 class="unseen">Commits of ${shownName(
    ref,
  )}</h1>${days}${pagerOf(list, placeAddress(repository, 'commits', ref, []), wanted, page)}`;
  return showRepositoryPage(asked, { title: `Commits of ${shownName(ref)}`, tab: 'Commits' }, content);
}

/** The history of one path: it need not exist any more. */
export async function showHistory(asked: PageRequest, { ref, names }: RefPath): Promise<SiteAnswer> {
  const { context, repository, visit } = asked;
  const wanted = pageAsked(visit, PAGE_COMMITS_MAX);
  const ofPath = { path: { names, folder: false }, signal: visit.signal };
  const list = await listCommits(context, repository, { ref, ofPath, page: wanted });
  if ('refused' in list) return showRefusal(asked, list.refused);
  const { days, page } = daysOf(asked, list.commits, wanted);
  const address = placeAddress(repository, 'commits', ref, names);
  const content = html`<div class="row">${await refPicker(asked, 'commits', ref, names)}${breadcrumbs(asked, ref, names)}</div>
<h1 class="unseen">History of ${pathText(names)}</h1>${days}${
    list.truncated && html`<p class="note">Older commits may be missing: the search for them took too long.</p>`
  }${pagerOf(list, address, wanted, page)}`;
  return showRepositoryPage(
    asked,
    { title: `History of ${pathText(names)} at ${shownName(ref)}`, tab: 'Commits' },
    content,
  );
}

/** The links between the pages of a list, whose length is not known for a path. */
function pagerOf({ commits, total, hasMore }: CommitList, address: string, wanted: ListPage, shown: ListPage): Html {
  if (total !== null) return pager(address, shown, total);
  const end = wanted.offset + commits.length;
  return pager(address, shown, hasMore ? end + 1 : end, { isExact: !hasMore });
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
