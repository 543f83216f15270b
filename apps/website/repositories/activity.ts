/**
 * The pushes to a repository, newest first, each with what it did to refs; and all changes of one push.
 *
 * Invariants: it names commits that no ref reaches any more; only the owner comes here. Such a commit has no page of
 * today, so links lead to the moment at which a ref reached it.
 */
import { ZERO_OBJECT_ID } from '../../../core/kernel/ids.ts';
import { PAGE_COMMITS_MAX } from '../../../core/kernel/limits.ts';
import type {
  ActivityKind,
  ActivityRow,
  ChangedThing,
  CountedChanges,
  PushActivity,
  PushRow,
} from '../../../core/ports/activity.ts';
import { listChangesOfPush, listPushes } from '../../../core/use-cases/reading/list-activity.ts';
import { REF_ADDRESS_COMPONENTS_MAX } from '../../../core/use-cases/reading/ref-path.ts';
import { findRef } from '../../../core/use-cases/reading/resolve-ref.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';
import { firstWithin } from '../layout/weight.ts';
import { changesBetweenAddress, commitAddress, purgeAddress, repositoryAddress, shownAddress } from './addresses.ts';
import { notFoundHere, showRepositoryPage } from './frame.ts';
import { numberAsked, type PageRequest } from './page-request.ts';
import { pageAsked, pager, rowsWithin } from './pager.ts';
import { pusher } from './pushed-by.ts';
import { restorationAddress } from './restore.ts';
import { counted, shortId, shownName } from './shown-text.ts';

/** Changes of one push that its row opens to, and their bytes. Internal: the others are on a page of their own. */
const CHANGES_SHOWN_MAX = 10;
const CHANGES_BYTES_MAX = 8_000;

export async function showActivity(asked: PageRequest): Promise<SiteAnswer> {
  const { visit } = asked;
  return visit.url.searchParams.has('push') ? showPush(asked) : showPushes(asked);
}

/** The pages are counted by the revisions of the pushes, so that none changes while others push. */
async function showPushes(asked: PageRequest): Promise<SiteAnswer> {
  const { context, visit, repository } = asked;
  const isLater = visit.url.searchParams.has('before');
  const before = isLater ? numberAsked(visit, 'before', 0) : null;
  const wanted = { before, limit: PAGE_COMMITS_MAX, changes: CHANGES_SHOWN_MAX };
  const { pushes, next } = await listPushes(context, repository, wanted);
  const all = pushes.map((activity, index) => ({
    activity,
    previous: pushes[index + 1]?.push ?? next?.push ?? null,
  }));
  const page = { offset: 0, limit: PAGE_COMMITS_MAX, usual: PAGE_COMMITS_MAX };
  const { rows } = rowsWithin(all, page, ({ activity, previous }) => rowOf(asked, activity, previous));
  const last = rows.at(-1)?.item.activity.push.revision;
  const hasMore = last !== undefined && (next !== null || rows.length < all.length);
  const content = html`<h1 class="unseen">Activity</h1><p class="row"><a class="end" href="${repositoryAddress(repository)}/access">Who could read it, and who did</a></p>${
    rows.length === 0
      ? nothingPushed(repository, isLater)
      : html`<section class="box" aria-label="Pushes"><ol class="strata">${rows.map(({ row }) => row)}</ol></section>`
  }${olderLinks(repository, { isLater, older: hasMore ? last : null })}`;
  return showRepositoryPage(
    asked,
    { title: before === null ? 'Activity' : `Activity before event ${before}`, tab: 'Activity' },
    content,
  );
}

function nothingPushed(repository: PageRequest['repository'], isLater: boolean): Html {
  if (isLater) return html`<section class="box"><p class="empty">There is nothing before.</p></section>`;
  return html`<section class="box empty"><h2>Nothing was pushed yet</h2><p><a href="${repositoryAddress(repository)}">The repository’s page</a> has the commands for a first push.</p></section>`;
}

function olderLinks(
  repository: PageRequest['repository'],
  { isLater, older }: { readonly isLater: boolean; readonly older: number | null },
): Content {
  if (!isLater && older === null) return null;
  const address = activityAddress(repository);
  const further = `${address}?before=${older}`;
  return html`<nav class="row pager" aria-label="Pages">${isLater && html`<a class="button" href="${address}">Newest</a>`}${
    older !== null && html`<a class="button" rel="next" href="${further}">Older</a>`
  }</nav>`;
}

function activityAddress(repository: PageRequest['repository']): string {
  return `${repositoryAddress(repository)}/activity`;
}

/** All changes of one push. */
async function showPush(asked: PageRequest): Promise<SiteAnswer> {
  const { context, visit, repository } = asked;
  const revision = numberAsked(visit, 'push', -1);
  const wanted = pageAsked(visit, PAGE_COMMITS_MAX);
  const found = await listChangesOfPush(context, repository, revision, wanted);
  if (found === null) return notFoundHere(asked);
  const { push, previous, items, total } = found;
  const { rows, page } = rowsWithin(items, wanted, (change) => rowOf(asked, alone(change), previous));
  const address = activityAddress(repository);
  const content = html`<div class="row"><h1>Event ${push.revision}: ${counted(total, 'change')}</h1><a class="button quiet end" href="${address}">All activity</a></div>
<section class="box" aria-label="Changes of branches and tags"><ol class="strata">${rows.map(({ row }) => row)}</ol></section>${pager(
    address,
    page,
    total,
    { query: { push: String(push.revision) } },
  )}`;
  const part = wanted.offset === 0 ? '' : `, from change ${wanted.offset + 1}`;
  return showRepositoryPage(asked, { title: `Activity of event ${push.revision}${part}`, tab: 'Activity' }, content);
}

/** A change as the only one of its push. */
function alone(change: ActivityRow): PushActivity {
  const counts = [{ kind: change.kind, thing: thingOf(change.ref), count: 1 }];
  return { push: change.push, counts, first: change.number, count: 1, changes: [change] };
}

function thingOf(ref: string): ChangedThing {
  if (ref.startsWith('refs/heads/')) return 'branch';
  return ref.startsWith('refs/tags/') ? 'tag' : 'ref';
}

const WORDS: Readonly<Record<ActivityKind, string>> = {
  create: 'Created',
  'fast-forward': 'Pushed to',
  'force-push': 'Force-pushed',
  delete: 'Deleted',
  restore: 'Restored',
};

/** The stylesheet's names for what a change was, the gravest first. */
const LAYERS: readonly (readonly [ActivityKind, string])[] = [
  ['force-push', 'force'],
  ['delete', 'force'],
  ['restore', 'undone'],
  ['fast-forward', 'pushed'],
  ['create', 'created'],
];

function rowOf(asked: PageRequest, activity: PushActivity, previous: PushRow | null): Html {
  const { visit, repository } = asked;
  const { push, counts, count, changes } = activity;
  const layer = LAYERS.find(([kind]) => counts.some((counted) => counted.kind === kind))?.[1] ?? 'pushed';
  const [only] = count === 1 ? changes : [];
  const what = only === undefined ? several(asked, activity, previous) : changeOf(asked, only, previous);
  const ref = only?.ref ?? '';
  const isLeft =
    counts.some(({ kind }) => kind === 'force-push' || kind === 'delete') ||
    changes.some(({ kind, before }) => kind === 'restore' && before !== ZERO_OBJECT_ID);
  const then = shownAddress({ asOf: { event: push.eventId } }, repositoryAddress(repository));
  return html`<li class="${layer}">${timeAgo(push.at, visit.now)}<div class="what">${what}</div><span class="by">${pusher(
    push,
  )} · <a href="/history/${push.eventId}">event ${push.revision}</a> · <a href="${then}">Browse<span class="unseen"> at this point</span></a>${
    previous !== null &&
    html` · <a href="${changesBetweenAddress(repository, previous.eventId, push.eventId)}">What changed</a>`
  } · <a href="${restorationAddress(repository, push.eventId, ref)}">Go back to before this</a>${
    isLeft && html` · <a href="${purgeAddress(repository)}">Purge<span class="unseen"> what it left</span></a>`
  }</span></li>`;
}

/** What a push of several changes did, in a line that opens to the changes. */
function several(asked: PageRequest, { push, counts, count, changes }: PushActivity, previous: PushRow | null): Html {
  const { repository } = asked;
  const rows = changes.map(
    (change) =>
      html`<div class="change">${changeOf(asked, change, previous)} · <a href="${restorationAddress(
        repository,
        push.eventId,
        change.ref,
      )}">Go back to before this</a></div>`,
  );
  const shown = firstWithin(rows, CHANGES_BYTES_MAX);
  const all = `${activityAddress(repository)}?push=${push.revision}`;
  return html`<details><summary>${summaryOf(counts)}${
    counts.some(({ kind }) => kind === 'force-push') && html` <span class="mark bad">force push</span>`
  }</summary>${shown}${
    shown.length < count && html`<div class="change"><a href="${all}">All ${counted(count, 'change')}</a></div>`
  }</details>`;
}

const KINDS: readonly ActivityKind[] = ['create', 'fast-forward', 'force-push', 'delete', 'restore'];
const THINGS: readonly ChangedThing[] = ['branch', 'tag', 'ref'];

/** Returns e.g. `Created 1 branch and 328 tags, deleted 2 branches`. */
function summaryOf(counts: readonly CountedChanges[]): string {
  const parts = KINDS.flatMap((kind) => {
    const things = THINGS.flatMap((thing) =>
      counts
        .filter((counted) => counted.kind === kind && counted.thing === thing)
        .map(({ count }) => thingsOf(thing, count)),
    );
    return things.length === 0 ? [] : [`${WORDS[kind]} ${things.join(' and ')}`];
  });
  const [first = '', ...others] = parts;
  return [first, ...others.map((part) => `${part.slice(0, 1).toLowerCase()}${part.slice(1)}`)].join(', ');
}

function thingsOf(thing: ChangedThing, count: number): string {
  if (thing === 'branch') return counted(count, 'branch', 'branches');
  return thing === 'tag' ? counted(count, 'tag') : counted(count, 'other ref');
}

function changeOf(asked: PageRequest, change: ActivityRow, previous: PushRow | null): Html {
  const { ref, kind } = change;
  const [, short = ref] = /^refs\/(?:heads|tags)\/(.*)$/su.exec(ref) ?? [];
  return html`${WORDS[kind]} the ${thingOf(ref)} <strong>${refLink(asked, change, previous, short)}</strong> ${idsOf(
    asked,
    change,
    previous,
  )}${kind === 'force-push' && html` <span class="mark bad">force push</span>`}`;
}

/** Leads to the ref as it is now; to where it last was, if it is gone. */
function refLink(asked: PageRequest, change: ActivityRow, previous: PushRow | null, short: string): Html {
  const { repository } = asked;
  const { ref, push, after } = change;
  const name = html`<bdi>${shownName(short)}</bdi>`;
  const isThere = findRef(repository, ref) !== null;
  const then = after === ZERO_OBJECT_ID ? previous : push;
  // A deeper name has no address.
  const isDeep = ref.split('/').length > REF_ADDRESS_COMPONENTS_MAX;
  if (isDeep || (!isThere && then === null)) return name;
  const path = `${repositoryAddress(repository)}/tree/${ref.split('/').map(encodeURIComponent).join('/')}`;
  const moment = isThere || then === null ? {} : { asOf: { event: then.eventId } };
  return html`<a href="${shownAddress(moment, path)}">${name}</a>`;
}

/** The commits of a branch before and after, each at a moment when the branch led to it; of other refs their ids. */
function idsOf({ repository }: PageRequest, change: ActivityRow, previous: PushRow | null): Html {
  const { ref, before, after, push } = change;
  const isBranch = thingOf(ref) === 'branch';
  const idAt = (id: string, event: PushRow | null): Content => {
    if (id === ZERO_OBJECT_ID) return null;
    if (!isBranch || event === null) return shortId(id);
    return html`<a href="${commitAddress({ ...repository, asOf: { event: event.eventId } }, id)}">${shortId(id)}</a>`;
  };
  const [from, to] = [idAt(before, previous), idAt(after, push)];
  return html`<span class="id">${from}${from !== null && to !== null && ' → '}${to}</span>`;
}
