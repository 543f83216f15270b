/**
 * Branches and tags that somebody may want to compare.
 *
 * Invariants: what is suggested exists, and is bounded in number and bytes, however many refs a repository has.
 */
import { commitTime } from '../../../core/git/commit-time.ts';
import { findRefs } from '../../../core/use-cases/reading/find-refs.ts';
import { listBranchPage } from '../../../core/use-cases/reading/list-branch-page.ts';
import { branchText, shortTagText, tagText } from '../../../core/use-cases/reading/resolve-ref.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';
import { firstWithin, textBytes } from '../layout/weight.ts';
import { PICKED_BYTES_MAX, refsToPick } from './frame.ts';
import { SPARE_LINK_BYTES_MAX } from './limits.ts';
import type { PageRequest } from './page-request.ts';
import { SEARCH_LENGTH_MAX } from './refs-search.ts';
import { shownName, subjectOf } from './shown-text.ts';

/**
 * Branches on the page that asks what to compare, and names that are like one that does not exist. Internal: any other
 * is typed.
 */
const SUGGESTED_MAX = 10;

/** The texts that a field offers while somebody types: the first branches, and the highest tags. */
export async function refOptions(asked: PageRequest, id: string): Promise<Html> {
  const { repository } = asked;
  const { branches, tags } = await refsToPick(asked);
  const tagTexts = tags.map((name) => shortTagText(repository, name));
  const texts = [...branches.map((name) => branchText(repository, name)), ...tagTexts];
  const short = texts.filter((text) => textBytes(text) <= SPARE_LINK_BYTES_MAX);
  const options = short.map((text) => html`<option value="${text}"></option>`);
  return html`<datalist id="${id}">${firstWithin(options, PICKED_BYTES_MAX)}</datalist>`;
}

/** The branches that changed last, each with the address that compares it. */
export async function suggestBranches(asked: PageRequest, address: (branch: string) => string): Promise<Content> {
  const { context, repository, visit } = asked;
  const page = { offset: 0, limit: SUGGESTED_MAX + 1 };
  const wanted = { search: '', order: 'changed', page, signal: visit.signal } as const;
  const { branches } = await listBranchPage(context, repository, wanted);
  const others = branches.items.filter(({ isDefault }) => !isDefault).slice(0, SUGGESTED_MAX);
  if (others.length === 0) return html`<p class="soft">Name two branches, tags or commits.</p>`;
  const rows = others.map(
    ({ name, commit }) =>
      html`<li><a class="subject" href="${address(branchText(repository, name))}"><bdi>${shownName(name)}</bdi></a><span class="soft" dir="auto">${subjectOf(
        commit.message,
      )}</span><span class="soft">${timeAgo(commitTime(commit.committedAt), visit.now)}</span></li>`,
  );
  return html`<p class="soft">Name two branches, tags or commits, or choose a branch.</p><section class="box"><header><h2>Branches that changed last</h2></header><ol class="commits">${firstWithin(rows, PICKED_BYTES_MAX)}</ol></section>`;
}

/** Says that a text names nothing, and links the names that are like it; `address` compares another in its place. */
export async function suggestInPlace(
  asked: PageRequest,
  text: string,
  address: (name: string) => string,
): Promise<Html> {
  const names = await namesLike(asked, text);
  const links = names.map((name) => html` <a href="${address(name)}"><bdi>${shownName(name)}</bdi></a>`);
  return html`<p class="note bad" role="alert">There is no branch, tag or commit <bdi>${shownName(text)}</bdi>.${
    links.length > 0 && html` Did you mean${firstWithin(links, PICKED_BYTES_MAX)}?`
  }</p>`;
}

/** Returns texts that name refs: those whose name contains the text, or its last component. */
async function namesLike({ context, repository }: PageRequest, text: string): Promise<readonly string[]> {
  const { state } = repository.entity;
  const page = { offset: 0, limit: SUGGESTED_MAX };
  const last = text.slice(text.lastIndexOf('/') + 1);
  const found = new Set<string>();
  for (const search of new Set([text, last])) {
    if (search === '' || search.length > SEARCH_LENGTH_MAX) continue;
    const branches = await findRefs(context, state, { kind: 'branch', search, order: 'name', page });
    for (const { name } of branches.items) found.add(branchText(repository, name));
    const tags = await findRefs(context, state, { kind: 'tag', search, order: 'version', page });
    for (const { name } of tags.items) found.add(tagText(name));
  }
  return [...found].slice(0, SUGGESTED_MAX);
}
