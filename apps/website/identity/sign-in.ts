/**
 * Sign-in with a username or an email address and the password.
 *
 * Invariants: the answer to a wrong password and to an unknown account is the same page. The person is sent on only
 * to a path of this site.
 */
import { EMAIL_LENGTH_MAX, PASSWORD_LENGTH_MAX } from '../../../core/kernel/limits.ts';
import { signIn } from '../../../core/use-cases/signing-in/sign-in.ts';
import { upToDate } from '../../front-door/admission.ts';
import { nextPath, redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { type Fields, hiddenField, NO_FIELDS, postForm, textField } from '../layout/forms.ts';
import { html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { NEW_FORM, type RefusedForm, refusedForm } from '../layout/refused.ts';
import type { Site } from '../layout/room.ts';
import type { Visit } from '../layout/visit.ts';
import { homeOf } from './home.ts';
import { senderOf } from './sender.ts';

/** Where a closed account can be reopened, and where the second factor is asked for. */
const REOPEN = '/sign-in/reopen';
const SECOND_FACTOR = '/sign-in/verify-mfa';

export function signInRoutes(site: Site): void {
  const { context } = site;
  site.publicPage('/sign-in', async (visit) => {
    const next = nextPath(visit.url.searchParams.get('next') ?? '');
    if (visit.person !== null) return redirectTo(next ?? homeOf(visit.person.username));
    if (visit.closed !== null) return redirectTo(REOPEN);
    return showSignIn(visit, NO_FIELDS, next, NEW_FORM);
  });
  site.publicForm('/sign-in', async (visit, fields) => {
    const next = nextPath(fields.text('next'));
    // A node that is behind the log would still take a password that was changed.
    await upToDate(context);
    const signedIn = await signIn(context, senderOf(visit), {
      login: fields.text('login'),
      password: fields.text('password'),
      knownBrowser: visit.mayBeKnown ? visit.knownBrowser : null,
    });
    if ('refused' in signedIn) return showSignIn(visit, fields, next, refusedForm(signedIn.refused, FIELDS));
    const { username, status, secondFactor } = signedIn;
    if (secondFactor) {
      await visit.session.awaitSecondFactor({ ...signedIn, next: next ?? homeOf(username) });
      return redirectTo(SECOND_FACTOR);
    }
    await visit.session.signIn(signedIn);
    return redirectTo(status === 'closed' ? REOPEN : (next ?? homeOf(username)));
  });
}

const FIELDS = { 'sign-in-failed': 'password' } as const;

function showSignIn(
  visit: Visit,
  fields: Fields,
  next: string | null,
  { errors, status, headers }: RefusedForm,
): SiteAnswer {
  const content = html`<h1>Sign in</h1>${postForm(
    { action: '/sign-in', csrf: visit.csrf(), errors },
    html`${next !== null && hiddenField('next', next)}${textField({
      name: 'login',
      label: 'Username or email',
      value: fields.text('login'),
      autocomplete: 'username',
      required: true,
      lengthMax: EMAIL_LENGTH_MAX,
      verbatim: true,
    })}${textField({
      name: 'password',
      type: 'password',
      label: 'Password',
      error: errors['password'],
      autocomplete: 'current-password',
      required: true,
      lengthMax: PASSWORD_LENGTH_MAX,
    })}<div class="row"><button class="button main">Sign in</button>${
      visit.signUpOpen && html`<span class="soft">New here? <a href="/sign-up">Sign up</a></span>`
    }<a class="end soft" href="/forgotten-password">Forgotten password?</a></div>`,
  )}`;
  return showPage(page(visit, { title: 'Sign in', width: 'narrow' }, content), status, headers);
}
