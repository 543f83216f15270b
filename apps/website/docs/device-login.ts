/** How a machine without a browser gets a token. */
import { DEVICE_POLL_INTERVAL_SECONDS, DEVICE_SESSION_SPAN_MS } from '../../../core/kernel/limits.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { html } from '../layout/html.ts';
import type { Visit } from '../layout/visit.ts';
import { commands, DOCS, showDocs } from './frame.ts';

const MINUTES = DEVICE_SESSION_SPAN_MS / 60_000;

export function deviceLogin(visit: Visit): SiteAnswer {
  const { baseUrl } = visit;
  const content = html`<p>A command line on a server, a build agent or a machine without a browser signs in by asking you on another one. You compare a code and decide what it may do; no password and no token is typed into it.</p>
<ol class="guide"><li><h2>The machine asks</h2>
${commands('Start a device login', `curl -X POST ${baseUrl}/v1/auth/sessions -H 'Content-Type: application/json' -d '{"hostname": "'"$(hostname)"'"}'`)}
<p>The answer holds a <code>user_code</code> such as <code>WXYZ-1234</code>, the <code>verification_url</code> to open, and a <code>secret_token</code> that the machine keeps to itself.</p></li>
<li><h2>You decide</h2>
<p>Open the address where you are signed in. Compare the code with the one on the machine: if they differ, or you started nothing, somebody wants your access. Deny it. Otherwise choose grants, scope and expiry as for any token, and grant it.</p></li>
<li><h2>The machine gets its token</h2>
<p>Meanwhile it asks every ${DEVICE_POLL_INTERVAL_SECONDS} seconds:</p>
${commands('Poll a device login', 'curl "$POLL_URL?secret_token=$SECRET_TOKEN"')}
<div class="box scroll"><table><thead><tr><th scope="col">Answer</th><th scope="col">Means</th></tr></thead><tbody>
<tr><td><code>202</code></td><td>Nobody decided yet: ask again.</td></tr>
<tr><td><code>200</code></td><td>Granted: <code>token</code> is the secret of the new token, in this answer and never again.</td></tr>
<tr><td><code>403</code></td><td>Denied.</td></tr>
<tr><td><code>410</code></td><td>The ${MINUTES} minutes are over, or the token was handed out.</td></tr>
<tr><td><code>429</code></td><td>Asked too often: wait for the <code>interval</code>.</td></tr>
</tbody></table></div></li></ol>
<p>The token is one like any other: it stands in your <a href="/access-tokens">list of tokens</a>, and you can edit or revoke it there.</p>`;
  return showDocs(
    visit,
    { title: 'Device login', path: `${DOCS}/device-login`, head: 'Sign in on a machine without a browser' },
    content,
  );
}
