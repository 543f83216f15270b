/**
 * Deleting the account, and undoing that.
 *
 * Invariants: the page says what ends and when, and asks for the username and the password. Who signed in to a
 * closed account can only reopen it or sign out.
 */
import { ACCOUNT_CLOSED_SPAN_MS } from '../../../core/kernel/limits.ts';
import { closeAccount, reopenAccount } from '../../../core/use-cases/accounts/account-settings.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { buttonForm, type Fields, NO_FIELDS, postForm, textField } from '../layout/forms.ts';
import { html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { NEW_FORM, type RefusedForm, refusedForm, wrongForm } from '../layout/refused.ts';
import type { Site } from '../layout/room.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit, SignedInToClosed, Visit } from '../layout/visit.ts';
import { confirmationOf, currentPassword } from './account-settings.ts';
import { homeOf } from './home.ts';

const DELETE = '/settings/delete';
const REOPEN = '/sign-in/reopen';
const DAYS = ACCOUNT_CLOSED_SPAN_MS / 86_400_000;

export function deletionRoutes(site: Site): void {
  const { context } = site;
  site.page(DELETE, async (visit) => showDelete(visit, NO_FIELDS, NEW_FORM));
  site.formBeyondQuota(DELETE, async (visit, fields) => {
    if (fields.text('username').trim() !== visit.person.username) {
      return showDelete(visit, fields, wrongForm({ username: 'This is not your username.' }));
    }
    const closed = await closeAccount(context, await visit.origin(null), confirmationOf(visit, fields));
    if ('refused' in closed) {
      return showDelete(visit, fields, refusedForm(closed.refused, { 'password-wrong': 'current_password' }));
    }
    await visit.session.signOut();
    return redirectTo('/', `Your account is closed. Sign in within ${DAYS} days to undo this.`);
  });
  site.publicPage(REOPEN, async (visit) =>
    visit.closed === null ? redirectTo('/sign-in') : showReopen(visit, visit.closed),
  );
  site.publicForm(REOPEN, async (visit) => {
    if (visit.closed === null) return redirectTo('/sign-in');
    const { account, username, epoch } = visit.closed;
    const actor = { kind: 'user', id: account } as const;
    const sourceAddressRef = await context.sourceAddressRef(account, visit.address);
    const cause = { actor, requestId: visit.requestId, sourceAddressRef, causationId: null };
    const reopened = await reopenAccount(context, { account, cause, epoch });
    if ('refused' in reopened) return redirectTo('/sign-in', 'The account was not reopened. Sign in again.', 'failed');
    return redirectTo(homeOf(username), 'Your account is open again, with everything in it.');
  });
}

function showDelete(visit: PersonVisit, fields: Fields, { errors, status, headers }: RefusedForm): SiteAnswer {
  const { username } = visit.person;
  const content = html`<h1>Delete your account</h1>
<p>At once, every browser is signed out, and access tokens, Git and webhooks stop. Your repositories are seen by nobody.</p>
<p>For ${DAYS} days you can sign in and undo this. After that everything is erased for ever, and nobody else can take the name ${username}.</p>
<p class="soft">What stays: the record of what happened, with the names of user, tokens, repositories and refs, and what lies in your own buckets. The operator's backups and the database's write-ahead log hold copies until they expire.</p>
${postForm(
  { csrf: visit.csrf(), errors },
  html`${textField({
    name: 'username',
    label: `Type your username, ${username}`,
    value: fields.text('username'),
    error: errors['username'],
    autocomplete: 'off',
    required: true,
    verbatim: true,
  })}${currentPassword(errors)}<div class="row"><button class="button grave">Delete my account</button><a class="button quiet" href="/settings">Cancel</a></div>`,
)}`;
  return showPage(page(visit, { title: 'Delete your account', width: 'narrow' }, content), status, headers);
}

function showReopen(visit: Visit, { username, eraseAt }: SignedInToClosed): SiteAnswer {
  const content = html`<h1>This account is closed</h1>
<p>You deleted the account ${username}. It will be erased ${timeAgo(eraseAt, visit.now)}; until then you can open it again, with everything in it.</p>
<div class="row">${buttonForm({ action: REOPEN, csrf: visit.csrf() }, html`<button class="button main">Open my account again</button>`)}${buttonForm(
    { action: '/sign-out', csrf: visit.csrf() },
    html`<button class="button">Sign out</button>`,
  )}</div>`;
  return showPage(page(visit, { title: 'This account is closed', width: 'narrow' }, content));
}
