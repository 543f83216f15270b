/** What one branch, tag or commit has that another lacks: the commits, and the lines since both were the same. */
import { PAGE_COMMITS_MAX } from '../../../core/kernel/limits.ts';
import { type Comparison, compareRefs } from '../../../core/use-cases/reading/compare-refs.ts';
import { branchText } from '../../../core/use-cases/reading/resolve-ref.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { bytesOf } from '../layout/weight.ts';
import { commitAddress, repositoryAddress, shownAddress } from './addresses.ts';
import { momentField } from './as-of.ts';
import { daysOf } from './commits.ts';
import { diffView } from './diff-view.ts';
import { showRepositoryPage } from './frame.ts';
import { type PageRequest, showRefusal } from './page-request.ts';
import { type ListPage, pageAsked, pager } from './pager.ts';
import { counted, shortId, shownName } from './shown-text.ts';

/** Refs are in the query: a name may hold any number of slashes. */
export function compareAddress(
  repository: FoundRepository,
  base: string,
  head: string,
  more: Readonly<Record<string, string>> = {},
): string {
  return shownAddress(repository, `${repositoryAddress(repository)}/compare`, { base, head, ...more });
}

export async function showComparison(asked: PageRequest): Promise<SiteAnswer> {
  const { context, repository, visit } = asked;
  const base = textAsked(asked, 'base', branchText(repository, repository.defaultBranch));
  const head = textAsked(asked, 'head', '');
  const frame = { tab: 'Branches' } as const;
  if (head === '') {
    const content = html`<h1>Compare</h1>${form(asked, base, head)}<p class="soft">Name two branches, tags or commits.</p>`;
    return showRepositoryPage(asked, { ...frame, title: 'Compare' }, content);
  }
  const page = pageAsked(visit, PAGE_COMMITS_MAX);
  const found = await compareRefs(context, repository, { base, head, page, signal: visit.signal });
  if ('refused' in found) {
    // The names stay in the form, so that one of them can be mended.
    if (found.refused.code !== 'ref-not-found') return showRefusal(asked, found.refused);
    const content = html`<h1>Compare</h1><p class="note bad" role="alert">One of these is no branch, tag or commit here.</p>${form(
      asked,
      base,
      head,
    )}`;
    return showRepositoryPage(asked, { ...frame, title: 'Compare', status: 404 }, content);
  }
  const address = (file: number | null): string =>
    compareAddress(repository, base, head, file === null ? {} : { file: String(file) });
  const isAlone = visit.url.searchParams.has('file');
  const list = html`${!isAlone && commits(asked, found, { base, head, page })}`;
  const beside = bytesOf(list);
  const diff = diffView(asked, address, found.diff, { beside });
  const content = html`<h1>Compare</h1>${form(asked, base, head)}${summary(asked, found)}${list}${diff}`;
  const title = `${shownName(base)}…${shownName(head)}`;
  return showRepositoryPage(asked, { ...frame, title }, content);
}

function textAsked({ visit }: PageRequest, name: string, otherwise: string): string {
  const text = (visit.url.searchParams.get(name) ?? '').trim();
  return text === '' ? otherwise : text;
}

function form({ repository }: PageRequest, base: string, head: string): Html {
  const field = (name: string, label: string, value: string): Html =>
    html`<label for="${name}">${label}</label><input id="${name}" name="${name}" value="${value}" autocomplete="off" autocapitalize="none" spellcheck="false">`;
  return html`<form class="comparison" action="${repositoryAddress(repository)}/compare">${momentField(repository)}${field('base', 'Base', base)}${field(
    'head',
    'Compare with',
    head,
  )}<button class="button">Compare</button></form>`;
}

function summary({ repository }: PageRequest, { mergeBase, aheadBehind, base, head }: Comparison): Content {
  const counts =
    aheadBehind === null
      ? 'How far they are apart took too long to count.'
      : `${shownName(head.name)} has ${counted(aheadBehind.ahead, 'commit')} that ${shownName(base.name)} lacks, and lacks ${counted(
          aheadBehind.behind,
          'commit',
        )}.`;
  const since =
    mergeBase === null
      ? html`No common commit is known: the files of both are compared.`
      : html`Shown is what changed since <a class="id" href="${commitAddress(repository, mergeBase)}">${shortId(mergeBase)}</a>.`;
  return html`<p class="soft">${counts} ${since}</p>`;
}

interface Shown {
  readonly base: string;
  readonly head: string;
  readonly page: ListPage;
}

/** The rest of the page is for the diff. */
export const COMMITS_BYTES_MAX = 24_000;

function commits(asked: PageRequest, found: Comparison, { base, head, page: wanted }: Shown): Content {
  if (found.commits === null) return html`<p class="note">The commits took too long to find.</p>`;
  const end = wanted.offset + found.commits.length;
  // Without a count there may be one more page after a full one.
  const total = found.aheadBehind?.ahead ?? (found.commits.length === wanted.limit ? end + 1 : end);
  const { days, page } = daysOf(asked, found.commits, wanted, COMMITS_BYTES_MAX);
  return html`${days}${pager(
    shownAddress(asked.repository, `${repositoryAddress(asked.repository)}/compare`),
    page,
    total,
    {
      query: { base, head },
      isExact: found.aheadBehind !== null,
    },
  )}`;
}
