/**
 * The second step of a sign-in: a code of an app, or a passkey.
 *
 * Invariants: only a browser whose person has just given the right password reaches the step, and for five minutes.
 */
import { listMfaTokens } from '../../../core/use-cases/signing-in/mfa-tokens.ts';
import { promptForPasskey } from '../../../core/use-cases/signing-in/passkeys.ts';
import { giveSecondFactor, type SecondFactor } from '../../../core/use-cases/signing-in/second-factor.ts';
import { upToDate } from '../../front-door/admission.ts';
import { contactText } from '../identity/contact.ts';
import { senderOf } from '../identity/sender.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { buttonForm, errorSummary, type Fields, postForm } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { NEW_FORM, type RefusedForm, refusedForm } from '../layout/refused.ts';
import type { Site } from '../layout/room.ts';
import { timeAgo } from '../layout/times.ts';
import type { PendingSignIn, Visit } from '../layout/visit.ts';
import { codeField, codeIn } from './code-field.ts';
import { ANSWER, PASSKEY_SCRIPTS, passkeyButton } from './passkey-button.ts';

const VERIFY = '/sign-in/verify-mfa';
const FIELDS = { 'mfa-code-wrong': 'code', 'mfa-code-used': 'code' } as const;

export function verifyRoutes(site: Site): void {
  const { context } = site;
  const show = async (visit: Visit, pending: PendingSignIn, refused: RefusedForm): Promise<SiteAnswer> => {
    const { account } = pending;
    const tokens = await listMfaTokens(context, account);
    const hasApp = tokens.some(({ kind, status }) => kind === 'totp' && status === 'active');
    const prompt = context.passkeys.available ? await promptForPasskey(context, account) : null;
    const passkey = prompt === null ? null : passkeyButton('get', prompt.options, 'Use a passkey');
    return showVerify(visit, pending, { hasApp, passkey, contact: contactText(context.operatorContact) }, refused);
  };
  site.publicPage(VERIFY, async (visit) =>
    visit.pending === null ? redirectTo('/sign-in') : show(visit, visit.pending, NEW_FORM),
  );
  site.publicForm(VERIFY, async (visit, fields) => {
    const { pending } = visit;
    if (pending === null) return redirectTo('/sign-in', 'The second step took too long. Sign in again.', 'failed');
    const { account, epoch, next } = pending;
    const browser = visit.knownBrowser(account);
    const factor = factorIn(fields);
    await upToDate(context);
    const given = await giveSecondFactor(context, senderOf(visit), { account, epoch, factor, browser });
    if ('refused' in given) {
      if (given.refused.code !== 'session-no-longer-valid') {
        return show(visit, pending, refusedForm(given.refused, FIELDS));
      }
      await visit.session.signOut();
      return redirectTo('/sign-in', 'Your account changed meanwhile. Sign in again.', 'failed');
    }
    await visit.session.signIn({ account, epoch: given.epoch });
    return redirectTo(given.status === 'closed' ? '/sign-in/reopen' : next);
  });
}

function factorIn(fields: Fields): SecondFactor {
  const answer = fields.text(ANSWER);
  return answer === '' ? { kind: 'totp', code: codeIn(fields) } : { kind: 'passkey', answer };
}

interface Ways {
  readonly hasApp: boolean;
  readonly passkey: Html | null;
  readonly contact: Html;
}

function showVerify(
  visit: Visit,
  { expiresAt }: PendingSignIn,
  { hasApp, passkey, contact }: Ways,
  { errors, status, headers }: RefusedForm,
): SiteAnswer {
  const csrf = visit.csrf();
  const code = html`${codeField(errors)}<div class="row"><button class="button main">Sign in</button></div>`;
  const content = html`<div><h1>Second step</h1><p class="soft">Your password was right. Show your second factor; the time for it ends ${timeAgo(
    expiresAt,
    visit.now,
  )}.</p></div>
${hasApp ? postForm({ action: VERIFY, csrf, errors }, code) : errorSummary(errors)}
${hasApp && passkey !== null && html`<p class="soft">Or without a code:</p>`}
${passkey !== null && postForm({ action: VERIFY, csrf }, passkey)}
<details><summary class="hint">You cannot use any of your MFA tokens?</summary><p class="soft">There are no recovery codes. Whoever runs this service can remove your tokens. ${contact}</p></details>
${buttonForm({ action: '/sign-out', csrf }, html`<button class="button">Cancel</button>`)}`;
  const scripts = passkey === null ? [] : PASSKEY_SCRIPTS;
  return showPage(page(visit, { title: 'Second step', width: 'narrow', scripts }, content), status, headers);
}
