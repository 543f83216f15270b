/** What can be undone, for how long, and what cannot. */
import { ACCOUNT_CLOSED_SPAN_MS } from '../../../core/kernel/limits.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { type Html, html } from '../layout/html.ts';
import { spanText } from '../layout/times.ts';
import type { Visit } from '../layout/visit.ts';
import { commands, DOCS, exampleName, type Retention, showDocs } from './frame.ts';

interface Undoing {
  readonly done: string;
  readonly undone: Html;
  readonly until: string;
}

export function undo(visit: Visit, retention: Retention): SiteAnswer {
  const { baseUrl } = visit;
  const name = exampleName(visit);
  const kept = spanText(retention.retentionMs);
  const repo = `${baseUrl}/v1/repos/${name}/hello`;
  const content = html`<p>Nothing that a push or a deletion removes is gone when it happens. A change on this site ends with a notice that leads to its undoing; later the activity of the repository does, and the history of your account names every event.</p>
<div class="box scroll"><table class="cards"><thead><tr><th scope="col">What was done</th><th scope="col">How it is undone</th><th scope="col">For</th></tr></thead><tbody>${undoings(
    kept,
  ).map(
    ({ done, undone, until }) => html`<tr><td>${done}</td><td>${undone}</td><td>${until}</td></tr>`,
  )}</tbody></table></div>
<h2 id="refs">Branches and tags</h2>
<p>A restoration sets branches and tags back to a time, to an event, or to right before one. It shows first what it would change, it is refused if somebody pushes in between, and it is a change like any other: webhooks fire, and it can be undone in the same way.</p>
${commands('See what a restoration would change', 'strata repo restore hello --at 2026-11-21T10:00:00Z --dry-run')}
${commands('Restore a repository to a moment', `curl -X POST ${repo}/restore -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"at": "2026-11-21T10:00:00Z"}'`)}
<h2 id="repositories">Repositories</h2>
<p>A deleted repository is listed with <a href="/settings/deleted-repositories">the deleted ones</a>. It comes back with all of its history, under its name or another one.</p>
${commands('Undelete a repository', 'strata repo deleted', 'strata repo undelete hello')}
<h2 id="for-good">What cannot be undone</h2>
<p>These say so on the page that asks: to purge a repository, to revoke a token, and to delete a webhook, a storage bucket, a trust rule or a second factor. A purge is there for a secret that was pushed: it removes for good what no branch and no tag reaches.</p>
<p>A restoration, an undeletion and a purge need a token with <code>ALL</code> and <code>ALL_REPO</code>.</p>`;
  return showDocs(visit, { title: 'Undo', path: `${DOCS}/undo`, head: 'Undo' }, content);
}

function undoings(kept: string): readonly Undoing[] {
  return [
    {
      done: 'a push, a force push or a file that was saved here',
      undone: html`<b>Go back to before this</b>, in the activity of the repository`,
      until: kept,
    },
    {
      done: 'a branch or a tag that was deleted',
      undone: html`<b>Undo</b> in the notice, or <b>Go back to before this</b> in the activity`,
      until: kept,
    },
    {
      done: 'a restoration',
      undone: html`<b>Undo</b> in the notice, or <b>Go back to before this</b> in the activity`,
      until: kept,
    },
    {
      done: 'a repository that was deleted',
      undone: html`<b>Undo</b> in the notice, or <a href="/settings/deleted-repositories">the deleted repositories</a>`,
      until: kept,
    },
    { done: 'an account that was deleted', undone: html`sign in again`, until: spanText(ACCOUNT_CLOSED_SPAN_MS) },
  ];
}
