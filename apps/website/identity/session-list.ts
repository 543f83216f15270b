/** The list of sessions on the settings page, with buttons that revoke one or all others; sign-out. */
import type { ListedSession } from '../../../core/use-cases/signing-in/list-sessions.ts';
import { recordSignOut, revokeOtherSessions, revokeSession } from '../../../core/use-cases/signing-in/sessions.ts';
import { redirectTo } from '../layout/answer.ts';
import { buttonForm } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { notFound } from '../layout/problems.ts';
import type { Site } from '../layout/room.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { agentText } from './agent.ts';
import { senderOf } from './sender.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function sessionRoutes(site: Site): void {
  const { context } = site;
  site.formBeyondQuota('/settings/sessions/revoke-others', async (visit) => {
    await revokeOtherSessions(context, senderOf(visit), visit.person);
    return redirectTo('/settings', 'Every other browser is signed out.');
  });
  site.formBeyondQuota('/settings/sessions/:handle/revoke', async (visit) => {
    const { handle = '' } = visit.params;
    const revoked = UUID.test(handle) && (await revokeSession(context, senderOf(visit), visit.person.account, handle));
    if (!revoked) return notFound(visit);
    if (handle !== visit.person.session) return redirectTo('/settings', 'That browser is signed out.');
    await visit.session.signOut();
    return redirectTo('/', 'You are signed out.');
  });
  site.publicForm('/sign-out', async (visit) => {
    await visit.session.signOut();
    const { person } = visit;
    if (person !== null) await recordSignOut(context, senderOf(visit), person);
    return redirectTo('/', 'You are signed out.');
  });
}

export function sessionList(visit: PersonVisit, sessions: readonly ListedSession[]): Html {
  const others = sessions.length > 1;
  const all = buttonForm(
    { action: '/settings/sessions/revoke-others', csrf: visit.csrf() },
    html`<button class="button quiet">Sign out all others</button>`,
  );
  return html`<section class="box"><header><h2>Where you are signed in</h2>${
    others && html`<span class="end">${all}</span>`
  }</header>
<ul class="strata">${sessions.map((session) => sessionItem(visit, session))}</ul></section>`;
}

function sessionItem(visit: PersonVisit, { handle, createdAt, seenAt, address, agent }: ListedSession): Html {
  const isHere = handle === visit.person.session;
  const browser = agent === null ? 'An unknown browser' : agentText(agent);
  const revoke = buttonForm(
    { action: `/settings/sessions/${handle}/revoke`, csrf: visit.csrf() },
    html`<button class="button">Sign out<span class="unseen"> ${browser}</span></button>`,
  );
  return html`<li${isHere && html` class="here"`}>${timeAgo(seenAt, visit.now)}<div class="what">${
    agent === null ? browser : html`<span title="${agent}">${browser}</span>`
  }${isHere && html` <span class="mark good">this browser</span>`}</div><div class="by">${
    address !== null && html`from ${address}, `
  }signed in ${timeAgo(createdAt, visit.now)}</div><div class="do">${!isHere && revoke}</div></li>`;
}
