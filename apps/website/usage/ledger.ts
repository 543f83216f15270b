/**
 * The ledger of a month: what each figure of usage is the sum of, entry by entry.
 *
 * Invariants: the levels and sums are of the whole month, whatever the page. The next page begins behind the last
 * entry that this one shows.
 */
import type { Timestamp } from '../../../core/kernel/ids.ts';
import { PAGE_COMMITS_MAX, PAGE_ROWS_BYTES_MAX } from '../../../core/kernel/limits.ts';
import type { LedgerEntry, LedgerMember, LedgerPage } from '../../../core/ports/usage-ledger.ts';
import { monthOf } from '../../../core/usage/ledger.ts';
import { listUsageLedger } from '../../../core/use-cases/metering/usage-ledger.ts';
import { type LogNames, namesInLog } from '../../../core/use-cases/reading/names-of-log-entries.ts';
import { LEDGER_QUERY } from '../../api/schemas/usage.ts';
import { ledgerPlaceText } from '../../front-door/list-places.ts';
import type { SiteContext } from '../context.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import { sizeText } from '../layout/sizes.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { firstWithin } from '../layout/weight.ts';
import { shownName } from '../repositories/shown-text.ts';

const LEDGER = '/usage/ledger';

export function usageTabs(current: 'This month' | 'Ledger'): Html {
  const tabs = [
    ['This month', '/usage'],
    ['Ledger', LEDGER],
  ] as const;
  const links = tabs.map(
    ([label, path]) => html`<a href="${path}"${label === current && html` aria-current="page"`}>${label}</a>`,
  );
  return html`<nav class="tabs" aria-label="Usage">${links}</nav>`;
}

const MONTHS = 'January February March April May June July August September October November December'.split(' ');

/** `2026-11` as `November 2026`. */
export function monthText(month: string): string {
  return `${MONTHS[Number(month.slice(5, 7)) - 1]} ${month.slice(0, 4)}`;
}

export async function showLedger(context: SiteContext, visit: PersonVisit): Promise<SiteAnswer> {
  const asked = LEDGER_QUERY.safeParse(askedOf(visit));
  if (!asked.success) return notFound(visit);
  const { month = null, after = null } = asked.data;
  const { account } = visit.person;
  const wanted = { account, seen: visit.position, month, after, limit: PAGE_COMMITS_MAX };
  const ledger = await listUsageLedger(context, wanted);
  if ('refused' in ledger) return notFound(visit);
  const names = await namesInLog(context, account, {
    repositories: ledger.entries.flatMap(({ repositoryId }) => repositoryId ?? []),
    tokens: ledger.entries.flatMap(({ tokenId }) => tokenId ?? []),
  });
  const rows = firstWithin(
    ledger.entries.map((entry) => rowOf(entry, names)),
    PAGE_ROWS_BYTES_MAX,
  );
  const last = ledger.entries[rows.length - 1];
  const hasMore = ledger.hasMore || rows.length < ledger.entries.length;
  const head = html`<h1 class="title">Usage</h1><p>What each figure of ${monthText(ledger.month)} (UTC) is the sum of.</p>${usageTabs('Ledger')}`;
  const next = hasMore && last !== undefined ? addressOf({ month: ledger.month, after: ledgerPlaceText(last) }) : null;
  const newest = after === null ? null : addressOf({ month: ledger.month });
  const content = html`${monthPicker(visit, ledger.month)}${summary(ledger)}${entriesBox(rows)}<nav class="row pager" aria-label="Pages">${
    newest !== null && html`<a class="button" rel="first" href="${newest}">Beginning of the month</a>`
  }${next !== null && html`<a class="button" rel="next" href="${next}">Next</a>`}</nav>`;
  return showPage(
    page(
      visit,
      {
        title: `Ledger of ${monthText(ledger.month)}${after === null ? '' : `, after ${ledgerPlaceText(after)}`}`,
        head,
      },
      content,
    ),
  );
}

/** An empty field does not count. */
function askedOf({ url }: PersonVisit): Readonly<Record<string, string>> {
  const asked = ['month', 'after'].map((name) => [name, url.searchParams.get(name) ?? ''] as const);
  return Object.fromEntries(asked.filter(([, text]) => text !== ''));
}

function addressOf(query: Readonly<Record<string, string>>): string {
  return `${LEDGER}?${new URLSearchParams(query).toString()}`;
}

function monthPicker({ now }: PersonVisit, month: string): Html {
  const current = monthOf(now);
  const [before, after] = [monthBeside(month, -1), monthBeside(month, 1)];
  return html`<form class="row months" action="${LEDGER}"><a class="button" rel="prev" href="${addressOf({ month: before })}">${monthText(before)}</a><label for="month" class="unseen">Month, such as ${current}</label><input id="month" name="month" type="month" value="${month}" max="${current}" required pattern="[0-9]{4}-[0-9]{2}"><button class="button">Show</button>${
    month < current && html`<a class="button" rel="next" href="${addressOf({ month: after })}">${monthText(after)}</a>`
  }</form>`;
}

/** Stays between the years 1 and 9999. */
function monthBeside(month: string, step: -1 | 1): string {
  const count = Number(month.slice(0, 4)) * 12 + Number(month.slice(5, 7)) - 1 + step;
  const year = Math.min(9_999, Math.max(1, Math.floor(count / 12)));
  return `${String(year).padStart(4, '0')}-${String((count % 12) + 1).padStart(2, '0')}`;
}

const MEMBERS: readonly LedgerMember[] = ['repos', 'storage_bytes', 'transfer_bytes', 'ingress_bytes'];
const LABELS: Readonly<Record<LedgerMember, string>> = {
  repos: 'Repositories',
  storage_bytes: 'Storage',
  transfer_bytes: 'Fetched',
  ingress_bytes: 'Pushed',
};

function amountText(member: LedgerMember, amount: number): string {
  return member === 'repos' ? amount.toLocaleString('en-US') : sizeText(amount);
}

function deltaText(member: LedgerMember, delta: number): string {
  if (delta === 0) return amountText(member, 0);
  return `${delta < 0 ? '−' : '+'}${amountText(member, Math.abs(delta))}`;
}

function summary({ opening, totals }: LedgerPage): Html {
  const openings: Readonly<Partial<Record<LedgerMember, number>>> = opening;
  const rows = MEMBERS.map((member) => {
    const before = openings[member] ?? 0;
    const total = totals[member];
    return html`<tr><th scope="row">${LABELS[member]}</th><td class="number">${amountText(member, before)}</td><td class="number">${deltaText(
      member,
      total - before,
    )}</td><td class="number"><strong>${amountText(member, total)}</strong></td></tr>`;
  });
  return html`<section class="box"><div class="scroll" tabindex="0" role="group" aria-label="The month"><table><thead><tr><th scope="col">Figure</th><th scope="col" class="number">Opening</th><th scope="col" class="number">Entries</th><th scope="col" class="number">Total</th></tr></thead><tbody>${rows}</tbody></table></div></section>`;
}

function entriesBox(rows: readonly Html[]): Html {
  if (rows.length === 0) {
    return html`<section class="box"><p class="empty">Nothing changed a figure in this month.</p></section>`;
  }
  return html`<section class="box" aria-labelledby="entries"><header><h2 id="entries">Entries</h2><span class="end soft">oldest first</span></header><div class="scroll" tabindex="0" role="group" aria-label="Entries"><table class="cards"><thead><tr><th scope="col">When (UTC)</th><th scope="col">Figure</th><th scope="col" class="number">Amount</th><th scope="col">Repository</th><th scope="col">Token</th><th scope="col">Event</th></tr></thead><tbody>
${rows}</tbody></table></div></section>`;
}

function rowOf(entry: LedgerEntry, { repositories, tokens }: LogNames): Html {
  const { at, member, delta, repositoryId, tokenId, eventId, operational } = entry;
  const repository = repositoryId === null ? null : (repositories.get(repositoryId) ?? 'a deleted one');
  const token = tokenId === null ? null : (tokens.get(tokenId) ?? 'one that is gone');
  // Reads by the minute are recorded together with others, in events that are no entries of the log.
  const event = !operational && html`<a href="/history/${eventId}">Event<span class="unseen"> of ${at}</span></a>`;
  return html`<tr><td>${minuteText(at)}</td><td data-label="Figure">${LABELS[member]}</td><td class="number" data-label="Amount">${deltaText(
    member,
    delta,
  )}</td><td class="wrap" data-label="Repository">${repository !== null && html`<bdi>${repository}</bdi>`}</td><td class="wrap" data-label="Token">${
    token !== null && html`<a href="/access-tokens/${tokenId}/activity"><bdi>${shownName(token)}</bdi></a>`
  }</td><td>${event}</td></tr>
`;
}

function minuteText(at: Timestamp): Html {
  return html`<time datetime="${at}">${at.slice(0, 10)} ${at.slice(11, 16)}</time>`;
}
