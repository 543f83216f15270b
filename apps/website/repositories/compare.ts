/**
 * What one branch, tag or commit has that another lacks: the commits, and the lines since both were the same.
 *
 * Invariants: `compare/<base>...<head>` is the one address of a comparison, and the form leads there. No name of a ref
 * holds two dots, so an address means one comparison only.
 */
import { decodeUtf8 } from '../../../core/git/utf8.ts';
import { PAGE_COMMITS_MAX } from '../../../core/kernel/limits.ts';
import { type Comparison, compareRefs } from '../../../core/use-cases/reading/compare-refs.ts';
import { branchText } from '../../../core/use-cases/reading/resolve-ref.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { redirectTo, type SiteAnswer } from '../layout/answer.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { notFound } from '../layout/problems.ts';
import { textBytes } from '../layout/weight.ts';
import { weighMarkup } from '../rendering/weight.ts';
import { commitAddress, repositoryAddress, segmentsOf, shownAddress } from './addresses.ts';
import { momentField } from './as-of.ts';
import { daysOf } from './commits.ts';
import { refOptions, suggestBranches, suggestInPlace } from './compare-suggestions.ts';
import { diffAsked, titleOfPart, wantedFor } from './diff-page.ts';
import { diffView } from './diff-view.ts';
import { showRepositoryPage } from './frame.ts';
import { inLargeTurn } from './large-reads.ts';
import { SPARE_LINK_BYTES_MAX } from './limits.ts';
import { type PageRequest, showRefusal } from './page-request.ts';
import { type ListPage, numberedTitle, pageAsked, pager } from './pager.ts';
import { counted, shortId, shownName } from './shown-text.ts';

export interface ComparedTexts {
  readonly base: string;
  readonly head: string;
  /** Whether the two are compared as they are, which git writes with two dots. */
  readonly direct: boolean;
}

export function compareAddress(
  repository: FoundRepository,
  { base, head, direct }: ComparedTexts,
  more: Readonly<Record<string, string>> = {},
): string {
  const [from, to] = [base, head].map((text) => text.split('/').map(encodeURIComponent).join('/'));
  return shownAddress(
    repository,
    `${repositoryAddress(repository)}/compare/${from}${direct ? '..' : '...'}${to}`,
    more,
  );
}

const FRAME = { tab: 'Branches' } as const;

/** The page of the form, and where the form leads. */
export async function askToCompare(asked: PageRequest): Promise<SiteAnswer> {
  const { repository } = asked;
  const base = textAsked(asked, 'base') || branchText(repository, repository.defaultBranch);
  const head = textAsked(asked, 'head');
  if (head !== '') return redirectTo(compareAddress(repository, parseTexts(head) ?? { base, head, direct: false }));
  const texts = { base, head, direct: false };
  const suggested = await suggestBranches(asked, (branch) => compareAddress(repository, { ...texts, head: branch }));
  const content = html`<h1>Compare</h1>${await form(asked, texts)}${suggested}`;
  return showRepositoryPage(asked, { ...FRAME, title: 'Compare' }, content);
}

/** Returns the two of a text such as `main...feature/one`; null for a text without dots between two names. */
function parseTexts(text: string): ComparedTexts | null {
  const [, base, dots, head] = /^(.*?)(\.\.\.?)(.*)$/su.exec(text) ?? [];
  return base === undefined || head === undefined ? null : { base, head, direct: dots === '..' };
}

/** The comparison that the address names. */
export async function showComparison(asked: PageRequest): Promise<SiteAnswer> {
  const { context, repository, visit } = asked;
  const named = segmentsOf(visit.target)?.map(decodeUtf8) ?? [null];
  const texts = named.includes(null) ? null : parseTexts(named.join('/'));
  if (texts === null) return notFound(visit);
  const title = `Compare ${titleOf(texts)}`;
  const page = pageAsked(visit, PAGE_COMMITS_MAX);
  const diffPage = diffAsked(visit);
  const wanted = { page, shown: wantedFor(diffPage), signal: visit.signal };
  const read = () => compareRefs(context, repository, { ...texts, ...wanted });
  const found = await (diffPage.file === null ? read() : inLargeTurn(asked, read));
  if ('refused' in found) {
    // The names stay in the form, so that one of them can be mended.
    const side = found.refused.code === 'ref-not-found' ? found.refused.side : undefined;
    if (side === undefined) return showRefusal(asked, found.refused);
    const replaced = (name: string): string => compareAddress(repository, { ...texts, [side]: name });
    const suggested = await suggestInPlace(asked, texts[side], replaced);
    const content = html`<h1>Compare</h1>${await form(asked, texts)}${suggested}`;
    return showRepositoryPage(asked, { ...FRAME, title, status: 404 }, content);
  }
  const shown = {
    diff: found.diff,
    page: diffPage,
    before: found.comparedFrom,
    after: found.head.commit.id,
    address: (query: Readonly<Record<string, string>>) => compareAddress(repository, texts, query),
  };
  const above = html`<h1>Compare</h1>${await form(asked, texts)}${summary(asked, texts, found)}`;
  const list = html`${diffPage.file === null && commits(asked, found, { texts, page })}`;
  const diff = await diffView(asked, shown, weighMarkup(html`${above}${list}`.markup()));
  const content = html`${above}${list}${diff}`;
  const [file] = diffPage.file === null ? [] : found.diff.files;
  const part = titleOfPart(diffPage, file === undefined ? null : shownName(file.path));
  const whole = numberedTitle(part === '' ? title : `${part} · ${title}`, page);
  return showRepositoryPage(asked, { ...FRAME, title: whole, scripts: ['diff.js'] }, content);
}

function titleOf({ base, head, direct }: ComparedTexts): string {
  return `${shownName(base)}${direct ? '..' : '...'}${shownName(head)}`;
}

function textAsked({ visit }: PageRequest, name: string): string {
  return (visit.url.searchParams.get(name) ?? '').trim();
}

async function form(asked: PageRequest, { base, head }: ComparedTexts): Promise<Html> {
  const { repository } = asked;
  const field = (name: string, label: string, value: string): Html =>
    html`<label for="${name}">${label}</label><input id="${name}" name="${name}" value="${value}" list="refs" autocomplete="off" autocapitalize="none" spellcheck="false">`;
  return html`<form class="comparison" action="${repositoryAddress(repository)}/compare">${momentField(repository)}${field('base', 'Base', base)}${field(
    'head',
    'Compare with',
    head,
  )}<button class="button">Compare</button>${await refOptions(asked, 'refs')}</form>`;
}

function summary({ repository }: PageRequest, texts: ComparedTexts, found: Comparison): Content {
  const { aheadBehind, base, head } = found;
  const counts =
    aheadBehind === null
      ? 'How far they are apart took too long to count.'
      : `${shownName(head.name)} has ${counted(aheadBehind.ahead, 'commit')} that ${shownName(base.name)} lacks, and lacks ${counted(
          aheadBehind.behind,
          'commit',
        )}.`;
  return html`<p class="soft">${counts} ${since(repository, texts, found)}</p>${otherComparisons(repository, texts)}`;
}

function otherComparisons(repository: FoundRepository, texts: ComparedTexts): Content {
  const { base, head, direct } = texts;
  if (textBytes(base) + textBytes(head) > SPARE_LINK_BYTES_MAX) return null;
  const other = compareAddress(repository, { ...texts, direct: !direct });
  const swapped = compareAddress(repository, { base: head, head: base, direct });
  const label = direct ? 'Compare since their common commit' : 'Compare both as they are';
  return html`<p class="soft"><a href="${other}">${label}</a> · <a href="${swapped}">Swap the two</a></p>`;
}

function since(
  repository: FoundRepository,
  { direct }: ComparedTexts,
  { mergeBase, mergeBaseKnown }: Pick<Comparison, 'mergeBase' | 'mergeBaseKnown'>,
): Content {
  if (direct) return 'Shown is what differs between the two as they are.';
  if (!mergeBaseKnown) return 'Their common commit took too long to find: the files of both are compared.';
  if (mergeBase === null) return 'They have no commit in common: the files of both are compared.';
  return html`Shown is what changed since <a class="id" href="${commitAddress(repository, mergeBase)}">${shortId(mergeBase)}</a>.`;
}

interface Shown {
  readonly texts: ComparedTexts;
  readonly page: ListPage;
}

/** The rest of the page is for the diff. */
export const COMMITS_BYTES_MAX = 24_000;

function commits(asked: PageRequest, found: Comparison, { texts, page: wanted }: Shown): Content {
  if (found.commits === null) return html`<p class="note">The commits took too long to find.</p>`;
  const end = wanted.offset + found.commits.length;
  // Without a count there may be one more page after a full one.
  const total = found.aheadBehind?.ahead ?? (found.commits.length === wanted.limit ? end + 1 : end);
  const { days, page } = daysOf(asked, found.commits, wanted, COMMITS_BYTES_MAX);
  const isExact = found.aheadBehind !== null;
  return html`${days}${pager(compareAddress(asked.repository, texts), page, total, { isExact })}`;
}
