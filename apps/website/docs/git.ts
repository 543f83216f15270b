/** How git talks to this service. */
import { GIB, MIB } from '../../../core/kernel/byte-units.ts';
import { CONTENTS_FILE_BYTES_MAX, PACK_SIZE_BYTES_MAX, PUSH_COMMANDS_MAX } from '../../../core/kernel/limits.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { html } from '../layout/html.ts';
import type { Visit } from '../layout/visit.ts';
import { commands, DOCS, exampleName, showDocs } from './frame.ts';

export function gitOverHttps(visit: Visit): SiteAnswer {
  const { webUrl } = visit;
  const name = exampleName(visit);
  const host = new URL(webUrl).host;
  const content = html`<h2>Addresses</h2>
<p>A repository is at <code>${webUrl}/r/&lt;owner&gt;/&lt;name&gt;.git</code>. Upper and lower case are the same, and <code>.git</code> may be left out. The address of the repository's page is a remote as well. There is no SSH.</p>
${commands('Clone a repository', `git clone ${webUrl}/r/${name}/hello.git`)}
<h2>Signing in</h2>
<p>Git asks for a username and a password. The password is an <a href="${DOCS}/tokens">access token</a>; the username may be any. To clone and fetch, a token needs <code>GIT_HTTP_READ</code>, to push <code>GIT_HTTP_WRITE</code>.</p>
<p>So that git asks only once, let it remember the token, here for one hour:</p>
${commands('Let git remember the token for an hour', "git config --global credential.helper 'cache --timeout=3600'")}
<p>Programs without a terminal read it from their environment, where no list of processes shows it:</p>
${commands('Clone with a token from the environment', `git -c credential.helper='!f() { echo username=token; echo "password=$TOKEN"; }; f' clone ${webUrl}/r/${name}/hello.git`)}
<p>A token in an address works too, and stays in the repository's configuration: ${html`<code>${new URL(webUrl).protocol}//token:$TOKEN@${host}/r/…</code>`}.</p>
<p>Go's modules need no more than that: <code>go get ${host}/&lt;owner&gt;/&lt;name&gt;</code> clones with the same token. Name <code>${host}</code> in <code>GOPRIVATE</code>, so that Go asks no public proxy for them.</p>
<h2>What is kept</h2>
<p>A push that git reported as done is on disk, objects and refs. A push is whole or not there at all: with <code>git push --atomic</code> all refs move or none does. Force pushes and deleted branches remove no objects; they are part of the history of the repository.</p>
<h2>Large and partial</h2>
<p>Shallow clones (<code>--depth</code>), single branches and partial clones (<code>--filter=blob:none</code>, <code>blob:limit</code>, <code>tree:&lt;depth&gt;</code>) work as everywhere.</p>
<div class="box scroll"><table><thead><tr><th scope="col">What</th><th scope="col" class="number">At most</th></tr></thead><tbody>
<tr><td>one push</td><td class="number">${PACK_SIZE_BYTES_MAX / GIB} GiB</td></tr>
<tr><td>refs in one push</td><td class="number">${PUSH_COMMANDS_MAX.toLocaleString('en')}</td></tr>
<tr><td>a file that the website and the API show</td><td class="number">${CONTENTS_FILE_BYTES_MAX / MIB} MiB</td></tr>
</tbody></table></div>
<h2>When git says no</h2>
<div class="box scroll"><table><thead><tr><th scope="col">Message</th><th scope="col">Why, and what to do</th></tr></thead><tbody>
<tr><td><code>Authentication failed</code></td><td>The token is missing, expired or revoked. Create another one, and let git forget the old one: <code>git credential-cache exit</code>.</td></tr>
<tr><td><code>repository … not found</code></td><td>There is none of that name, or the token's scope does not reach it.</td></tr>
<tr><td><code>the token needs the grant …</code></td><td>The token may read and not push. Edit it, or take another one.</td></tr>
<tr><td><code>! [remote rejected] … choose another name</code></td><td>The name of a new branch or tag cannot begin with <code>HEAD</code>, <code>refs</code> or an object id, since readers would take it for that. Those that exist can be moved and deleted.</td></tr>
<tr><td><code>! [rejected] … (fetch first)</code></td><td>Somebody pushed before you: <code>git pull --rebase</code>, then push again.</td></tr>
</tbody></table></div>`;
  return showDocs(visit, { title: 'Git over HTTPS', path: `${DOCS}/git`, head: 'Git over HTTPS' }, content);
}
