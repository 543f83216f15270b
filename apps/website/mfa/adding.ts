/**
 * Adds MFA tokens: the forms of both kinds, and the key of an authenticator app.
 *
 * Invariants: adding asks for the password again. The key is shown once, in the answer to the form that made it.
 */
import { MFA_TOKEN_NAME_LENGTH_MAX } from '../../../core/kernel/limits.ts';
import { confirmPassword } from '../../../core/use-cases/accounts/account-settings.ts';
import { beginPasskeyEnrolment } from '../../../core/use-cases/signing-in/passkeys.ts';
import { beginTotpEnrolment, type NewTotp } from '../../../core/use-cases/signing-in/totp.ts';
import { confirmationOf, currentPassword } from '../identity/account-settings.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { copyBox } from '../layout/copy-box.ts';
import { type FieldErrors, type Fields, NO_FIELDS, postForm, textField } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { NEW_FORM, type RefusedForm, refusedForm } from '../layout/refused.ts';
import type { Site } from '../layout/room.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { codeField } from './code-field.ts';
import { qrCode } from './qr.ts';

const FIELDS = { 'mfa-token-name-length': 'name', 'password-wrong': 'current_password' } as const;

export function addingRoutes(site: Site): void {
  const { context } = site;
  site.page('/mfa-tokens/add/app', async (visit) => showAddApp(visit, NO_FIELDS, NEW_FORM));
  site.formBeyondQuota('/mfa-tokens/add/app', async (visit, fields) => {
    const wrong = await confirmPassword(context, visit.person.account, confirmationOf(visit, fields));
    if (wrong !== null) return showAddApp(visit, fields, refusedForm(wrong.refused, FIELDS));
    const begun = await beginTotpEnrolment(context, await visit.origin(null), nameIn(fields));
    if ('refused' in begun) return showAddApp(visit, fields, refusedForm(begun.refused, FIELDS));
    return showKey(visit, begun);
  });
  site.page('/mfa-tokens/add/passkey', async (visit) => showAddPasskey(visit, NO_FIELDS, NEW_FORM));
  site.formBeyondQuota('/mfa-tokens/add/passkey', async (visit, fields) => {
    const wrong = await confirmPassword(context, visit.person.account, confirmationOf(visit, fields));
    if (wrong !== null) return showAddPasskey(visit, fields, refusedForm(wrong.refused, FIELDS));
    const begun = await beginPasskeyEnrolment(context, await visit.origin(null), nameIn(fields));
    if ('refused' in begun) return showAddPasskey(visit, fields, refusedForm(begun.refused, FIELDS));
    return redirectTo(`/mfa-tokens/${begun.id}`);
  });
}

export function nameIn(fields: Fields): string {
  return fields.text('name').trim();
}

export function nameField(value: string, errors: FieldErrors): Html {
  return textField({
    name: 'name',
    label: 'Name',
    value,
    hint: 'What you call the device. The name stays in your history.',
    error: errors['name'],
    autocomplete: 'off',
    required: true,
    lengthMax: MFA_TOKEN_NAME_LENGTH_MAX,
  });
}

function showAddApp(visit: PersonVisit, fields: Fields, refused: RefusedForm): SiteAnswer {
  const text =
    'An authenticator app on your phone or in your password manager shows a new code of six digits every 30 seconds.';
  return showAdding(visit, { title: 'Add an authenticator app', text, button: 'Continue' }, fields, refused);
}

function showAddPasskey(visit: PersonVisit, fields: Fields, refused: RefusedForm): SiteAnswer {
  const text =
    'A passkey is a key in your device, your password manager or a security key. You unlock it with a finger, your face or a PIN.';
  return showAdding(visit, { title: 'Add a passkey', text, button: 'Continue' }, fields, refused);
}

function showAdding(
  visit: PersonVisit,
  { title, text, button }: { readonly title: string; readonly text: string; readonly button: string },
  fields: Fields,
  { errors, status, headers }: RefusedForm,
): SiteAnswer {
  const content = html`<h1>${title}</h1><p>${text}</p>
${postForm(
  { csrf: visit.csrf(), errors },
  html`${nameField(fields.text('name'), errors)}${currentPassword(errors)}<div class="row"><button class="button main">${button}</button><a class="button quiet" href="/mfa-tokens">Cancel</a></div>`,
)}`;
  return showPage(page(visit, { title, width: 'narrow' }, content), status, headers);
}

function showKey(visit: PersonVisit, { id, seed, url }: NewTotp): SiteAnswer {
  const title = 'Copy the key into your app';
  const content = html`<h1>${title}</h1>
<p>Scan the code with your authenticator app, or type the key into it. It is shown only now.</p>
<div>${qrCode(url, 'The key as a QR code; it is written out below')}</div>
${copyBox(inFours(seed), 'the key')}
<p class="soft">On the device that the app is on, <a href="${url}">open the app with this link</a>. An app that asks: time-based, SHA-1, six digits, 30 seconds.</p>
<h2>Then enter the code that the app shows, within the hour</h2>
${postForm(
  { action: `/mfa-tokens/${id}/activate`, csrf: visit.csrf() },
  html`${codeField({})}<p class="soft">From then on, signing in takes a second factor. Every other browser is signed out; access tokens go on.</p><div class="row"><button class="button main">Activate</button></div>`,
)}`;
  return showPage(page(visit, { title, width: 'narrow' }, content));
}

/** Apps ignore the blanks, which help people who type. */
function inFours(seed: string): string {
  return seed.replace(/(.{4})(?=.)/g, '$1 ');
}
