/** How a job of a CI system pushes without a stored secret. */
import { EXCHANGED_TOKEN_SPAN_MS } from '../../../core/kernel/limits.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { html } from '../layout/html.ts';
import type { Visit } from '../layout/visit.ts';
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
<p>Create it under <a href="/oidc-trust">CI trust</a>: the issuer is your CI system, the subject is the job, and the grants are what the job may do. <code>*</code> in a subject or a claim stands for one or more characters but <code>/</code> and <code>:</code>, so <code>repo:acme/*:ref:refs/heads/main</code> lets in the branch main of every repository of acme, and <code>refs/heads/*</code> no branch with a slash in its name.</p>
<div class="box scroll"><table class="cards"><thead><tr><th scope="col">System</th><th scope="col">Issuer</th><th scope="col">Subject of a branch</th></tr></thead><tbody>
<tr><td>GitHub Actions</td><td><code>https://token.actions.githubusercontent.com</code></td><td><code>repo:acme/site:ref:refs/heads/main</code></td></tr>
<tr><td>GitLab CI</td><td><code>https://gitlab.com</code></td><td><code>project_path:acme/site:ref_type:branch:ref:main</code></td></tr>
</tbody></table></div></li>
<li><h2>Exchange the token in the job</h2>
<p>The audience of the identity token must be exactly this. It names your account:</p>
${commands('The audience of identity tokens', addresses.audience)}
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
    ID_TOKEN:
      aud: ${audience}
  variables:
    GIT_DEPTH: "0"
  script:
    - >-
      token=$(curl -sSf ${exchange} -H 'Content-Type: application/json'
      -d "{\\"id_token\\": \\"$ID_TOKEN\\"}" | jq -r .token)
    - git push "${remote}" HEAD:main
`;
}
