/** How a repository is read as it stood at a moment. */
import type { SiteAnswer } from '../layout/answer.ts';
import { html } from '../layout/html.ts';
import { spanText } from '../layout/times.ts';
import type { Visit } from '../layout/visit.ts';
import { commands, DOCS, exampleName, type Retention, showDocs } from './frame.ts';

export function timeTravel(visit: Visit, { retentionMs }: Retention): SiteAnswer {
  const { webUrl, baseUrl } = visit;
  const name = exampleName(visit);
  const content = html`<p>Every push is an event that stays. So a repository can be read as it stood at any moment, with what was forced away or deleted since, on its pages, with git and over the API. Only its owner can do that.</p>
<h2 id="pages">On its pages</h2>
<p>Every page of a repository says <b>As of now</b> on its bar. Open it, and choose a date and time or one of the pushes: the page is shown as of that moment, says so in a band, and all of its links stay there. The band also clones and restores that moment, and shows <b>what changed since</b>: branches, tags and files.</p>
<p>The address of such a page has the moment behind <code>?at=</code>: a time of RFC 3339, where one without an offset is UTC, or the id of an event.</p>
<h2 id="git">With git</h2>
<p>The moment stands behind an <code>@</code> in the address. The clone has every branch and tag of that moment, and <code>HEAD</code> is the default branch of then.</p>
${commands('Clone a repository as of a moment', `git clone ${webUrl}/r/${name}/hello@20261121T100000Z.git`)}
<p>It takes a token with <code>ALL</code> and <code>ALL_REPO</code>, and nothing can be pushed there.</p>
<h2 id="api">Over the API</h2>
${commands('All refs of a repository at a moment', `curl -H "Authorization: Bearer $TOKEN" '${baseUrl}/v1/repos/${name}/hello/refs?at=2026-11-21T10:00:00Z'`)}
${commands('The whole account at a moment', `curl -H "Authorization: Bearer $TOKEN" '${baseUrl}/v1/account/state?at=2026-11-21T10:00:00Z'`)}
<h2 id="how-far">How far back</h2>
<p>What a branch or tag still reaches can be read as of any moment since it was pushed. What a force push or a deletion left behind is kept for at least ${spanText(
    retentionMs,
  )}; a moment that needs what has left storage since is answered with <code>410</code> and the event with which it left. A purge removes it earlier. To bring a moment back, <a href="${DOCS}/undo">restore it</a>.</p>`;
  return showDocs(visit, { title: 'Time travel', path: `${DOCS}/time-travel`, head: 'Time travel' }, content);
}
