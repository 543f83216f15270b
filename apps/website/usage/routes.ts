/** The page of what the account uses: each figure against its quota, and the month's traffic day by day. */
import type { DayTraffic } from '../../../core/ports/usage.ts';
import {
  accountBucketStorage,
  accountChanges,
  accountDeletedStorage,
  accountTraffic,
  accountUsage,
  accountWaitingStorage,
  type NamedBucketStorage,
  type UsageOfPlan,
  type UsedOfQuota,
} from '../../../core/use-cases/metering/account-usage.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import type { Room } from '../layout/room.ts';
import { sizeText } from '../layout/sizes.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { DELETED } from '../repositories/deleted.ts';
import { dailyChart, dailyTable } from './daily-chart.ts';
import { monthText, showLedger, usageTabs } from './ledger.ts';

export const usageRoom: Room = {
  navigation: () => ({ label: 'Usage', path: '/usage' }),
  routes({ context, page: add }) {
    add('/usage', async (visit) => {
      const { account } = visit.person;
      const usage = await accountUsage(context, account, visit.position);
      if ('refused' in usage) return notFound(visit);
      const changes = await accountChanges(context, account, visit.position);
      if ('refused' in changes) return notFound(visit);
      const buckets = await accountBucketStorage(context, account, visit.position);
      const deletedBytes = await accountDeletedStorage(context, account, visit.position);
      const waiting = await accountWaitingStorage(context, account, visit.position);
      if ('refused' in waiting) return notFound(visit);
      const days = await accountTraffic(context, account, visit.position);
      return showUsage(visit, { usage, changes, deletedBytes, waiting, buckets, days });
    });
    add('/usage/ledger', (visit) => showLedger(context, visit));
  },
};

function countText(count: number): string {
  return count.toLocaleString('en-US');
}

interface Shown {
  readonly usage: UsageOfPlan;
  readonly changes: UsedOfQuota;
  /** Parts of the used storage. */
  readonly deletedBytes: number;
  /** What was taken out of repositories and has not left storage. */
  readonly waiting: UsedOfQuota;
  readonly buckets: readonly NamedBucketStorage[];
  readonly days: readonly DayTraffic[];
}

function showUsage(visit: PersonVisit, shown: Shown): SiteAnswer {
  const { usage, changes, deletedBytes, waiting, buckets, days } = shown;
  const head = html`<h1 class="title">Usage</h1><p>${monthText(visit.now.slice(0, 7))} (UTC), as of this moment. A crash may lose up to a minute of what was fetched, and nothing else.</p>${usageTabs('This month')}`;
  const content = html`<div class="meters">${meter('Repositories', usage.repositories, String)}${meter(
    'Storage',
    usage.storageBytes,
    sizeText,
    deletedBytes > 0 &&
      html`<p class="soft">${sizeText(deletedBytes)} of it deleted, until retention or <a href="${DELETED}">purge</a>.</p>`,
  )}${meter(
    'Waiting to leave storage',
    waiting,
    sizeText,
    waiting.used > 0 && html`<p class="soft">Replaced by purges and compactions; it leaves by itself.</p>`,
  )}${meter('Fetched this month', usage.transferBytes, sizeText)}${meter('Pushed this month', usage.ingressBytes, sizeText)}${meter('Changes this month', changes, countText)}</div>${buckets.length > 0 && bucketTable(buckets)}
<section class="box"><header><h2>Each day</h2>${
    days.length > 0 &&
    html`<span class="end soft keys"><span class="sent">fetched</span><span class="received">pushed</span></span>`
  }</header>${
    days.length === 0
      ? html`<div class="empty"><p>Nothing was fetched or pushed this month yet.</p></div>`
      : html`${dailyChart(days, visit.now)}<details class="inside"><summary>As a table</summary>${dailyTable(days)}</details>`
  }</section>`;
  return showPage(page(visit, { title: 'Usage', head }, content));
}

function bucketTable(buckets: readonly NamedBucketStorage[]): Html {
  const rows = buckets.map(
    ({ storageBucketId, name, repositories, storageBytes }) =>
      html`<tr><td class="wrap"><a href="/storage-buckets/${storageBucketId}">${name}</a></td><td class="number">${String(repositories)}</td><td class="number">${sizeText(storageBytes)}</td></tr>`,
  );
  return html`<section class="box"><header><h2>In your own buckets</h2><span class="end soft">counts against no quota of storage</span></header><div class="scroll" tabindex="0" role="group" aria-label="In your own buckets"><table><thead><tr><th>Bucket</th><th class="number">Repositories</th><th class="number">Stored</th></tr></thead><tbody>
${rows}
</tbody></table></div></section>`;
}

function meter(
  label: string,
  { used, quota }: UsedOfQuota,
  textOf: (amount: number) => string,
  note: Html | false = false,
): Html {
  if (quota === null) {
    return html`<section class="box meter"><h2>${label}</h2><p><b>${textOf(used)}</b> <span class="soft">unlimited</span></p>${note}</section>`;
  }
  const percent = used === 0 ? 0 : Math.min(100, Math.ceil((used / Math.max(1, quota)) * 100));
  return html`<section class="box meter"><h2>${label}</h2><p><b>${textOf(used)}</b> <span class="soft">of ${textOf(quota)}</span></p><meter aria-label="${label}" min="0" max="100" value="${percent}">${percent} %</meter>${note}</section>`;
}
