/** The list of MFA tokens, with what they guard and how many there may be. */
import { enrolmentEnd, isEnrolmentOver, type MfaToken, pendingPasskey } from '../../../core/account/mfa/state.ts';
import type { Timestamp } from '../../../core/kernel/ids.ts';
import { MFA_TOKENS_MAX } from '../../../core/kernel/limits.ts';
import { contactText } from '../identity/contact.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';

export const KINDS = { totp: 'Authenticator app', passkey: 'Passkey' } as const;

export interface ListOptions {
  /** Whether browsers offer passkeys at the site's address. */
  readonly passkeysAvailable: boolean;
  readonly operatorContact: string | null;
}

export function showTokens(visit: PersonVisit, tokens: readonly MfaToken[], options: ListOptions): SiteAnswer {
  const content = html`<h1>MFA tokens</h1>
<p>A second factor guards your sign-in on this site: besides the password it takes a code from an app, or a passkey. Git and the API take access tokens, which no second factor guards.</p>
${tokens.length === 0 ? nothingYet() : tokenList(visit, tokens)}
${adding(visit, tokens, options)}
<p class="note">There are no recovery codes. Add two tokens on two devices, so that you can still sign in when you lose one. If you lose all of them, only whoever runs this service can remove them. ${contactText(options.operatorContact)}</p>`;
  return showPage(page(visit, { title: 'MFA tokens', width: 'middle' }, content));
}

function nothingYet(): Html {
  return html`<div class="box empty"><h2>No MFA tokens yet</h2><p>Your password alone signs you in.</p></div>`;
}

function tokenList(visit: PersonVisit, tokens: readonly MfaToken[]): Html {
  return html`<section class="box"><header><h2>Your tokens</h2></header><ul class="strata">${tokens.map((token) =>
    tokenItem(visit, token),
  )}</ul></section>`;
}

function tokenItem(visit: PersonVisit, token: MfaToken): Html {
  const { id, name, kind, createdAt } = token;
  const usedAt = token.status === 'active' ? token.lastUsedAt : null;
  const used = usedAt === null ? notUsed(visit, token) : html`last used ${timeAgo(usedAt, visit.now)}`;
  return html`<li>${timeAgo(createdAt, visit.now)}<div class="what"><a href="/mfa-tokens/${id}">${name}</a> ${stateMark(
    token,
    visit.now,
  )}</div><div class="by">${KINDS[kind]}, ${used}</div></li>`;
}

function notUsed(visit: PersonVisit, token: MfaToken): Html {
  if (token.status === 'active') return html`not used yet`;
  const end = timeAgo(enrolmentEnd(token), visit.now);
  return isEnrolmentOver(token, visit.now)
    ? html`the time to activate it ended ${end}`
    : html`the time to activate it ends ${end}`;
}

export function stateMark(token: MfaToken, now: Timestamp): Html {
  if (isEnrolmentOver(token, now)) return html`<span class="mark bad">too late</span>`;
  if (token.status === 'pending') return html`<span class="mark warn">pending</span>`;
  if (isSuspect(token)) return html`<span class="mark bad">may be copied</span>`;
  return html`<span class="mark good">active</span>`;
}

/** Whether the token's counter went back, as that of a copied passkey does. */
export function isSuspect(token: MfaToken): boolean {
  return token.kind === 'passkey' && token.status === 'active' && token.regressedAt !== null;
}

/** The ways to add a token, or why there is none now. */
function adding(visit: PersonVisit, tokens: readonly MfaToken[], { passkeysAvailable }: ListOptions): Html {
  const rule = html`<p class="soft">You have ${tokens.length} of at most ${MFA_TOKENS_MAX} tokens, pending ones included. Only one passkey can be pending at a time.</p>`;
  if (tokens.length >= MFA_TOKENS_MAX) return html`${rule}<p class="note">Delete a token before you add another.</p>`;
  return html`${rule}<div class="row"><a class="button main" href="/mfa-tokens/add/app">Add an authenticator app</a>${
    whyNoPasskey(visit, tokens, passkeysAvailable) ??
    html`<a class="button" href="/mfa-tokens/add/passkey">Add a passkey</a>`
  }</div>`;
}

/** Says why no passkey can be added now; null if one can. */
function whyNoPasskey(visit: PersonVisit, tokens: readonly MfaToken[], passkeysAvailable: boolean): Html | null {
  const pending = pendingPasskey(tokens, visit.now);
  if (pending !== undefined) {
    return html`<span class="soft">The passkey <a href="/mfa-tokens/${pending.id}">${pending.name}</a> is pending. Activate or delete it before you add another.</span>`;
  }
  if (passkeysAvailable) return null;
  return html`<span class="soft">Browsers offer passkeys only on HTTPS, at a host name.</span>`;
}
