/** Who helps with a forgotten password: the service sends no mail, so its operator sets a new one. */
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import type { Visit } from '../layout/visit.ts';
import { contactText } from './contact.ts';

export function forgottenPasswordPage({
  operatorContact,
}: {
  readonly operatorContact: string | null;
}): (visit: Visit) => Promise<SiteAnswer> {
  return async (visit) => {
    const content = html`<h1>Forgotten password</h1>
<p>This service sends no mail, so no link can reach you. Whoever runs it sets a new password for you and tells it to you. ${contactText(operatorContact)}</p>
<p>Your access tokens go on working meanwhile. Every browser that you are signed in with is signed out.</p>
<details class="box"><summary>For the person who runs this service</summary><div class="inside stack tight"><p>On the server, with the new password as the first line of the input:</p>
<pre tabindex="0">npm run --silent strata-admin -- account reset-password --username NAME --password-stdin</pre></div></details>
<div class="row"><a class="button" href="/sign-in">Back to sign-in</a></div>`;
    return showPage(page(visit, { title: 'Forgotten password', width: 'narrow' }, content));
  };
}
