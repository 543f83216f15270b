/** The commits of a repository whose default branch does not exist: where to go on. */
import type { SiteAnswer } from '../layout/answer.ts';
import { type Html, html } from '../layout/html.ts';
import { repositoryAddress } from './addresses.ts';
import { refPicker, showRepositoryPage } from './frame.ts';
import type { PageRequest } from './page-request.ts';
import { shownName } from './shown-text.ts';

export async function showNoCommits(asked: PageRequest): Promise<SiteAnswer> {
  const hasRefs = asked.repository.entity.state.refs.size > 0;
  const content = html`<h1 class="unseen">Commits</h1>${hasRefs ? await otherRefs(asked) : nothingYet(asked)}`;
  return showRepositoryPage(asked, { title: 'Commits', tab: 'Commits' }, content);
}

async function otherRefs(asked: PageRequest): Promise<Html> {
  const { repository } = asked;
  const { defaultBranch } = repository;
  return html`<p class="note">The default branch, ${shownName(defaultBranch)}, does not exist. Choose another branch or tag, or another default branch in the <a href="${repositoryAddress(
    repository,
  )}/settings">settings</a>.</p><div class="row">${await refPicker(asked, 'commits', defaultBranch, [])}</div>`;
}

function nothingYet({ repository }: PageRequest): Html {
  const home = repositoryAddress(repository);
  const onward =
    repository.asOf === undefined
      ? html`<p><a href="${home}">The repository’s page</a> has the commands for a first push, or <a href="${home}/create">create a file</a> here.</p>`
      : html`<p><a href="${home}/moments">Choose a later moment</a></p>`;
  return html`<section class="box empty"><h2>No commits yet</h2>${onward}</section>`;
}
