/**
 * What changed between two moments: refs, and the files of one of them.
 *
 * Invariants: only the owner comes here, since it names commits that no ref reaches any more. Such a commit has no page
 * of today, so links lead to the moment at which a ref reached it.
 */
import { PAGE_COMMITS_MAX } from '../../../core/kernel/limits.ts';
import {
  type BothMoments,
  type FileChanges,
  filesChangedBetween,
  type RefChange,
  refsChangedBetween,
} from '../../../core/use-cases/as-of/changes-between.ts';
import { HEAD, shortNameOf } from '../../../core/use-cases/reading/resolve-ref.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { hiddenField } from '../layout/forms.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { textBytes } from '../layout/weight.ts';
import { weighMarkup } from '../rendering/weight.ts';
import { commitAddress, momentText, repositoryAddress } from './addresses.ts';
import { longTime, momentShown, repositoryAsOf } from './as-of.ts';
import { type DiffPage, diffAsked, PAGE_FILES_MAX, titleOfPart, wantedFor } from './diff-page.ts';
import { diffView } from './diff-view.ts';
import { showRepositoryPage, showRepositoryProblem } from './frame.ts';
import { inLargeTurn } from './large-reads.ts';
import { momentInput, wholeSecond } from './moment-picker.ts';
import { type PageRequest, showRefusal } from './page-request.ts';
import { type ListPage, pageAsked, pager, rowsWithin } from './pager.ts';
import { counted, shortId, shownName } from './shown-text.ts';

/** The refs of a page leave the rest of it to the files. Internal: further ones are on the next page. */
const REFS_BYTES_MAX = 24_000;

export async function showChanges(asked: PageRequest): Promise<SiteAnswer> {
  const { context, visit, repository } = asked;
  const since = await momentAsked(asked, 'since');
  if (since === null) {
    const content = html`<h1>What changed</h1><p class="soft">Choose two moments to see which branches, tags and files changed between them.</p>${form(asked, { earlier: repository, later: repository, ref: '' })}`;
    return showRepositoryPage(asked, { title: 'What changed', tab: 'Activity' }, content);
  }
  const until = (await momentAsked(asked, 'until')) ?? repository;
  if ('title' in since) return showRepositoryProblem(asked, since);
  if ('title' in until) return showRepositoryProblem(asked, until);
  const both = inOrder(since, until);
  const page = diffAsked(visit);
  const ref = (visit.url.searchParams.get('ref') ?? '').trim();
  const wanted = { ref: ref === '' ? null : ref, shown: wantedFor(page), signal: visit.signal };
  const read = () => filesChangedBetween(context, both, wanted);
  const files = await (page.file === null ? read() : inLargeTurn(asked, read));
  if ('refused' in files && files.refused.code !== 'ref-not-found') return showRefusal(asked, files.refused);
  const listed = pageAsked(visit, PAGE_COMMITS_MAX);
  const isAlone = page.file !== null;
  const refs = isAlone ? null : await refsView(asked, both, { listed, ref });
  const head = html`<h1>What changed</h1>${form(asked, { ...both, ref })}<p>${span(both)}</p>${refs}`;
  const shown = 'refused' in files ? noFiles(ref) : await filesView(asked, { both, page, ref, files }, head);
  const title = titleOf(both, { page, listed, files: 'refused' in files ? null : files, ref });
  return showRepositoryPage(asked, { title, tab: 'Activity', scripts: ['diff.js'] }, html`${head}${shown}`);
}

/** Null without such a moment: it is now, or not chosen yet. */
async function momentAsked({ context, visit, repository }: PageRequest, name: 'since' | 'until') {
  const text = visit.url.searchParams.get(name)?.trim() ?? '';
  return text === '' ? null : repositoryAsOf(context, repository, text, visit);
}

function inOrder(one: FoundRepository, other: FoundRepository): BothMoments {
  const revisionOf = ({ entity }: FoundRepository): number => (entity.revision === 'none' ? -1 : entity.revision);
  return revisionOf(one) > revisionOf(other) ? { earlier: other, later: one } : { earlier: one, later: other };
}

function changesQuery({ earlier, later }: BothMoments, ref: string): Record<string, string> {
  const until = momentText(later);
  return {
    since: momentText(earlier) ?? '',
    ...(until === null ? {} : { until }),
    ...(ref === '' ? {} : { ref }),
  };
}

function addressOf(
  { repository }: Pick<PageRequest, 'repository'>,
  both: BothMoments,
  ref: string,
  more: Readonly<Record<string, string>> = {},
): string {
  const query = new URLSearchParams({ ...changesQuery(both, ref), ...more });
  return `${repositoryAddress(repository)}/changes?${query.toString()}`;
}

function form(
  { visit, repository }: PageRequest,
  { earlier, later, ref }: BothMoments & { readonly ref: string },
): Html {
  return html`<form class="row moments-asked" action="${repositoryAddress(repository)}/changes">${momentInput(
    { name: 'since', label: 'Since (UTC)' },
    momentShown(earlier) ?? wholeSecond(visit.now),
  )}${momentInput({ name: 'until', label: 'Until (UTC)' }, momentShown(later) ?? wholeSecond(visit.now))}${
    ref !== '' && hiddenField('ref', ref)
  }<button class="button main">Show</button></form>`;
}

function span({ earlier, later }: BothMoments): Content {
  const at = (one: FoundRepository): Content => {
    const shown = momentShown(one);
    return shown === null ? 'now' : longTime(shown);
  };
  return html`Between ${at(earlier)} and ${at(later)}.`;
}

const NO_FILES = { branch: 'default branch', other: 'branch or tag' };

function noFiles(ref: string): Html {
  return html`<p class="note">There was no ${ref === '' ? NO_FILES.branch : NO_FILES.other}${
    ref !== '' && html` <bdi>${shownName(ref)}</bdi>`
  } at either moment.</p>`;
}

interface RefsShown {
  readonly listed: ListPage;
  readonly ref: string;
}

async function refsView(asked: PageRequest, both: BothMoments, { listed, ref }: RefsShown): Promise<Html> {
  const { context, visit } = asked;
  const { items, total } = await refsChangedBetween(context, both, listed, visit.signal);
  if (total === 0) return html`<h2>Branches and tags</h2><p class="soft">None changed.</p>`;
  const { rows, page } = rowsWithin(items, listed, (change) => rowOf(asked, both, change), REFS_BYTES_MAX);
  return html`<h2>${counted(total, 'branch or tag', 'branches and tags')} changed</h2><div class="box"><div class="scroll" tabindex="0" role="group" aria-label="Branches and tags"><table class="cards"><thead><tr><th scope="col">Branch or tag</th><th scope="col">Change</th><th scope="col">Before</th><th scope="col">After</th></tr></thead><tbody>${rows.map(
    ({ row }) => row,
  )}</tbody></table></div></div>${pager(addressOf(asked, both, ref), page, total)}`;
}

function rowOf(asked: PageRequest, both: BothMoments, { ref, before, after }: RefChange): Html {
  const { earlier, later } = both;
  const branch = shortNameOf('branch', ref);
  const name = html`<bdi>${shownName(branch ?? shortNameOf('tag', ref) ?? ref)}</bdi>`;
  const what = before === null ? 'Created' : after === null ? 'Deleted' : 'Moved';
  const idAt = (repository: FoundRepository, found: RefChange['before']): Content => {
    if (found === null) return '–';
    // A tag may lead to something else than a commit.
    if (found.type !== 'commit') return shortId(found.id);
    return html`<a href="${commitAddress(repository, found.id)}">${shortId(found.id)}</a>`;
  };
  const shown = after === null ? name : html`<a href="${addressOf(asked, both, ref)}">${name}</a>`;
  return html`<tr><td class="wrap">${shown}</td><td>${what}</td><td class="id">${idAt(earlier, before)}</td><td class="id">${idAt(later, after)}</td></tr>`;
}

interface FilesShown {
  readonly both: BothMoments;
  readonly page: DiffPage;
  readonly ref: string;
  readonly files: FileChanges;
}

/** Addresses of the page that each file of a diff may have. */
const ADDRESSES_OF_FILE = 4;

async function filesView(asked: PageRequest, { both, page, ref, files }: FilesShown, above: Html): Promise<Html> {
  const { diff, before, after } = files;
  const name = html`<bdi>${shownName(shortNameOf('branch', files.ref) ?? shortNameOf('tag', files.ref) ?? files.ref)}</bdi>`;
  if (diff === null || after === null) {
    return html`<h2>Files of ${name}</h2><p class="soft">It led to no commit at the later moment.</p>`;
  }
  const address = (query: Readonly<Record<string, string>>): string => addressOf(asked, both, ref, query);
  const shown = { diff, page, before, after, earlier: both.earlier, address };
  const reader = { ...asked, repository: both.later };
  const { bytes, elements } = weighMarkup(above.markup());
  const listed = Math.min(diff.files.length, PAGE_FILES_MAX);
  const ofAddresses = ADDRESSES_OF_FILE * listed * textBytes(address({ file: String(PAGE_FILES_MAX) }));
  const view = await diffView(reader, shown, { bytes: bytes + ofAddresses, elements });
  return html`<p class="soft">Files of ${name}${before === null && ', which was not there before'}</p>${view}`;
}

interface Titled {
  readonly page: DiffPage;
  readonly listed: ListPage;
  readonly files: FileChanges | null;
  readonly ref: string;
}

function titleOf(both: BothMoments, { page, listed, files, ref }: Titled): string {
  const [file] = page.file === null ? [] : (files?.diff?.files ?? []);
  const part = titleOfPart(page, file === undefined ? null : shownName(file.path));
  const span = `Changes from ${momentText(both.earlier) ?? 'now'} to ${momentText(both.later) ?? 'now'}`;
  const of = ref === '' || ref === HEAD ? '' : ` of ${shownName(ref)}`;
  const from = listed.offset === 0 ? '' : `, from change ${listed.offset + 1}`;
  return `${part === '' ? '' : `${part} · `}${span}${of}${from}`;
}
