/**
 * The head of every page of a repository: its names, its description and its tabs; and parts that several pages show.
 */
import { momentInUrl } from '../../../core/audit/moment.ts';
import { type FindRefsContext, findRefs } from '../../../core/use-cases/reading/find-refs.ts';
import { branchText, findDefaultBranch, idNamed, tagText } from '../../../core/use-cases/reading/resolve-ref.ts';
import type { ScriptName } from '../assets/files.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { hiddenField } from '../layout/forms.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { type Problem, problemContent } from '../layout/problems.ts';
import { bytesOf } from '../layout/weight.ts';
import {
  filesAddress,
  momentText,
  type PlaceKind,
  pathField,
  placeAddress,
  repositoryAddress,
  searchAddress,
  shownAddress,
  switchAddress,
} from './addresses.ts';
import { asOfBand, momentField } from './as-of.ts';
import type { AskedPage } from './asked-page.ts';
import { momentPicker } from './moment-picker.ts';
import { shortId, shownName } from './shown-text.ts';

export type Tab = 'Code' | 'Commits' | 'Branches' | 'Tags' | 'Search' | 'Activity' | 'Settings';

interface FrameOptions {
  /** The title of this page; the repository's name is added, and the moment that it shows. */
  readonly title: string | null;
  readonly tab: Tab;
  /** The ref whose files `t` leads to; by default the default branch. */
  readonly ref?: string;
  /** Whether the repository's name is the page's h1. Otherwise the content has it. */
  readonly isHome?: boolean;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** The modules that this page needs beside those of every page. */
  readonly scripts?: readonly ScriptName[];
}

export function showRepositoryPage(asked: AskedPage, options: FrameOptions, content: Content): SiteAnswer {
  const { visit, repository } = asked;
  const { account, owned } = repository;
  const name = `${account.username}/${owned.name}`;
  const ref = options.ref ?? branchText(repository, repository.defaultBranch);
  const names = html`<a href="/${account.username}">${account.username}</a><span class="slash">/</span><a href="${shownAddress(
    repository,
    repositoryAddress(repository),
  )}">${owned.name}</a>`;
  const heading = options.isHome === true ? html`<h1 class="title">${names}</h1>` : html`<p class="title">${names}</p>`;
  const head = html`${heading}${owned.description !== null && html`<p dir="auto">${shownName(owned.description)}</p>`}
<div class="bar"><nav class="tabs" aria-label="Repository" data-files="${filesAddress(repository, ref)}">${tabsOf(asked, options.tab, ref)}</nav>${momentPicker(asked)}</div>`;
  const { status = 200, headers = {} } = options;
  const scripts: readonly ScriptName[] = ['go-to-file.js', 'moments.js', 'ref-picker.js', ...(options.scripts ?? [])];
  const moment = momentText(repository);
  // The title is as exact as the address.
  const asOf = moment === null ? null : `as of ${moment}`;
  const title = [options.title, name, asOf].filter((part) => part !== null).join(' · ');
  return showPage(page(visit, { title, head, scripts }, html`${asOfBand(asked)}${content}`), status, headers);
}

/** The page of what went wrong below a repository that the person sees. */
export function showRepositoryProblem(asked: AskedPage, problem: Problem): SiteAnswer {
  const { visit, repository } = asked;
  const label = `${repository.account.username}/${repository.owned.name}`;
  const back = { path: shownAddress(repository, repositoryAddress(repository)), label };
  const { status, title, headers = {} } = problem;
  const content = html`<div class="stack middle start">${problemContent(visit, { back, ...problem })}</div>`;
  return showRepositoryPage(asked, { title, tab: tabOf(visit), status, headers }, content);
}

/** Does what `notFound` does below a repository that the person sees. */
export function notFoundHere(asked: AskedPage): SiteAnswer {
  const text = 'Nothing is at this address of the repository. The tabs above lead to what there is.';
  return showRepositoryProblem(asked, { status: 404, title: 'Page not found', text });
}

const TABS: Readonly<Partial<Record<string, Tab>>> = {
  commits: 'Commits',
  commit: 'Commits',
  branches: 'Branches',
  compare: 'Branches',
  'new-branch': 'Branches',
  tags: 'Tags',
  'new-tag': 'Tags',
  search: 'Search',
  activity: 'Activity',
  changes: 'Activity',
  moments: 'Activity',
  restore: 'Activity',
  settings: 'Settings',
  purge: 'Settings',
};

/** The tab that an address belongs to. */
function tabOf({ target }: AskedPage['visit']): Tab {
  const [, , , page = ''] = (target.split(/[?#]/, 1)[0] ?? '').split('/');
  return TABS[page] ?? 'Code';
}

function tabsOf({ repository }: AskedPage, current: Tab, ref: string): Content {
  const home = repositoryAddress(repository);
  const tabs: readonly (readonly [Tab, string])[] = [
    ['Code', shownAddress(repository, home)],
    ['Commits', shownAddress(repository, `${home}/commits`)],
    ['Branches', shownAddress(repository, `${home}/branches`)],
    ['Tags', shownAddress(repository, `${home}/tags`)],
    ['Search', searchAddress(repository, ref)],
    ['Activity', `${home}/activity`],
    ['Settings', `${home}/settings`],
  ];
  return tabs.map(
    ([label, path]) => html`<a href="${path}"${label === current && html` aria-current="page"`}>${label}</a>`,
  );
}

/**
 * How many branches and tags the picker lists, and the bytes that each of both lists takes; others are found by their
 * names.
 */
export const PICKED_MAX = 20;
export const PICKED_BYTES_MAX = 3_000;

/** The way to the files of a ref by a part of their path. */
export function goToFile({ repository }: Pick<AskedPage, 'repository'>, ref: string): Html {
  return html`<a class="button quiet" href="${filesAddress(repository, ref)}">Go to file</a>`;
}

type PickingAsked = Pick<AskedPage, 'repository'> & { readonly context: FindRefsContext };

/**
 * A list of branches and tags that lead to the same path, or to the nearest folder of it that they have; and a field
 * for the name of any other ref or commit.
 */
export async function refPicker(
  asked: PickingAsked,
  kind: PlaceKind,
  ref: string,
  names: readonly Uint8Array[],
): Promise<Html> {
  const { repository } = asked;
  const lists = await pickedLists(asked, { kind, ref, names });
  const shown = idNamed(ref) === null ? shownName(ref) : shortId(ref);
  return html`<details class="pop"><summary class="button">${shown} ▾</summary><form class="menu" action="${repositoryAddress(
    repository,
  )}/switch"><label for="ref">Branch, tag or commit</label><input id="ref" name="ref" autocomplete="off" autocapitalize="none" spellcheck="false">${hiddenField('page', kind)}${
    names.length > 0 && hiddenField('path', pathField(names))
  }${momentField(repository)}
<div class="picked" data-refs="${repositoryAddress(repository)}/refs" aria-live="polite">${lists}</div></form></details>`;
}

interface Picking {
  readonly kind: PlaceKind;
  /** The ref that the page shows; null: none. */
  readonly ref: string | null;
  readonly names: readonly Uint8Array[];
  /** A part of the names; empty for the lists that a page begins with. */
  readonly search?: string;
}

/** Links to the first branches and tags, or to the first that a search finds. */
export async function pickedLists(asked: PickingAsked, { kind, ref, names, search = '' }: Picking): Promise<Html> {
  const { repository } = asked;
  const { branches, tags } = await refsToPick(asked, search);
  // A path need not be at the other ref.
  const addressOf = (to: string): string =>
    names.length === 0
      ? placeAddress(repository, kind === 'commits' ? kind : 'tree', to, [])
      : switchAddress(repository, kind, to, names);
  const link = (label: string, to: string): Html =>
    html`<li><a href="${addressOf(to)}"${to === ref && html` aria-current="true"`}>${shownName(label)}</a></li>`;
  const branchLinks = picked(branches.map((name) => link(name, branchText(repository, name))));
  const tagLinks = picked(tags.map((name) => link(name, tagText(name))));
  if (branchLinks.length + tagLinks.length === 0)
    return html`<p class="soft">No branch and no tag has this in its name.</p>`;
  return html`${branchLinks.length > 0 && html`<h3>Branches</h3><ul class="refs">${branchLinks}</ul>`}${
    tagLinks.length > 0 && html`<h3>Tags</h3><ul class="refs">${tagLinks}</ul>`
  }`;
}

export function picked(links: readonly Html[]): readonly Html[] {
  return links.filter((_, index) => bytesOf(...links.slice(0, index + 1)) <= PICKED_BYTES_MAX);
}

/** The branches and tags that lists offer: without a search, the default branch comes first. */
export async function refsToPick({ context, repository }: PickingAsked, search = '') {
  const { state } = repository.entity;
  const first = { search, page: { offset: 0, limit: PICKED_MAX } };
  const found = await findRefs(context, state, { ...first, kind: 'branch', order: 'name' });
  const branches = found.items.map(({ name }) => name);
  const foundTags = await findRefs(context, state, { ...first, kind: 'tag', order: 'version' });
  const tags = foundTags.items.map(({ name }) => name);
  if (search !== '') return { branches, tags };
  const others = branches.filter((name) => name !== repository.defaultBranch).slice(0, PICKED_MAX);
  return { branches: findDefaultBranch(repository) === null ? others : [repository.defaultBranch, ...others], tags };
}

/**
 * The bytes of the links to a path's folders: each holds the path up to it, so those of a deep one weigh its square.
 */
export const CRUMBS_BYTES_MAX = 3_000;

/**
 * The path as links to its folders; its own name is last and no link. Of a very long path the last folders are named.
 */
export function breadcrumbs({ repository }: AskedPage, ref: string, names: readonly Uint8Array[]): Html {
  const folders = lastCrumbs(names.length - 1, (count) => {
    const address = placeAddress(repository, 'tree', ref, names.slice(0, count));
    return html`/<a href="${address}">${shownName(names[count - 1] ?? '')}</a>`;
  });
  const root = html`<a href="${placeAddress(repository, 'tree', ref, [])}">${repository.owned.name}</a>`;
  const last = names.at(-1);
  return html`<nav class="crumbs" aria-label="Path"><bdi>${root}${folders}${
    last !== undefined && html`/<strong>${shownName(last)}</strong>`
  }</bdi></nav>`;
}

/** Makes the links to the folders of a path from the last to the first, until they weigh too much. */
export function lastCrumbs(count: number, linkTo: (count: number) => Html): readonly Html[] {
  const folders: Html[] = [];
  let left = CRUMBS_BYTES_MAX;
  for (let at = count; at > 0; at -= 1) {
    if (left < 0) return [html`/…`, ...folders];
    const link = linkTo(at);
    left -= bytesOf(link);
    folders.unshift(link);
  }
  return folders;
}

/** The address that git clones from, without a secret: what it gives is what the page shows. */
export function cloneUrl({ visit, repository }: AskedPage): string {
  const { account, owned, asOf } = repository;
  const moment = asOf === undefined ? '' : `@${momentInUrl(asOf)}`;
  return `${visit.webUrl}/r/${account.username}/${owned.name}${moment}.git`;
}
