/** One commit: who made it, its message, and what it changed. */
import { commitTime } from '../../../core/git/commit-time.ts';
import { listedCommit } from '../../../core/git/history/listed-commit.ts';
import type { Commit, Signature } from '../../../core/git/objects.ts';
import { pushesOfCommits } from '../../../core/use-cases/reading/pushes-of-commits.ts';
import { readCommit } from '../../../core/use-cases/reading/read-commit.ts';
import { shortIdNamed } from '../../../core/use-cases/reading/resolve-ref.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { copyBox } from '../layout/copy-box.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';
import { weighMarkup } from '../rendering/weight.ts';
import { commitAddress, placeAddress, shownAddress } from './addresses.ts';
import { commitTextLinks } from './commit-text.ts';
import { diffAsked, titleOfPart, wantedFor } from './diff-page.ts';
import { diffView } from './diff-view.ts';
import { showRepositoryPage } from './frame.ts';
import { inLargeTurn } from './large-reads.ts';
import { leadToFullId, type PageRequest, showRefusal } from './page-request.ts';
import { pushedBy } from './pushed-by.ts';
import { bodyOf, shortId, shownName, subjectOf } from './shown-text.ts';

export async function showCommit(asked: PageRequest): Promise<SiteAnswer> {
  const { context, repository, visit } = asked;
  const id = visit.params['id'] ?? '';
  if (shortIdNamed(id) !== null) return leadToFullId(asked, id);
  const page = diffAsked(visit);
  const read = () => readCommit(context, repository, { id, shown: wantedFor(page), signal: visit.signal });
  const found = await (page.file === null ? read() : inLargeTurn(asked, read));
  if ('refused' in found) return showRefusal(asked, found.refused);
  const { diff } = found;
  const commit = listedCommit(found.commit);
  const push = (await pushesOfCommits(context, repository, [commit.id], visit.signal)).get(commit.id);
  const subject = subjectOf(commit.message);
  const body = bodyOf(commit.message);
  const shown = {
    diff,
    page,
    before: commit.parents[0] ?? null,
    after: commit.id,
    address: (query: Readonly<Record<string, string>>) =>
      shownAddress(repository, commitAddress(repository, commit.id), query),
  };
  const above = html`<div class="stack"><div class="row"><h1 dir="auto">${subject}</h1><a class="button end" href="${placeAddress(
    repository,
    'tree',
    commit.id,
    [],
  )}">Browse files</a></div><div>${people(asked, commit)}${parents(asked, commit)}${commitTextLinks(repository, commit)}</div>${copyBox(commit.id, 'the commit id')}</div>${
    push !== undefined && html`<p class="note">${pushedBy(asked, push)}</p>`
  }${body !== '' && html`<pre class="message" dir="auto">${body}</pre>`}`;
  const content = html`${above}${await diffView(asked, shown, weighMarkup(above.markup()))}`;
  const [file] = page.file === null ? [] : diff.files;
  const part = titleOfPart(page, file === undefined ? null : shownName(file.path));
  const title = `${part === '' ? '' : `${part} · `}${subject} · ${shortId(commit.id)}`;
  return showRepositoryPage(asked, { title, tab: 'Commits', scripts: ['diff.js'] }, content);
}

function people({ visit }: PageRequest, { author, committer }: Commit): Html {
  const by = (person: Signature, did: string): Html =>
    html`<bdi title="${shownName(person.email)}">${shownName(person.name)}</bdi> ${did} ${timeAgo(
      commitTime(person.seconds),
      visit.now,
    )}`;
  const isOne = author.name === committer.name && author.email === committer.email;
  return html`<p class="soft">${isOne ? by(committer, 'committed') : html`${by(author, 'authored')}, ${by(committer, 'committed')}`}</p>`;
}

/** A merge of a thousand branches lists the first of them. */
export const PARENTS_SHOWN_MAX = 10;

export function parents({ repository }: Pick<PageRequest, 'repository'>, commit: Pick<Commit, 'parents'>): Content {
  if (commit.parents.length === 0) return html`<p class="soft">The first commit: it has no parent.</p>`;
  const links = commit.parents
    .slice(0, PARENTS_SHOWN_MAX)
    .map((id) => html` <a class="id" href="${commitAddress(repository, id)}">${shortId(id)}</a>`);
  const more = commit.parents.length - PARENTS_SHOWN_MAX;
  return html`<p class="soft">${commit.parents.length === 1 ? 'Parent' : 'Parents'}${links}${more > 0 && ` and ${more} more`}${
    commit.parents.length > 1 && '. What differs from the first parent is shown.'
  }</p>`;
}
