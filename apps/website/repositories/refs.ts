/**
 * Branches and tags by a part of their names, each a link to its files or commits: what the picker of refs shows while
 * somebody types, and where it leads with a name that there is not.
 */
import type { SiteAnswer } from '../layout/answer.ts';
import { html } from '../layout/html.ts';
import { repositoryAddress } from './addresses.ts';
import { pickedLists, showRepositoryPage } from './frame.ts';
import type { PageRequest } from './page-request.ts';
import { refsSearch, searchAsked, searchedTitle } from './refs-search.ts';

const PAGE = 'page';

export async function showRefs(asked: PageRequest): Promise<SiteAnswer> {
  const { visit, repository } = asked;
  const search = searchAsked(asked);
  const kind = kindAsked(asked);
  const lists = await pickedLists(asked, { kind, ref: null, names: [], search });
  const title = searchedTitle(kind === 'commits' ? 'Commits of a branch or tag' : 'Files of a branch or tag', search);
  const home = repositoryAddress(repository);
  const form = refsSearch(asked, `${home}/refs`, {
    label: 'Find a branch or tag',
    text: search,
    found: '',
    keep: visit.url.searchParams.has(PAGE) ? { [PAGE]: kind } : {},
  });
  const content = html`<h1>Choose a branch or tag</h1>${form}<section class="box"><header><h2>Branches and tags</h2></header><div class="part picked" id="picked">${lists}</div></section>`;
  return showRepositoryPage(asked, { title, tab: kind === 'commits' ? 'Commits' : 'Code' }, content);
}

/** The page that a choice of a ref leads to. */
export function kindAsked({ visit }: Pick<PageRequest, 'visit'>): 'commits' | 'tree' {
  return visit.url.searchParams.get(PAGE) === 'commits' ? 'commits' : 'tree';
}
