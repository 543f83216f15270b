/**
 * Leads from one ref to another: to the same path there, or to what is nearest to it; and from a name that there is not
 * to the names like it.
 */

import { listCommits } from '../../../core/use-cases/reading/list-commits.ts';
import type { RefPath } from '../../../core/use-cases/reading/ref-path.ts';
import { findRef, HEAD, idNamed, isShortId } from '../../../core/use-cases/reading/resolve-ref.ts';
import { redirectTo, type SiteAnswer } from '../layout/answer.ts';
import { pathField, placeAddress, repositoryAddress, shownAddress } from './addresses.ts';
import { contentsAt } from './contents-at.ts';
import type { PageRequest } from './page-request.ts';
import { kindAsked, type PickedKind, pathAsked } from './refs.ts';
import { SEARCH_LENGTH_MAX } from './refs-search.ts';
import { pathText, shownName } from './shown-text.ts';

export async function switchRef(asked: PageRequest): Promise<SiteAnswer> {
  const { visit, repository } = asked;
  const typed = (visit.url.searchParams.get('ref') ?? '').trim();
  const ref = typed === '' ? HEAD : typed;
  const kind = kindAsked(asked);
  const names = pathAsked(asked);
  const isKnown = findRef(repository, ref) !== null || idNamed(ref) !== null || isShortId(repository, ref);
  if (!isKnown) {
    const path = names.length === 0 ? {} : { path: pathField(names) };
    const query = { q: typed.slice(0, SEARCH_LENGTH_MAX), page: kind, ...path };
    return redirectTo(shownAddress(repository, `${repositoryAddress(repository)}/refs`, query));
  }
  return kind === 'commits' ? leadToCommits(asked, { ref, names }) : leadToPath(asked, kind, { ref, names });
}

/** The commits of a path are there after it is gone; of one that never was on the ref there are none. */
async function leadToCommits(asked: PageRequest, { ref, names }: RefPath): Promise<SiteAnswer> {
  const { context, visit, repository } = asked;
  const all = placeAddress(repository, 'commits', ref, []);
  if (names.length === 0) return redirectTo(all);
  const ofPath = { path: { names, folder: false }, follow: true, signal: visit.signal };
  const page = { offset: 0, limit: 1 };
  const list = await listCommits(context, repository, { ref, ofPath, search: null, page });
  const hasNone = 'refused' in list && list.refused.code === 'path-not-found';
  return hasNone
    ? redirectTo(all, missingText(ref, names))
    : redirectTo(placeAddress(repository, 'commits', ref, names));
}

async function leadToPath(
  asked: PageRequest,
  kind: Exclude<PickedKind, 'commits'>,
  { ref, names }: RefPath,
): Promise<SiteAnswer> {
  const { repository } = asked;
  const folder = (at: readonly Uint8Array[]): string => placeAddress(repository, 'tree', ref, at);
  if (names.length === 0) return redirectTo(folder([]));
  const found = await contentsAt(asked, { ref, names });
  // What else is refused is so by the page of the path, which says why.
  const isMissing = 'refused' in found && found.refused.code === 'path-not-found';
  if (isMissing) {
    const there = await foldersThere(asked, { ref, names });
    return redirectTo(folder(names.slice(0, there)), missingText(ref, names));
  }
  if ('type' in found && found.type === 'dir') return redirectTo(folder(names));
  const isFile = 'type' in found && found.type === 'file';
  return redirectTo(placeAddress(repository, kind === 'blame' && isFile ? kind : 'blob', ref, names));
}

/** How many names of a path that is missing lead to a folder: above each folder that is there are others. */
async function foldersThere(asked: PageRequest, { ref, names }: RefPath): Promise<number> {
  let [there, missing] = [0, names.length];
  while (missing - there > 1) {
    const half = Math.floor((there + missing) / 2);
    const found = await contentsAt(asked, { ref, names: names.slice(0, half) });
    if ('type' in found && found.type === 'dir') there = half;
    else missing = half;
  }
  return there;
}

function missingText(ref: string, names: readonly Uint8Array[]): string {
  return `${pathText(names)} is not in ${shownName(ref)}.`;
}
