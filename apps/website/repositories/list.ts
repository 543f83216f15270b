/** The repositories of an account, which only their owner sees. */
import { PAGE_COMMITS_MAX } from '../../../core/kernel/limits.ts';
import { asciiLowerCase } from '../../../core/kernel/text.ts';
import type { RepositoryRow } from '../../../core/ports/repository-lists.ts';
import { searchRepositories } from '../../../core/use-cases/repositories/search-repositories.ts';
import type { SiteContext } from '../context.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { copyBox } from '../layout/copy-box.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import { sizeText } from '../layout/sizes.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { DELETED } from './deleted.ts';
import { numberedTitle, pageAsked, pager, rowsWithin } from './pager.ts';
import { nothingFound, searchedTitle } from './refs-search.ts';
import { counted, shownName } from './shown-text.ts';

/** What is read of a search for repositories. */
export const SEARCH_LENGTH_MAX = 100;

export function searchedText({ url }: Pick<PersonVisit, 'url'>): string {
  return (url.searchParams.get('q') ?? '').slice(0, SEARCH_LENGTH_MAX);
}

export async function showList(context: SiteContext, visit: PersonVisit): Promise<SiteAnswer> {
  const { account, username } = visit.person;
  if (asciiLowerCase(visit.params['username'] ?? '') !== username) return notFound(visit);
  const text = searchedText(visit);
  const wanted = pageAsked(visit, PAGE_COMMITS_MAX);
  const { items, total } = await searchRepositories(context, { account, text, seen: visit.position, page: wanted });
  const { rows, page: at } = rowsWithin(items, wanted, (repository) => tableRow(visit, repository));
  const isEmpty = total === 0 && text === '';
  const head = html`<div class="row"><h1>${username}</h1>${
    !isEmpty && html`<a class="button main end" href="/new">New repository</a>`
  }</div>`;
  const content = isEmpty
    ? firstRepository(visit)
    : html`${searchForm(username, text, total)}${
        rows.length > 0 ? table(rows.map(({ row }) => row)) : nothingFound(`/${username}`, text, 'repositories')
      }${pager(`/${username}`, at, total, { query: text === '' ? {} : { q: text } })}`;
  const deleted = html`<p class="soft"><a href="${DELETED}">Deleted repositories</a></p>`;
  const title = numberedTitle(searchedTitle(`Repositories of ${username}`, text), at);
  return showPage(page(visit, { title, head }, html`${content}${deleted}`));
}

function searchForm(username: string, text: string, total: number): Html {
  return html`<form class="row search" action="/${username}" role="search"><label for="q" class="unseen">Find a repository</label><input id="q" name="q" type="search" value="${text}" maxlength="${SEARCH_LENGTH_MAX}" placeholder="Find a repository" autocapitalize="none" spellcheck="false"><button class="button">Find</button><span class="soft end" role="status">${
    text === '' ? counted(total, 'repository', 'repositories') : foundText(total)
  }</span></form>`;
}

function foundText(total: number): string {
  return total === 0 ? 'Nothing found' : `${counted(total, 'repository', 'repositories')} found`;
}

function table(rows: readonly Html[]): Html {
  return html`<div class="box"><div class="scroll" tabindex="0" role="group" aria-label="Repositories"><table><thead><tr><th scope="col">Repository</th><th scope="col" class="wide">Last push</th><th scope="col" class="number">Size</th></tr></thead><tbody>${rows}</tbody></table></div></div>`;
}

function tableRow(visit: PersonVisit, { username, name, description, pushedAt, sizeBytes }: RepositoryRow): Html {
  const pushed: Content = pushedAt === null ? html`<span class="soft">empty</span>` : timeAgo(pushedAt, visit.now);
  return html`<tr><td class="wrap"><a href="/${username}/${name}"><strong>${name}</strong></a>${
    description !== null && html`<div class="soft" dir="auto">${shownName(description)}</div>`
  }</td><td class="wide">${pushed}</td><td class="number">${sizeText(sizeBytes)}</td></tr>`;
}

/** The way from an empty account to a first push. */
function firstRepository(visit: PersonVisit): Html {
  const remote = `git remote add origin ${visit.webUrl}/r/${visit.person.username}/my-project.git`;
  return html`<section class="box"><header><h2>No repositories yet</h2><span class="end soft">Three steps to your first push</span></header><ol class="steps part">
<li><h3>Create a repository</h3><p class="soft">It can be empty, or begin with a README.</p><div><a class="button main" href="/new">Create repository</a></div></li>
<li><h3>Create an access token</h3><p class="soft">Git asks for it as the password.</p><div><a class="button" href="/access-tokens/create">Create token</a></div></li>
<li><h3>Push a project that you have</h3>${copyBox(remote, 'the command that adds the repository as a remote')}${copyBox(
    'git push -u origin HEAD:main',
    'the command that pushes',
  )}</li></ol></section>`;
}
