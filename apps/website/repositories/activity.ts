/**
 * The changes of a repository's refs, newest first.
 *
 * Invariants: it names commits that no ref reaches any more, which have no page; only the owner comes here.
 */
import { PAGE_COMMITS_MAX } from '../../../core/kernel/limits.ts';
import type { ActivityKind, ActivityRow } from '../../../core/ports/activity.ts';
import { listActivity } from '../../../core/use-cases/reading/list-activity.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { type Html, html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';
import { purgeAddress, repositoryAddress, shownAddress } from './addresses.ts';
import { showRepositoryPage } from './frame.ts';
import type { PageRequest } from './page-request.ts';
import { pageAsked, pager, rowsWithin } from './pager.ts';
import { pusher } from './pushed-by.ts';
import { restorationAddress } from './restore.ts';
import { shortId, shownName } from './shown-text.ts';

export async function showActivity(asked: PageRequest): Promise<SiteAnswer> {
  const { context, visit, repository } = asked;
  const wanted = pageAsked(visit, PAGE_COMMITS_MAX);
  const { items, total } = await listActivity(context, repository, wanted);
  const { rows, page } = rowsWithin(items, wanted, (change) => rowOf(asked, change));
  const content = html`<h1 class="unseen">Activity</h1>${
    total === 0
      ? html`<section class="box"><p class="empty">Nothing was pushed yet.</p></section>`
      : html`<section class="box" aria-label="Changes of branches and tags"><ol class="strata">${rows.map(
          ({ row }) => row,
        )}</ol></section>`
  }${pager(`${repositoryAddress(repository)}/activity`, page, total)}`;
  return showRepositoryPage(asked, { title: 'Activity', tab: 'Activity' }, content);
}

const WORDS: Readonly<Record<ActivityKind, string>> = {
  create: 'Created',
  'fast-forward': 'Pushed to',
  'force-push': 'Force-pushed',
  delete: 'Deleted',
  restore: 'Restored',
};

/** The stylesheet's names for what a change was. */
const LAYERS: Readonly<Record<ActivityKind, string>> = {
  create: 'created',
  'fast-forward': 'pushed',
  'force-push': 'force',
  delete: 'force',
  restore: 'undone',
};

function rowOf({ visit, repository }: PageRequest, { push, ref, before, after, kind }: ActivityRow): Html {
  const [, refKind = '', short = ref] = /^refs\/(heads|tags)\/(.*)$/su.exec(ref) ?? [];
  const what = refKind === 'heads' ? 'branch' : refKind === 'tags' ? 'tag' : 'ref';
  const ids = [before, after].filter((id) => !/^0+$/.test(id)).map((id) => shortId(id));
  const change = html`<span class="id">${ids.join(' → ')}</span>`;
  const isLeft = kind === 'force-push' || kind === 'delete' || (kind === 'restore' && !/^0+$/.test(before));
  const then = shownAddress({ asOf: { event: push.eventId } }, repositoryAddress(repository));
  return html`<li class="${LAYERS[kind]}">${timeAgo(push.at, visit.now)}<span class="what">${WORDS[kind]} the ${what} <strong><bdi>${shownName(
    short,
  )}</bdi></strong> ${change}${kind === 'force-push' && html` <span class="mark bad">force push</span>`}</span><span class="by">${pusher(
    push,
  )} · <a href="/history/${push.eventId}">event ${push.revision}</a> · <a href="${then}">Browse<span class="unseen"> at this point</span></a> · <a href="${restorationAddress(repository, push.eventId, ref)}">Restore to before</a>${
    isLeft && html` · <a href="${purgeAddress(repository)}">Purge<span class="unseen"> what it left</span></a>`
  }</span></li>`;
}
