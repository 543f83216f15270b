/**
 * The start page: what the service is, and how to begin, on one screen. Who is signed in reaches their repositories.
 */
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { copyBox } from '../layout/copy-box.ts';
import { html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import type { Visit } from '../layout/visit.ts';
import { homeOf } from './home.ts';

export async function landingPage(visit: Visit): Promise<SiteAnswer> {
  if (visit.person !== null) return redirectTo(homeOf(visit.person.username));
  const remote = `git remote add origin ${visit.baseUrl}/r/you/project.git`;
  const first = visit.signUpOpen
    ? html`<a href="/sign-up">Sign up</a>, then create a repository and an access token. Git asks for the token as its password.`
    : html`<a href="/sign-in">Sign in</a>, then create a repository and an access token. Git asks for the token as its password.`;
  const content = html`<div class="lead"><h1>Git hosting that remembers every push</h1>
<p>Each push is an event in a record that is only ever added to. Branches, deliveries and usage all follow from it.</p></div>
<div class="row">${visit.signUpOpen && html`<a class="button main" href="/sign-up">Sign up</a>`}<a class="button" href="/sign-in">Sign in</a></div>
<section class="stack tight"><h2>Your first push</h2><p class="soft">${first}</p>
${copyBox('git init -b main && git add . && git commit -m "First commit"', 'the commands that create a repository on your computer')}
${copyBox(remote, 'the command that names the server')}
${copyBox('git push -u origin main', 'the command that pushes')}</section>
<ul class="claims"><li>A push that was acknowledged is never lost.</li>
<li>Tokens hold only the permissions and repositories that you choose.</li>
<li>Webhooks are signed, retried, and show every attempt.</li>
<li>Plain Git at every step: any client, nothing to install.</li></ul>`;
  return showPage(page(visit, { title: 'Git hosting that remembers every push', width: 'middle' }, content));
}
