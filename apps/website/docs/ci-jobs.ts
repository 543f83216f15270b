/** How a job of a CI system pushes without a stored secret. */
import { EXCHANGED_TOKEN_SPAN_MS } from '../../../core/kernel/limits.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { type Html, html } from '../layout/html.ts';
import type { Visit } from '../layout/visit.ts';
import { CI_SYSTEMS, type CiSystem } from './ci-systems.ts';
import { commands, DOCS, exampleName, program, showDocs } from './frame.ts';

const MINUTES = EXCHANGED_TOKEN_SPAN_MS / 60_000;

/** The addresses that the examples name. */
interface Addresses {
  readonly audience: string;
  readonly exchange: string;
  /** The address to push to, with the name and the secret in shell variables. */
  readonly remote: string;
}

export function ciJobs(visit: Visit): SiteAnswer {
  const name = exampleName(visit);
  const addresses: Addresses = {
    audience: `${visit.webUrl}/${name}`,
    exchange: `${visit.baseUrl}/v1/oidc/token`,
    remote: `${visit.webUrl.replace('://', '://ci:$token@')}/r/${name}/site.git`,
  };
  const content = html`<p>A CI system signs an identity token for each job: it says which repository and which branch the job runs for. A trust rule of yours says which of these jobs it lets in. The job exchanges its identity token for an access token of ${MINUTES} minutes, so no secret is stored in the CI system, and none can leak from there.</p>
<ol class="guide"><li><h2>Create a trust rule</h2>
<p>Create it under <a href="/oidc-trust">CI trust</a>: the issuer is your CI system, subject and claims name the job, and the grants are what the job may do. These are examples for the branch main of the repository site of acme; take ids and names from a token of yours.</p>
<div class="box scroll" tabindex="0" role="group" aria-label="Rules of CI systems"><table class="cards"><thead><tr><th scope="col">System</th><th scope="col">Issuer</th><th scope="col">Subject</th><th scope="col">Claims</th></tr></thead><tbody>
${CI_SYSTEMS.map(ruleRow)}</tbody></table></div>
<p><code>*</code> in a subject or a claim stands for one or more characters but <code>/</code> and <code>:</code>, so <code>refs/heads/*</code> lets in no branch with a slash in its name.</p>
<p>On GitHub, ids stand behind the names in the subjects of repositories that were made, renamed or transferred since the middle of 2026. So leave the names open, <code>repo:*/*</code>, and ask for the claims <code>repository_id</code> and <code>repository_owner_id</code>: such a rule holds for every form, and nobody gets in with a name that you gave up. Without the claims it would let in every repository of GitHub. Never write <code>repo:acme*/…</code>, which lets in <code>acme-evil</code>.</p></li>
<li><h2>Exchange the token in the job</h2>
<p>The audience of the identity token must be exactly this. It names your account:</p>
${commands('The audience of identity tokens', addresses.audience)}
<p>This is what makes a token of that audience, and where the job finds it:</p>
<div class="box scroll" tabindex="0" role="group" aria-label="Tokens of CI systems"><table class="cards"><thead><tr><th scope="col">System</th><th scope="col">Made by</th><th scope="col">Found in</th></tr></thead><tbody>
${CI_SYSTEMS.map((system) => tokenRow(system, addresses.audience))}</tbody></table></div>
${program('.github/workflows/mirror.yml', githubWorkflow(addresses))}
${program('.gitlab-ci.yml', gitlabPipeline(addresses))}
<p>Any other system works if it is an OpenID Connect issuer at a public address:</p>
${commands('Exchange an identity token', `curl -sSf ${addresses.exchange} -H 'Content-Type: application/json' -d "{\\"id_token\\": \\"$ID_TOKEN\\"}"`)}</li>
<li><h2>When it is refused</h2>
<p>A refused exchange is <code>401</code> and says nothing more, since anybody may ask. The page of the rule tells you which claim did not match. You can also <a href="/oidc-trust/try">try a token</a> there. An identity token is exchanged once, and lives for 24 hours at most.</p></li></ol>
<p>The access token ends after ${MINUTES} minutes, or when its rule is changed or deleted. A job that is done earlier may revoke it: <code>DELETE /v1/access-tokens/</code> and the <code>id</code> of the answer.</p>`;
  return showDocs(
    visit,
    { title: 'CI jobs', path: `${DOCS}/ci`, head: 'Push from CI without a stored secret' },
    content,
  );
}

function ruleRow({ name, issuer, subject, claims }: CiSystem): Html {
  const asked = Object.entries(claims).map(([claim, value]) => html`<code>${`${claim} = ${value}`}</code> `);
  return html`<tr><td>${name}</td><td class="wrap"><code>${issuer}</code></td><td class="wrap"><code>${subject}</code></td><td class="wrap">${asked}</td></tr>
`;
}

function tokenRow({ name, madeBy, foundIn, documentation }: CiSystem, audience: string): Html {
  return html`<tr><td><a href="${documentation}" rel="noopener noreferrer">${name}</a></td><td class="wrap"><code>${madeBy(audience)}</code></td><td class="wrap">${foundIn}</td></tr>
`;
}

function githubWorkflow({ audience, exchange, remote }: Addresses): string {
  return `on: push
permissions:
  contents: read
  id-token: write
jobs:
  mirror:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0
      - run: |
          id_token=$(curl -sSfG "$ACTIONS_ID_TOKEN_REQUEST_URL" --data-urlencode audience=${audience} \\
            -H "Authorization: Bearer $ACTIONS_ID_TOKEN_REQUEST_TOKEN" | jq -r .value)
          token=$(curl -sSf ${exchange} -H 'Content-Type: application/json' \\
            -d "{\\"id_token\\": \\"$id_token\\"}" | jq -r .token)
          echo "::add-mask::$token"
          git push "${remote}" HEAD:main
`;
}

function gitlabPipeline({ audience, exchange, remote }: Addresses): string {
  return `mirror:
  id_tokens:
    SERVICE_ID_TOKEN:
      aud: ${audience}
  variables:
    GIT_DEPTH: "0"
  script:
    - >-
      token=$(curl -sSf ${exchange} -H 'Content-Type: application/json'
      -d "{\\"id_token\\": \\"$SERVICE_ID_TOKEN\\"}" | jq -r .token)
    - git push "${remote}" HEAD:main
`;
}
