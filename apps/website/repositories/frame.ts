/** The head of every page of a repository: its names, its description and its tabs; and parts that several pages show. */
import { parseObjectId } from '../../../core/kernel/ids.ts';
import { findRefs } from '../../../core/use-cases/reading/find-refs.ts';
import { findDefaultBranch } from '../../../core/use-cases/reading/resolve-ref.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { type Content, html, type Html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { placeAddress, type PlaceKind, repositoryAddress } from './addresses.ts';
import type { Asked } from './asked.ts';
import { shownName, shortId } from './shown-text.ts';

export type Tab = 'Code' | 'Commits' | 'Branches' | 'Tags' | 'Activity' | 'Settings';

interface FrameOptions {
  /** Of this page; the repository's name is added. */
  readonly title: string | null;
  readonly tab: Tab;
  /** Whether the repository's name is the page's h1. Otherwise the content has it. */
  readonly isHome?: boolean;
  readonly status?: number;
}

export function showRepositoryPage(asked: Asked, options: FrameOptions, content: Content): SiteAnswer {
  const { visit, repository } = asked;
  const { account, owned } = repository;
  const name = `${account.username}/${owned.name}`;
  const names = html`<a href="/${account.username}">${account.username}</a><span class="slash">/</span><a href="${repositoryAddress(
    repository,
  )}">${owned.name}</a>`;
  const heading = options.isHome === true ? html`<h1 class="title">${names}</h1>` : html`<p class="title">${names}</p>`;
  const head = html`${heading}${owned.description !== null && html`<p dir="auto">${shownName(owned.description)}</p>`}
<nav class="tabs" aria-label="Repository">${tabsOf(asked, options.tab)}</nav>`;
  const title = options.title === null ? name : `${options.title} · ${name}`;
  return showPage(page(visit, { title, head }, content), options.status ?? 200);
}

function tabsOf({ repository }: Asked, current: Tab): Content {
  const home = repositoryAddress(repository);
  const tabs: readonly (readonly [Tab, string])[] = [
    ['Code', home],
    ['Commits', `${home}/commits`],
    ['Branches', `${home}/branches`],
    ['Tags', `${home}/tags`],
    ['Activity', `${home}/activity`],
    ['Settings', `${home}/settings`],
  ];
  return tabs.map(
    ([label, path]) => html`<a href="${path}"${label === current && html` aria-current="page"`}>${label}</a>`,
  );
}

/** How many branches and tags the picker lists; others are found by their names. */
const PICKED_MAX = 20;

/** A list of branches and tags that lead to the same path, and a field for the name of any other ref or commit. */
export async function refPicker(
  asked: Asked,
  kind: PlaceKind,
  ref: string,
  names: readonly Uint8Array[],
): Promise<Html> {
  const { repository } = asked;
  const { branches, tags } = await refsToPick(asked);
  const link = (label: string, address: string): Html =>
    html`<li><a href="${placeAddress(repository, kind, address, names)}"${
      address === ref && html` aria-current="true"`
    }>${shownName(label)}</a></li>`;
  const shown = parseObjectId(ref) === null ? shownName(ref) : shortId(ref);
  return html`<details class="pop"><summary class="button">${shown} ▾</summary><form class="menu" action="${repositoryAddress(
    repository,
  )}/switch"><label for="ref">Branch, tag or commit</label><input id="ref" name="ref" autocomplete="off" autocapitalize="none" spellcheck="false"><input type="hidden" name="page" value="${kind}">
<h3>Branches</h3><ul class="refs">${branches.map((name) => link(name, name))}</ul>${
    tags.length > 0 && html`<h3>Tags</h3><ul class="refs">${tags.map((name) => link(name, `refs/tags/${name}`))}</ul>`
  }</form></details>`;
}

async function refsToPick({ context, repository }: Asked) {
  const { state } = repository.entity;
  const first = { search: '', page: { offset: 0, limit: PICKED_MAX } };
  const found = await findRefs(context, state, { ...first, kind: 'branch', order: 'name' });
  const branches = found.items.map(({ name }) => name);
  const foundTags = await findRefs(context, state, { ...first, kind: 'tag', order: 'version' });
  const tags = foundTags.items.map(({ name }) => name);
  const others = branches.filter((name) => name !== repository.defaultBranch).slice(0, PICKED_MAX);
  return { branches: findDefaultBranch(repository) === null ? others : [repository.defaultBranch, ...others], tags };
}

/** The path as links to its folders; its own name is last and no link. */
export function breadcrumbs(asked: Asked, ref: string, names: readonly Uint8Array[]): Html {
  const { repository } = asked;
  const root = html`<a href="${placeAddress(repository, 'tree', ref, [])}">${repository.owned.name}</a>`;
  const parts = names.map((name, index) => {
    if (index === names.length - 1) return html`/<strong>${shownName(name)}</strong>`;
    return html`/<a href="${placeAddress(repository, 'tree', ref, names.slice(0, index + 1))}">${shownName(name)}</a>`;
  });
  return html`<nav class="crumbs" aria-label="Path"><bdi>${root}${parts}</bdi></nav>`;
}

/** The address that git clones from, without a secret. */
export function cloneUrl({ visit, repository }: Asked): string {
  return `${visit.webUrl}/r/${repository.account.username}/${repository.owned.name}.git`;
}
