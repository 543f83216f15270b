/** From nothing to a first push. */
import { PASSWORD_LENGTH_MIN } from '../../../core/kernel/limits.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { html } from '../layout/html.ts';
import type { Visit } from '../layout/visit.ts';
import { commands, DOCS, exampleName, showDocs } from './frame.ts';

export function gettingStarted(visit: Visit): SiteAnswer {
  const { webUrl, baseUrl, person } = visit;
  const url = `${webUrl}/r/${exampleName(visit)}/hello.git`;
  const content = html`<ol class="guide">
<li><h2>${person === null ? html`<a href="/sign-up">Sign up</a>` : 'You have an account'}</h2>
<p>A username, an email address and a password of ${PASSWORD_LENGTH_MIN} characters or more. The name becomes part of your addresses.</p></li>
<li><h2><a href="/access-tokens/create">Create an access token</a></h2>
<p>Git and the API take a token, never your password. It is shown once, when you create it. <a href="${DOCS}/tokens">More about tokens</a></p></li>
<li><h2><a href="/new">Create a repository</a></h2>
<p>On the website, or with the token from anywhere:</p>
${commands(
  'Create a repository',
  `curl -X POST ${baseUrl}/v1/repositories -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"name": "hello"}'`,
)}</li>
<li><h2>Push</h2>
<p>In a folder that git already keeps:</p>
${commands('Push an existing history', `git remote add origin ${url}`, 'git push -u origin HEAD')}
<p>Or in a new one:</p>
${commands('Start a history and push it', `git clone ${url} && cd hello`, 'echo "# hello" > README.md', 'git add README.md && git commit -m "First commit"', 'git push -u origin HEAD')}
<p>Git asks for a username, which may be any, and a password, which is the token. <a href="${DOCS}/git">How git remembers it</a></p></li>
<li><h2>What next</h2>
<p><a href="${DOCS}/cli">Install the command line</a>, <a href="${DOCS}/undo">see what you can undo</a>, <a href="${DOCS}/time-travel">look at a repository as it was</a>, <a href="${DOCS}/webhooks">have your own programs told of every push</a>, <a href="${DOCS}/device-login">sign in from a machine without a browser</a>, or <a href="${DOCS}/api">read everything over the API</a>.</p></li>
</ol>`;
  return showDocs(visit, { title: 'Getting started', path: DOCS, head: 'From nothing to a first push' }, content);
}
