/** Sign-up: the form that makes an account, and signs its person in. */
import {
  EMAIL_LENGTH_MAX,
  PASSWORD_LENGTH_MAX,
  PASSWORD_LENGTH_MIN,
  USERNAME_LENGTH_MAX,
} from '../../../core/kernel/limits.ts';
import { creationRefusals } from '../../../core/use-cases/accounts/accounts.ts';
import { signUp } from '../../../core/use-cases/signing-in/sign-up.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { type Fields, NO_FIELDS, postForm, textField } from '../layout/forms.ts';
import { html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { NEW_FORM, type RefusedForm, refusedForm, withAll } from '../layout/refused.ts';
import type { Site } from '../layout/room.ts';
import type { Visit } from '../layout/visit.ts';
import { contactText } from './contact.ts';
import { homeOf } from './home.ts';
import { senderOf } from './sender.ts';

const FIELDS = {
  'username-invalid': 'username',
  'username-reserved': 'username',
  'username-taken': 'username',
  'email-invalid': 'email',
  'email-taken': 'email',
  'password-length': 'password',
} as const;

export function signUpRoutes(site: Site): void {
  const { context } = site;
  site.publicPage('/sign-up', async (visit) => {
    if (visit.person !== null) return redirectTo(homeOf(visit.person.username));
    return visit.signUpOpen ? showSignUp(visit, NO_FIELDS, NEW_FORM) : showClosed(visit, context.operatorContact);
  });
  site.publicForm('/sign-up', async (visit, fields) => {
    const wanted = {
      username: fields.text('username').trim(),
      email: fields.text('email').trim(),
      password: fields.text('password'),
    };
    const signedUp = await signUp(context, senderOf(visit), wanted);
    if ('refused' in signedUp) {
      if (signedUp.refused.code === 'sign-up-closed') return showClosed(visit, context.operatorContact);
      const form = refusedForm(signedUp.refused, FIELDS);
      const isOfField = !('form' in form.errors);
      return showSignUp(visit, fields, isOfField ? withAll(form, creationRefusals(context, wanted), FIELDS) : form);
    }
    await visit.session.signIn(signedUp);
    return redirectTo(homeOf(signedUp.username), `Welcome, ${signedUp.username}.`);
  });
}

function showSignUp(visit: Visit, fields: Fields, { errors, status, headers }: RefusedForm): SiteAnswer {
  const content = html`<h1>Sign up</h1>${postForm(
    { csrf: visit.csrf(), errors },
    html`${textField({
      name: 'username',
      label: 'Username',
      value: fields.text('username'),
      error: errors['username'],
      hint: 'Part of the address of your repositories. Small letters, digits and single hyphens.',
      autocomplete: 'username',
      required: true,
      lengthMax: USERNAME_LENGTH_MAX,
      verbatim: true,
    })}${textField({
      name: 'email',
      type: 'email',
      label: 'Email',
      value: fields.text('email'),
      error: errors['email'],
      hint: 'Shown to nobody. You can sign in with it.',
      autocomplete: 'email',
      required: true,
      lengthMax: EMAIL_LENGTH_MAX,
    })}${textField({
      name: 'password',
      type: 'password',
      label: 'Password',
      error: errors['password'],
      hint: `At least ${PASSWORD_LENGTH_MIN} characters. It opens this site only: Git and the API take access tokens.`,
      autocomplete: 'new-password',
      required: true,
      lengthMax: PASSWORD_LENGTH_MAX,
    })}<div class="row"><button class="button main">Sign up</button><span class="soft">Have an account? <a href="/sign-in">Sign in</a></span></div>`,
  )}`;
  return showPage(page(visit, { title: 'Sign up', width: 'narrow' }, content), status, headers);
}

function showClosed(visit: Visit, operatorContact: string | null): SiteAnswer {
  const content = html`<h1>Sign-up is closed</h1>
<p>Only the operator of this service creates accounts. ${contactText(operatorContact)}</p>
<div class="row"><a class="button" href="/sign-in">Sign in</a></div>`;
  return showPage(page(visit, { title: 'Sign-up is closed', width: 'narrow' }, content), 403);
}
