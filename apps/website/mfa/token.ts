/**
 * The page of one MFA token: its activation, its name and its deletion.
 *
 * Invariants: deleting asks for the password again. After a change that ends sessions, the person's own session goes
 * on under a new id.
 */
import { enrolmentEnd, isEnrolmentOver, type MfaToken } from '../../../core/account/mfa/state.ts';
import { type MfaTokenId, parseUuid } from '../../../core/kernel/ids.ts';
import type { JsonObject } from '../../../core/kernel/json.ts';
import { confirmPassword } from '../../../core/use-cases/accounts/account-settings.ts';
import { deleteMfaToken, listMfaTokens, renameMfaToken } from '../../../core/use-cases/signing-in/mfa-tokens.ts';
import { activatePasskey, promptForNewPasskey } from '../../../core/use-cases/signing-in/passkeys.ts';
import { activateTotp } from '../../../core/use-cases/signing-in/totp.ts';
import { confirmationOf, currentPassword } from '../identity/account-settings.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { errorSummary, type Fields, NO_FIELDS, postForm } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import { NEW_FORM, type RefusedForm, refusedForm } from '../layout/refused.ts';
import type { Site } from '../layout/room.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { nameField, nameIn } from './adding.ts';
import { codeField, codeIn } from './code-field.ts';
import { ANSWER, PASSKEY_SCRIPTS, passkeyButton } from './passkey-button.ts';
import { isSuspect, KINDS, stateMark } from './token-list.ts';

const FIELDS = {
  'mfa-token-name-length': 'name',
  'mfa-code-wrong': 'code',
  'mfa-code-used': 'code',
  'password-wrong': 'current_password',
} as const;

/** The form of the page that was refused, with what was entered as the name. */
interface Refused {
  readonly form: 'activate' | 'rename' | 'delete';
  readonly shown: RefusedForm;
  readonly name?: string;
}

type Handler = (visit: PersonVisit, token: MfaToken, fields: Fields) => Promise<SiteAnswer>;

export function tokenRoutes(site: Site): void {
  const { context } = site;
  /** Finds the person's own token that the path names. */
  const withToken = (handler: Handler) => async (visit: PersonVisit, fields: Fields) => {
    const id = parseUuid<MfaTokenId>(visit.params['id'] ?? '');
    const token = (await listMfaTokens(context, visit.person.account)).find((one) => one.id === id);
    return token === undefined ? notFound(visit) : handler(visit, token, fields);
  };
  const show = async (visit: PersonVisit, token: MfaToken, refused: Refused | null): Promise<SiteAnswer> =>
    showToken(visit, token, await promptOf(visit, token), refused);
  const promptOf = async (visit: PersonVisit, { id, kind, status }: MfaToken): Promise<JsonObject | null> => {
    if (kind !== 'passkey' || status !== 'pending' || !context.passkeys.available) return null;
    const prompt = await promptForNewPasskey(context, visit.person.account, id);
    return 'refused' in prompt ? null : prompt.options;
  };

  const showPlain = withToken((visit, token) => show(visit, token, null));
  site.page('/mfa-tokens/:id', (visit) => showPlain(visit, NO_FIELDS));
  site.formBeyondQuota(
    '/mfa-tokens/:id/activate',
    withToken(async (visit, token, fields) => {
      const origin = await visit.origin(null);
      const activated =
        token.kind === 'totp'
          ? await activateTotp(context, origin, token.id, codeIn(fields))
          : await activatePasskey(context, origin, token.id, fields.text(ANSWER));
      if ('refused' in activated)
        return show(visit, token, { form: 'activate', shown: refusedForm(activated.refused, FIELDS) });
      await visit.session.signIn({ account: visit.person.account, epoch: activated.epoch });
      return redirectTo('/mfa-tokens', `${token.name} is active: signing in takes a second factor now. ${SIGNED_OUT}`);
    }),
  );
  site.formBeyondQuota(
    '/mfa-tokens/:id/rename',
    withToken(async (visit, token, fields) => {
      const name = nameIn(fields);
      const renamed = await renameMfaToken(context, await visit.origin(null), token.id, name);
      if (!('refused' in renamed)) return redirectTo('/mfa-tokens', `The token is called ${name} now.`);
      return show(visit, token, { form: 'rename', shown: refusedForm(renamed.refused, FIELDS), name });
    }),
  );
  site.formBeyondQuota(
    '/mfa-tokens/:id/delete',
    withToken(async (visit, token, fields) => {
      const { account } = visit.person;
      const wrong = await confirmPassword(context, account, confirmationOf(visit, fields));
      if (wrong !== null) return show(visit, token, { form: 'delete', shown: refusedForm(wrong.refused, FIELDS) });
      const deleted = await deleteMfaToken(context, await visit.origin(null), token.id);
      if ('refused' in deleted)
        return show(visit, token, { form: 'delete', shown: refusedForm(deleted.refused, FIELDS) });
      await visit.session.signIn({ account, epoch: deleted.epoch });
      return redirectTo('/mfa-tokens', `${token.name} is deleted. ${SIGNED_OUT}`);
    }),
  );
}

const SIGNED_OUT = 'Every other browser is signed out; access tokens go on.';

function showToken(
  visit: PersonVisit,
  token: MfaToken,
  prompt: JsonObject | null,
  refused: Refused | null,
): SiteAnswer {
  const shownIn = (form: Refused['form']): RefusedForm => (refused?.form === form ? refused.shown : NEW_FORM);
  const { status, headers } = refused?.shown ?? NEW_FORM;
  const content = html`<div><h1>${token.name}</h1><p class="soft">${KINDS[token.kind]}, added ${timeAgo(token.createdAt, visit.now)} ${stateMark(token, visit.now)}</p></div>
${suspicion(visit, token)}${token.status === 'pending' && activation(visit, token, prompt, shownIn('activate'))}
${renaming(visit, token, refused?.name ?? token.name, shownIn('rename'))}
${deletion(visit, token, shownIn('delete'))}
<p><a href="/mfa-tokens">All MFA tokens</a></p>`;
  const scripts = prompt === null ? [] : PASSKEY_SCRIPTS;
  return showPage(
    page(visit, { title: `${token.name} · MFA tokens`, width: 'narrow', scripts }, content),
    status,
    headers,
  );
}

function suspicion(visit: PersonVisit, token: MfaToken): Html | false {
  if (token.kind !== 'passkey' || token.status !== 'active' || token.regressedAt === null || !isSuspect(token))
    return false;
  return html`<p class="note bad"><strong>This passkey may have been copied.</strong> Somebody signed with it ${timeAgo(
    token.regressedAt,
    visit.now,
  )} with a counter that the service had seen before, and was refused. If that was not a fault of the device, delete the passkey, and change your password.</p>`;
}

function activation(visit: PersonVisit, token: MfaToken, prompt: JsonObject | null, { errors }: RefusedForm): Html {
  const { id, kind } = token;
  const form = (fields: Html): Html =>
    postForm({ action: `/mfa-tokens/${id}/activate`, csrf: visit.csrf(), errors }, fields);
  const pending = (text: Html, fields: Html): Html =>
    html`<section class="box"><header><h2>Activate</h2></header><div class="inside stack"><p>${text}</p>${fields}</div></section>`;
  const end = timeAgo(enrolmentEnd(token), visit.now);
  if (isEnrolmentOver(token, visit.now)) {
    return pending(
      html`The time to activate this token ended ${end}. Delete it and add another.`,
      errorSummary(errors),
    );
  }
  if (kind === 'totp') {
    return pending(
      html`Enter the code that your app shows; the time for it ends ${end}. Its key was shown once: if the app does not have it, delete this token and add another.`,
      form(html`${codeField(errors)}<div class="row"><button class="button main">Activate</button></div>`),
    );
  }
  if (prompt === null) return pending(html`Browsers offer passkeys only on HTTPS, at a host name.`, html``);
  return pending(
    html`Your browser asks you for a device or a security key, which creates the passkey. The time for it ends ${end}.`,
    form(passkeyButton('create', prompt, 'Create passkey')),
  );
}

function renaming(visit: PersonVisit, { id }: MfaToken, name: string, { errors }: RefusedForm): Html {
  return html`<section class="box"><header><h2>Name</h2></header><div class="inside">${postForm(
    { action: `/mfa-tokens/${id}/rename`, csrf: visit.csrf(), errors },
    html`${nameField(name, errors)}<div class="row"><button class="button">Rename</button></div>`,
  )}</div></section>`;
}

function deletion(visit: PersonVisit, { id }: MfaToken, { errors }: RefusedForm): Html {
  return html`<section class="box"><header><h2>Delete</h2></header><div class="inside stack"><p class="soft">The token no longer signs you in. ${SIGNED_OUT} This cannot be undone.</p>${postForm(
    { action: `/mfa-tokens/${id}/delete`, csrf: visit.csrf(), errors },
    html`${currentPassword(errors)}<div class="row"><button class="button grave">Delete MFA token</button></div>`,
  )}</div></section>`;
}
