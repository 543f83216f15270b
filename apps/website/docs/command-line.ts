/** How the command line is installed, and what it is for. The package is offered where it was made. */
import type { CommandLinePackage, FindCommandLine } from '../context.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { showContent } from '../layout/answer.ts';
import { type Html, html } from '../layout/html.ts';
import { notFound } from '../layout/problems.ts';
import { sizeText } from '../layout/sizes.ts';
import type { Visit } from '../layout/visit.ts';
import { commands, DOCS, exampleName, showDocs } from './frame.ts';

const PATH = `${DOCS}/cli`;

export async function commandLine(visit: Visit, find: FindCommandLine): Promise<SiteAnswer> {
  const { baseUrl } = visit;
  const found = await find();
  const content = html`<p>The command line <code>strata</code> does everything that the API can: it signs in through the browser, sets up git, and handles repositories, tokens, webhooks, storage buckets, trust rules and the audit of your account. It needs Node 20 or newer.</p>
<h2 id="install">Install</h2>
${found === null ? withoutPackage() : offer(visit, found)}
<h2 id="sign-in">Sign in</h2>
${commands('Sign in, and set up git', `strata login --setup-git --base-url ${baseUrl}`)}
<p>It prints an address and a code to compare, as every <a href="${DOCS}/device-login">device login</a> does. Programs and jobs set <code>SERVICE_TOKEN</code> to <a href="${DOCS}/tokens">an access token</a> instead.</p>
<h2 id="examples">A few commands</h2>
${commands('Create a repository and clone it', 'strata repo create hello --clone')}
${commands('Look at an account', 'strata repo list', 'strata token list', 'strata usage')}
${commands('Bring back what was deleted', 'strata repo deleted', 'strata repo undelete hello')}
${commands('Ask the API for anything', `strata api GET /v1/repos/${exampleName(visit)}/hello/branches`)}
<p><code>strata help</code> lists all commands, <code>strata repo --help</code> those of repositories, and every command has examples in its help. With <code>--json</code> the answers are those of the API. <code>strata completion bash</code> prints a script that completes commands, also for zsh and fish.</p>`;
  return showDocs(visit, { title: 'Command line', path: PATH, head: 'The command line' }, content);
}

function offer({ webUrl }: Visit, { name, bytes, sha256 }: CommandLinePackage): Html {
  return html`<p>This service offers the package of its own version: <a href="${PATH}/${name}">${name}</a>, ${sizeText(bytes.length)}. It needs no other package.</p>
${commands(
  'Install the command line',
  `curl -fsSO ${webUrl}${PATH}/${name}`,
  `echo '${sha256}  ${name}' | sha256sum --check`,
  `npm install -g ./${name}`,
)}
<dl class="facts"><dt>SHA-256</dt><dd><code>${sha256}</code></dd></dl>`;
}

function withoutPackage(): Html {
  return html`<p>This service offers no package. Make it in a checkout of Strata:</p>
${commands('Pack and install the command line', 'npm run client:pack', 'npm install -g ./strata-cli-*.tgz')}`;
}

export async function sendCommandLine(visit: Visit, find: FindCommandLine): Promise<SiteAnswer> {
  const found = await find();
  if (found === null || found.name !== visit.params['package']) return notFound(visit);
  return showContent(found.bytes, {
    'content-type': 'application/gzip',
    'content-disposition': `attachment; filename="${found.name}"`,
    'x-content-type-options': 'nosniff',
  });
}
