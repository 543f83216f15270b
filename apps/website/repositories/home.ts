/** The home of a repository: its files, its last commit, its README, and how to clone it. */
import { listActivity } from '../../../core/use-cases/reading/list-activity.ts';
import { listTree } from '../../../core/use-cases/reading/list-tree.ts';
import { branchText, findDefaultBranch } from '../../../core/use-cases/reading/resolve-ref.ts';
import { repositoryRow } from '../../../core/use-cases/repositories/list-repositories.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { copyBox } from '../layout/copy-box.ts';
import { type Html, html } from '../layout/html.ts';
import { sizeText } from '../layout/sizes.ts';
import { timeAgo } from '../layout/times.ts';
import { placeAddress, repositoryAddress } from './addresses.ts';
import { downloadLinks } from './archive.ts';
import { emptyHome } from './empty-home.ts';
import { folderTable } from './folder-table.ts';
import { cloneUrl, goToFile, refPicker, showRepositoryPage } from './frame.ts';
import { type PageRequest, showRefusal } from './page-request.ts';
import { pager } from './pager.ts';
import { pusher } from './pushed-by.ts';
import { readmeOf } from './readme.ts';
import { shownName } from './shown-text.ts';
import { folderPage, lastCommit } from './tree.ts';
import { folderLinks } from './writing.ts';

export async function showHome(asked: PageRequest): Promise<SiteAnswer> {
  const { context, repository } = asked;
  if (findDefaultBranch(repository) === null) {
    return repository.asOf === undefined ? emptyHome(asked) : emptyThen(asked);
  }
  const entries = folderPage(asked);
  const ref = branchText(repository, repository.defaultBranch);
  const wanted = { ref, path: { names: [], folder: true }, entries, signal: asked.visit.signal };
  const listing = await listTree(context, repository, wanted);
  if ('refused' in listing) return showRefusal(asked, listing.refused);
  const { table, page } = folderTable(asked, listing, entries);
  const above = html`<div class="row">${await refPicker(asked, 'tree', ref, [])}${goToFile(asked, ref)}${folderLinks(asked, { ref, names: [] })}</div>
<section class="box" aria-label="Files">${lastCommit(asked, listing)}${table}</section>${pager(
    placeAddress(repository, 'tree', ref, []),
    page,
    listing.entries.total,
  )}`;
  const beside = html`<aside class="stack">${cloneBox(asked)}${await facts(asked)}</aside>`;
  const readme = await readmeOf(asked, listing);
  const content = html`<div class="beside"><div class="stack">${above}${readme}</div>${beside}</div>`;
  return showRepositoryPage(asked, { title: null, tab: 'Code', isHome: true }, content);
}

/** The home at a moment when the default branch did not exist. */
function emptyThen(asked: PageRequest): SiteAnswer {
  const { repository } = asked;
  const text =
    repository.entity.state.refs.size === 0
      ? 'Nothing had been pushed yet.'
      : `The default branch, ${shownName(repository.defaultBranch)}, did not exist.`;
  const later = html`<a href="${repositoryAddress(repository)}/moments">Choose a later moment</a>`;
  const content = html`<section class="box empty"><p>${text}</p><p>${later}</p></section>`;
  return showRepositoryPage(asked, { title: null, tab: 'Code', isHome: true }, content);
}

function cloneBox(asked: PageRequest): Html {
  return html`<section class="clone stack tight" id="clone"><h2>Clone</h2>${copyBox(cloneUrl(asked), 'the clone address')}<p class="hint">Any username; the password is an <a href="/access-tokens">access token</a>.</p><p class="hint">${downloadLinks(
    asked,
    { ref: branchText(asked.repository, asked.repository.defaultBranch), label: 'Download' },
  )}</p></section>`;
}

async function facts({ context, visit, repository }: PageRequest): Promise<Html> {
  // The last change is the current one.
  const isPast = repository.asOf !== undefined;
  const { items } = isPast ? { items: [] } : await listActivity(context, repository, { offset: 0, limit: 1 });
  const push = items[0]?.push;
  const { sizeBytes, pushedAt, createdAt } = repositoryRow(repository);
  return html`<dl class="facts">${
    pushedAt !== null &&
    html`<dt>Last push</dt><dd>${timeAgo(pushedAt, visit.now)}${push !== undefined && html` ${pusher(push)}`}</dd>`
  }<dt>Created</dt><dd>${timeAgo(createdAt, visit.now)}</dd><dt>Size</dt><dd>${sizeText(sizeBytes)}</dd></dl>`;
}
