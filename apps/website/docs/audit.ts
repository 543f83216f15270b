/** How the record of an account is read, kept and proved. */
import type { SiteAnswer } from '../layout/answer.ts';
import { html } from '../layout/html.ts';
import type { Visit } from '../layout/visit.ts';
import { commands, DOCS, showDocs } from './frame.ts';

export function audit(visit: Visit): SiteAnswer {
  const { baseUrl } = visit;
  const content = html`<p>Everything that happens to your account is an event: pushes, tokens, sign-ins, settings, deletions. Events are never changed. They are the leaves of a Merkle tree (RFC 6962) whose head this service signs, so you need not trust it: whoever keeps a signed head can prove later that the history still continues it.</p>
<h2 id="read">Read it</h2>
<p><a href="/history">The history</a> lists your events with who did what, when and from where. Each has a page with its canonical entry, its leaf and the proof that the tree holds it. A token’s page of activity says what it did.</p>
${commands('List pushes over the API', `curl -H "Authorization: Bearer $TOKEN" '${baseUrl}/v1/account/events?type=RefsUpdated'`)}
<h2 id="watch">Keep what was signed</h2>
<p>Each run keeps the newest signed head as a file, and asks for the proof that it continues the one before. It fails where the service shows a history that does not.</p>
${commands('Watch the log', 'strata audit watch --folder kept --every 3600')}
<h2 id="verify">Verify offline</h2>
<p>The export holds every entry and the signed head. What verifies it asks nobody, and names the first line that is wrong.</p>
${commands(
  'Export and verify the log',
  'strata audit export log.ndjson',
  `curl -o strata-log-keys ${baseUrl}/.well-known/strata-log-keys`,
  'strata audit verify log.ndjson --keys strata-log-keys --checkpoint kept/42.txt',
)}
<p>An export can also be replayed, without this service: what the account and its repositories were at a moment is computed from the file alone.</p>
${commands('Replay the log to a moment', `strata audit replay log.ndjson --at 2026-11-21T10:00:00Z --compare ${baseUrl}`)}
<h2 id="personal">Personal data</h2>
<p>Addresses, emails and the like stand in the log as references: hashes of the value and a random number. The export shows both, until the account is erased; after that nobody can read them any more, and every proof still holds.</p>
<p>To read the log takes a token with <code>ALL</code> and <code>ALL_REPO</code>. The commands are those of <a href="${DOCS}/cli">the command line</a>.</p>`;
  return showDocs(visit, { title: 'Audit', path: `${DOCS}/audit`, head: 'Audit' }, content);
}
