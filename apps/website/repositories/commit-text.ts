/** What a commit changed, as the text that git reads again. */
import type { CommitTextForm } from '../../../core/ports/object-database.ts';
import { readCommitText } from '../../../core/use-cases/reading/read-commit-text.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { type Html, html } from '../layout/html.ts';
import { commitAddress, shownAddress } from './addresses.ts';
import { refusedMaking, showMade } from './metered-stream.ts';
import { type PageRequest, showRefusal } from './page-request.ts';

export function showCommitText(form: CommitTextForm): (asked: PageRequest) => Promise<SiteAnswer> {
  return async (asked) => {
    const { context, repository, visit } = asked;
    const refused = await refusedMaking(asked);
    if (refused !== null) return refused;
    const id = visit.params['id'] ?? '';
    const text = await readCommitText(context, repository, { id, form, signal: visit.signal });
    if ('refused' in text) {
      return showRefusal(asked, text.refused, (full) => commitTextAddress(repository, full, form));
    }
    return showMade(asked, text, { 'content-type': 'text/plain; charset=utf-8' });
  };
}

function commitTextAddress(repository: PageRequest['repository'], id: string, form: CommitTextForm): string {
  const [path = ''] = commitAddress(repository, id).split('?', 1);
  return shownAddress(repository, `${path}.${form}`);
}

/** The links to a commit's texts; a merge has no patch. */
export function commitTextLinks(
  repository: PageRequest['repository'],
  { id, parents }: { readonly id: string; readonly parents: readonly string[] },
): Html {
  const link = (form: CommitTextForm): Html =>
    html`<a href="${commitTextAddress(repository, id, form)}" rel="nofollow">.${form}</a>`;
  return html`<p class="soft">As text: ${link('diff')}${parents.length < 2 && html` ${link('patch')}`}</p>`;
}
