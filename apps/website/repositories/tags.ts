/** The tags of a repository, the highest version first. */
import { commitTime } from '../../../core/git/commit-time.ts';
import { PAGE_COMMITS_MAX } from '../../../core/kernel/limits.ts';
import { type ListedTag, listTagPage } from '../../../core/use-cases/reading/list-tag-page.ts';
import { shortTagText, tagText } from '../../../core/use-cases/reading/resolve-ref.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { copyBox } from '../layout/copy-box.ts';
import { type Html, html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';
import { commitAddress, placeAddress, repositoryAddress, shownAddress } from './addresses.ts';
import { downloadLinks } from './archive.ts';
import { shellWord } from './empty-home.ts';
import { showRepositoryPage } from './frame.ts';
import { deleteLink, newRefButton } from './new-ref.ts';
import type { PageRequest } from './page-request.ts';
import { numberedTitle, pageAsked, pager, rowsWithin } from './pager.ts';
import { nothingFound, refsSearch, searchAsked, searchedTitle } from './refs-search.ts';
import { counted, shortId, shownName, subjectOf } from './shown-text.ts';

export async function showTags(asked: PageRequest): Promise<SiteAnswer> {
  const { context, visit, repository } = asked;
  const search = searchAsked(asked);
  const wanted = pageAsked(visit, PAGE_COMMITS_MAX);
  const { tags } = await listTagPage(context, repository, { search, order: 'version', page: wanted });
  const { rows, page } = rowsWithin(tags.items, wanted, (tag) => rowOf(asked, tag));
  const address = `${repositoryAddress(repository)}/tags`;
  const isEmpty = tags.total === 0 && search === '';
  const content = html`<h1 class="unseen">Tags</h1>${newRefButton(repository, 'tag')}${
    isEmpty
      ? noTags(repository.defaultBranch)
      : html`${refsSearch(asked, address, { label: 'Find a tag', text: search, found: counted(tags.total, 'tag') })}${
          rows.length > 0 && table(rows.map(({ row }) => row))
        }${tags.total === 0 && nothingFound(shownAddress(repository, address), search, 'tags')}${pager(shownAddress(repository, address), page, tags.total, { query: search === '' ? {} : { q: search } })}`
  }`;
  const title = numberedTitle(searchedTitle('Tags', search), page);
  return showRepositoryPage(asked, { title, tab: 'Tags' }, content);
}

function noTags(branch: string): Html {
  return html`<section class="box"><div class="empty stack"><h2>No tags yet</h2><p class="soft">A tag names a commit that stays, such as a release:</p>${copyBox(
    `git tag -a v1.0 -m "First release" ${shellWord(branch)} && git push origin v1.0`,
    'the command that creates a tag',
  )}</div></section>`;
}

function table(rows: readonly Html[]): Html {
  return html`<div class="box"><div class="scroll" tabindex="0" role="group" aria-label="Tags"><table class="cards fits"><thead><tr><th scope="col">Tag</th><th scope="col" class="wide">Message</th><th scope="col">Leads to</th><th scope="col" class="number">When</th></tr></thead><tbody>${rows}</tbody></table></div></div>`;
}

function rowOf({ visit, repository }: PageRequest, { name, target, type, annotation, commit }: ListedTag): Html {
  const shown = html`<bdi>${shownName(name)}</bdi>`;
  // The full name: a branch may have the same short one.
  const kind = type === 'blob' ? 'blob' : 'tree';
  const address = placeAddress(repository, kind, tagText(name), []);
  const link = html`<a href="${address}">${shown}</a>`;
  const seconds = annotation?.tagger?.seconds ?? commit?.committedAt ?? null;
  // The commit tells what a tag without a message of its own is.
  const own = annotation?.message.trim() ?? '';
  const message = own === '' ? (commit?.message ?? null) : own;
  const id =
    commit === null
      ? html`<span class="soft">${type}</span> <a class="id" href="${address}">${shortId(target)}</a>`
      : html`<a class="id" href="${commitAddress(repository, commit.id)}">${shortId(commit.id)}</a>`;
  return html`<tr><td class="wrap">${link}</td><td class="wide" dir="auto">${
    message !== null && subjectOf(message)
  }</td><td class="apart">${id}${type !== 'blob' && downloadLinks({ repository }, { ref: shortTagText(repository, name) })}${deleteLink(repository, tagText(name), name)}</td><td class="number">${seconds !== null && timeAgo(commitTime(seconds), visit.now)}</td></tr>`;
}
