/**
 * The settings of the account: what it is, its sessions, and the forms that change its password and email address.
 *
 * Invariants: every change of who may enter asks for the password again.
 */
import { EMAIL_LENGTH_MAX, PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from '../../../core/kernel/limits.ts';
import {
  type Confirmation,
  changeOwnEmail,
  changeOwnPassword,
  readOwnEmail,
} from '../../../core/use-cases/accounts/account-settings.ts';
import { listSessions } from '../../../core/use-cases/signing-in/list-sessions.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { type FieldErrors, type Fields, NO_FIELDS, postForm, textField } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { NEW_FORM, type RefusedForm, refusedForm, wrongForm } from '../layout/refused.ts';
import type { Site } from '../layout/room.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { sessionList } from './session-list.ts';

const PASSWORD = '/settings/password';
const EMAIL = '/settings/email';

export function accountRoutes(site: Site): void {
  const { context } = site;
  site.page('/settings', async (visit) => {
    const { account, principal } = visit.person;
    const email = await readOwnEmail(context, account);
    return showSettings(visit, email ?? '', sessionList(visit, await listSessions(context, account, principal.epoch)));
  });
  site.page(PASSWORD, async (visit) => showPassword(visit, NEW_FORM));
  site.formBeyondQuota(PASSWORD, async (visit, fields) => {
    if (fields.text('new_password') !== fields.text('new_password_again')) {
      return showPassword(visit, wrongForm({ new_password_again: 'The two new passwords differ.' }));
    }
    const origin = await visit.origin(null);
    const changed = await changeOwnPassword(
      context,
      origin,
      confirmationOf(visit, fields),
      fields.text('new_password'),
    );
    if ('refused' in changed) {
      const fieldOf = { 'password-length': 'new_password', 'password-wrong': 'current_password' };
      return showPassword(visit, refusedForm(changed.refused, fieldOf));
    }
    await visit.session.signIn({ account: visit.person.account, epoch: changed.epoch });
    return redirectTo('/settings', 'Your password is changed. Every other browser is signed out; access tokens go on.');
  });
  site.page(EMAIL, async (visit) => showEmail(visit, NO_FIELDS, NEW_FORM));
  site.formBeyondQuota(EMAIL, async (visit, fields) => {
    const origin = await visit.origin(null);
    const wanted = fields.text('email').trim();
    const changed = await changeOwnEmail(context, origin, confirmationOf(visit, fields), wanted);
    if ('refused' in changed) {
      const fieldOf = { 'email-invalid': 'email', 'email-taken': 'email', 'password-wrong': 'current_password' };
      return showEmail(visit, fields, refusedForm(changed.refused, fieldOf));
    }
    return redirectTo('/settings', 'Your email address is changed.');
  });
}

/** The password that the person typed into the field of `currentPassword`. */
export function confirmationOf(visit: PersonVisit, fields: Fields): Confirmation {
  const { address } = visit;
  const browser = visit.knownBrowser(visit.person.account);
  return { password: fields.text('current_password'), address, browser };
}

/** The field that asks for the password again. */
export function currentPassword(errors: FieldErrors): Html {
  return textField({
    name: 'current_password',
    type: 'password',
    label: 'Your current password',
    error: errors['current_password'],
    autocomplete: 'current-password',
    required: true,
    lengthMax: PASSWORD_LENGTH_MAX,
  });
}

function showSettings(visit: PersonVisit, email: string, sessions: Html): SiteAnswer {
  const { username } = visit.person;
  const content = html`<h1>Settings</h1>
<section class="box"><header><h2>Account</h2></header><div class="inside stack"><dl class="facts"><dt>Username</dt><dd>${username}</dd><dt>Email</dt><dd>${email}</dd></dl>
<div class="row"><a class="button" href="${EMAIL}">Change email</a><a class="button" href="${PASSWORD}">Change password</a><a class="button" href="/mfa-tokens">MFA tokens</a></div></div></section>
${sessions}
<section class="box"><header><h2>Delete account</h2></header><div class="inside stack"><p class="soft">Closes your account at once. You can undo it for 14 days; then everything is erased.</p>
<div class="row"><a class="button grave" href="/settings/delete">Delete account…</a></div></div></section>`;
  return showPage(page(visit, { title: 'Settings', width: 'middle' }, content));
}

function showPassword(visit: PersonVisit, { errors, status, headers }: RefusedForm): SiteAnswer {
  const newPassword = {
    type: 'password',
    autocomplete: 'new-password',
    required: true,
    lengthMax: PASSWORD_LENGTH_MAX,
  };
  const content = html`<h1>Change your password</h1>
<p class="soft">Every other browser that you are signed in with is signed out. Access tokens go on working.</p>
${postForm(
  { csrf: visit.csrf(), errors },
  html`${currentPassword(errors)}${textField({
    ...newPassword,
    type: 'password',
    name: 'new_password',
    label: 'New password',
    error: errors['new_password'],
    hint: `At least ${PASSWORD_LENGTH_MIN} characters.`,
  })}${textField({
    ...newPassword,
    type: 'password',
    name: 'new_password_again',
    label: 'New password, again',
    error: errors['new_password_again'],
  })}<div class="row"><button class="button main">Change password</button><a class="button quiet" href="/settings">Cancel</a></div>`,
)}`;
  return showPage(page(visit, { title: 'Change your password', width: 'narrow' }, content), status, headers);
}

function showEmail(visit: PersonVisit, fields: Fields, { errors, status, headers }: RefusedForm): SiteAnswer {
  const content = html`<h1>Change your email address</h1>
<p class="soft">The address is shown to nobody and gets no mail. You can sign in with it.</p>
${postForm(
  { csrf: visit.csrf(), errors },
  html`${textField({
    name: 'email',
    type: 'email',
    label: 'New email',
    value: fields.text('email'),
    error: errors['email'],
    autocomplete: 'email',
    required: true,
    lengthMax: EMAIL_LENGTH_MAX,
  })}${currentPassword(errors)}<div class="row"><button class="button main">Change email</button><a class="button quiet" href="/settings">Cancel</a></div>`,
)}`;
  return showPage(page(visit, { title: 'Change your email address', width: 'narrow' }, content), status, headers);
}
