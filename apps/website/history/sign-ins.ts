/**
 * Who signed in, what failed, and which reads were refused: today's, and those of the days before.
 *
 * Invariants: what strangers sent is shown as text. A page shows at most ten rows of each kind of a day, and counts the
 * others.
 */
import type { AccessTokenId } from '../../../core/kernel/ids.ts';
import { parseUuid } from '../../../core/kernel/ids.ts';
import { PAGE_ROWS_BYTES_MAX } from '../../../core/kernel/limits.ts';
import { cutText } from '../../../core/kernel/text.ts';
import type { VaultDisclosure, VaultRef } from '../../../core/kernel/vault-ref.ts';
import { parseVaultRef } from '../../../core/kernel/vault-ref.ts';
import type { SignInFacts } from '../../../core/ports/sign-ins.ts';
import { listSignIns, type SignInDay } from '../../../core/use-cases/auditing/list-sign-ins.ts';
import { type LogNames, namesInLog } from '../../../core/use-cases/reading/names-of-log-entries.ts';
import { SIGN_INS_QUERY } from '../../api/schemas/sign-ins.ts';
import type { SiteContext } from '../context.ts';
import { agentText } from '../identity/agent.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { firstWithin } from '../layout/weight.ts';
import { counted, shownName } from '../repositories/shown-text.ts';

export const SIGN_INS_PAGE = '/history/sign-ins';
/** Rows of each kind that a day shows; the API has all that are named. */
export const SIGN_IN_ROWS_MAX = 10;
/** UTF-16 code units of the name of a browser that a row has beside its short one. */
export const AGENT_LENGTH_MAX = 120;

export async function showSignIns(context: SiteContext, visit: PersonVisit): Promise<SiteAnswer> {
  const text = visit.url.searchParams.get('before');
  const asked = SIGN_INS_QUERY.safeParse(text === null ? {} : { before: text });
  if (!asked.success) return notFound(visit);
  const { before = null, limit } = asked.data;
  const { account } = visit.person;
  const { today, days, hasMore } = await listSignIns(context, { account, seen: visit.position, before, limit });
  const refused = [today.facts, ...days.flatMap(({ facts }) => facts ?? [])].flatMap(({ refusedReads }) =>
    refusedReads.slice(0, SIGN_IN_ROWS_MAX),
  );
  const names = await namesInLog(context, account, {
    repositories: [],
    tokens: refused.flatMap(({ tokenId }) => (tokenId === null ? [] : (parseUuid<AccessTokenId>(tokenId) ?? []))),
  });
  const head = html`<h1 class="title">Sign-ins</h1><p>Who signed in to your account, what failed, and which reads were refused to your tokens. <a href="/history">All events</a></p>`;
  const first = { title: 'Today', note: 'within a minute and a half' };
  const boxes = [
    ...(text === null ? [factsBox(visit, first, today, names)] : []),
    ...days.map((day) => dayBox(visit, day, names)),
  ];
  const shown = firstWithin(boxes, PAGE_ROWS_BYTES_MAX);
  const left = boxes.length - shown.length;
  const next = days.length === 0 ? null : nextBefore(days, left);
  const content = html`${shown}<nav class="row pager" aria-label="Pages">${
    text !== null && html`<a class="button" rel="first" href="${SIGN_INS_PAGE}">Newest</a>`
  }${
    (hasMore || left > 0) &&
    next !== null &&
    html`<a class="button" rel="next" href="${`${SIGN_INS_PAGE}?before=${String(next)}`}">Older</a>`
  }<a class="button quiet" href="/settings">Where you are signed in</a></nav>`;
  return showPage(page(visit, { title: 'Sign-ins', head }, content));
}

/** The next page begins behind the last day that this one shows, which leaves some of its days out. */
function nextBefore(days: readonly SignInDay[], leftOut: number): number | null {
  const last = days[days.length - leftOut - 1];
  const newest = days[0];
  return last?.sequence ?? (newest === undefined ? null : newest.sequence + 1);
}

function dayBox(visit: PersonVisit, { day, eventId, facts, openings }: SignInDay, names: LogNames): Html {
  const note = html`<a href="/history/${eventId}">Event<span class="unseen"> of ${day}</span></a>`;
  if (facts === null) {
    return html`<section class="box"><header><h2>${day}</h2><span class="end soft">${note}</span></header><p class="empty">An older version of the service recorded none of this.</p></section>`;
  }
  return factsBox(visit, { title: day, note }, { facts, openings }, names);
}

interface Shown {
  readonly facts: SignInFacts;
  readonly openings: ReadonlyMap<VaultRef, VaultDisclosure>;
}

function factsBox(
  visit: PersonVisit,
  { title, note }: { readonly title: string; readonly note: Content },
  { facts, openings }: Shown,
  names: LogNames,
): Html {
  const { signIns, moreSignIns, failures, refusedReads } = facts;
  const opened = (ref: string | null): string | null => {
    const known = ref === null ? null : parseVaultRef(ref);
    return known === null ? null : (openings.get(known)?.value ?? null);
  };
  const rows = [
    ...signIns.slice(0, SIGN_IN_ROWS_MAX).map((one) => {
      const [address, agent] = [opened(one.sourceAddressRef), opened(one.userAgentRef)];
      return html`<li class="created">${timeAgo(one.at, visit.now)}<span class="what">Signed in with ${one.factors.map(factorText).join(' and ')}</span><span class="by">${
        agent === null
          ? 'an unknown browser'
          : html`<span title="${shownName(cutText(agent, AGENT_LENGTH_MAX))}">${shownName(agentText(agent))}</span>`
      }${address !== null && ` · from ${shownName(address)}`}</span></li>
`;
    }),
    more(moreSignIns + Math.max(0, signIns.length - SIGN_IN_ROWS_MAX), 'more sign-in'),
    ...failures.map(
      ({ factor, reason, count }) =>
        html`<li class="force"><span class="what">${counted(count, 'failed sign-in')}: ${failureText(factor, reason)}</span></li>
`,
    ),
    ...refusedReads.slice(0, SIGN_IN_ROWS_MAX).map(
      ({ tokenId, reason, count }) =>
        html`<li class="force"><span class="what">${counted(count, 'refused read')}: ${shownName(REASONS[reason] ?? reason)}</span><span class="by">${tokenText(tokenId, names)}</span></li>
`,
    ),
    more(Math.max(0, refusedReads.length - SIGN_IN_ROWS_MAX), 'more refused token'),
  ];
  const shown = rows.filter((row) => row !== null);
  return html`<section class="box"><header><h2>${title}</h2><span class="end soft">${note}</span></header>${
    shown.length === 0
      ? html`<p class="empty">Nobody signed in, and nothing was refused.</p>`
      : html`<ol class="strata events">${shown}</ol>`
  }</section>`;
}

function more(count: number, what: string): Html | null {
  return count === 0
    ? null
    : html`<li><span class="what soft">${counted(count, what)}, which the API and the day’s event name</span></li>
`;
}

function factorText(factor: string): string {
  return FACTORS[factor] ?? shownName(factor);
}

const FACTORS: Readonly<Record<string, string>> = {
  password: 'the password',
  totp: 'the code of an app',
  passkey: 'a passkey',
};

function failureText(factor: string, reason: string | null): string {
  const of = factorText(factor);
  return reason === null ? of : `${of} (${shownName(FAILURES[reason] ?? reason)})`;
}

const FAILURES: Readonly<Record<string, string>> = {
  'password-wrong': 'wrong',
  'mfa-code-wrong': 'wrong',
  'mfa-code-used': 'used before',
  'mfa-passkey-refused': 'not verified',
  'mfa-passkey-challenge-over': 'too late, or twice',
  'mfa-passkey-counter-regressed': 'perhaps copied',
};

const REASONS: Readonly<Record<string, string>> = {
  'grant-missing': 'the token lacks the grant',
  'scope-missing': 'the token lacks the scope',
  'repository-not-found': 'no repository that the token sees',
  'rate-exceeded': 'too many requests',
  'transfer-quota-reached': 'the transfer of the month is used up',
  'token-expired': 'the token has expired',
  'token-revoked': 'the token was revoked',
};

function tokenText(tokenId: string | null, { tokens }: LogNames): Content {
  const id = tokenId === null ? null : parseUuid<AccessTokenId>(tokenId);
  if (id === null) return 'several tokens';
  const name = tokens.get(id);
  return html`<a href="/access-tokens/${id}/activity">${name === undefined ? 'a token that is gone' : html`the token <bdi>${shownName(name)}</bdi>`}</a>`;
}
