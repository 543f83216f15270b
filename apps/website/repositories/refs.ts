/**
 * Branches and tags by a part of their names, each a link to a path or the commits of it: what the picker of refs shows
 * while somebody types, and where it leads with a name that there is not.
 */
import type { SiteAnswer } from '../layout/answer.ts';
import { html } from '../layout/html.ts';
import { namesOfField, pathField, repositoryAddress } from './addresses.ts';
import { pickedLists, showRepositoryPage } from './frame.ts';
import type { PageRequest } from './page-request.ts';
import { refsSearch, searchAsked, searchedTitle } from './refs-search.ts';
import { pathText } from './shown-text.ts';

const PAGE = 'page';
const PATH = 'path';

export async function showRefs(asked: PageRequest): Promise<SiteAnswer> {
  const { visit, repository } = asked;
  const search = searchAsked(asked);
  const kind = kindAsked(asked);
  const names = pathAsked(asked);
  const lists = await pickedLists(asked, { kind, ref: null, names, search });
  const path = names.length === 0 ? '' : `${pathText(names)}: `;
  const title = searchedTitle(`${path}${TITLES[kind]}`, search);
  const home = repositoryAddress(repository);
  const form = refsSearch(asked, `${home}/refs`, {
    label: 'Find a branch or tag',
    text: search,
    found: '',
    keep: {
      ...(visit.url.searchParams.has(PAGE) ? { [PAGE]: kind } : {}),
      ...(names.length === 0 ? {} : { [PATH]: pathField(names) }),
    },
  });
  const content = html`<h1>Choose a branch or tag</h1>${form}<section class="box"><header><h2>Branches and tags</h2></header><div class="part picked" id="picked">${lists}</div></section>`;
  return showRepositoryPage(asked, { title, tab: kind === 'commits' ? 'Commits' : 'Code' }, content);
}

const TITLES = {
  tree: 'Files of a branch or tag',
  blob: 'File of a branch or tag',
  blame: 'Blame of a branch or tag',
  commits: 'Commits of a branch or tag',
} as const;

/** The pages that a choice of a ref leads to. */
export type PickedKind = keyof typeof TITLES;

export function kindAsked({ visit }: Pick<PageRequest, 'visit'>): PickedKind {
  const page = visit.url.searchParams.get(PAGE);
  return page === 'blob' || page === 'blame' || page === 'commits' ? page : 'tree';
}

/** The path that the page which the picker is on shows; empty for the root. */
export function pathAsked({ visit }: Pick<PageRequest, 'visit'>): readonly Uint8Array[] {
  const path = visit.url.searchParams.get(PATH) ?? '';
  return path === '' ? [] : (namesOfField(path) ?? []);
}
