/** What an access token is and what it may do. */
import { GRANTS, type Grant } from '../../../core/kernel/grants.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { html } from '../layout/html.ts';
import type { Visit } from '../layout/visit.ts';
import { commands, DOCS, showDocs } from './frame.ts';

/** A new grant does not compile until it is described. */
const MEANINGS: Readonly<Record<Grant, string>> = {
  ALL: 'Everything below.',
  API_REPOS_READ: 'List repositories and read what they are called, over the API.',
  API_REPOS_WRITE: 'Create, change and delete repositories, and what API_REPOS_READ allows.',
  API_COMMITS_READ: 'Read branches, commits and files over the API.',
  API_WEBHOOKS: 'Create, change and delete webhooks, and see their deliveries.',
  GIT_HTTP_READ: 'Clone and fetch.',
  GIT_HTTP_WRITE: 'Push, and what GIT_HTTP_READ allows.',
  API_STORAGE: 'Create, change, verify and delete storage buckets.',
  API_OIDC_TRUST: 'Create, change and delete trust rules of CI jobs. It needs all repositories.',
};

export function tokens(visit: Visit): SiteAnswer {
  const rows = GRANTS.map((grant) => html`<tr><td><code>${grant}</code></td><td>${MEANINGS[grant]}</td></tr>`);
  const content = html`<p>An access token is the key of one program or machine: git, a script, a build. It may do what its grants say, in the repositories that its scope reaches, until it expires or is revoked. Your password works for neither git nor the API.</p>
<div class="row"><a class="button main" href="/access-tokens/create">Create a token</a></div>
<h2>Its secret</h2>
<p>A secret is <code>strata_</code> and 46 letters and digits. It is shown once, in the answer that creates it; nobody can read it again, not even the operator. If it may have leaked, revoke the token: it fails at its next request, everywhere.</p>
<p>The API takes it as a bearer token, git as the password of any username:</p>
${commands('Ask the API with a token', `curl -H "Authorization: Bearer $TOKEN" ${visit.baseUrl}/v1/repositories`)}
<h2>Grants</h2>
<div class="box scroll"><table class="cards"><thead><tr><th scope="col">Grant</th><th scope="col">Allows</th></tr></thead><tbody>${rows}</tbody></table></div>
<h2>Scope</h2>
<p><code>ALL_REPO</code> reaches every repository of the account, those of tomorrow too. <code>SELECTED_REPO</code> reaches the repositories that you choose; to the token the others do not exist. Only a token with <code>ALL</code> and <code>ALL_REPO</code> may create, change or revoke others; any token may revoke itself.</p>
<h2>For a build or a server</h2>
<p>Give each machine a token of its own, with the grants that it needs, the repositories that it needs, and an expiry. The list shows when each was last used, so you see which ones you can revoke.</p>`;
  return showDocs(visit, { title: 'Access tokens', path: `${DOCS}/tokens`, head: 'Access tokens' }, content);
}
