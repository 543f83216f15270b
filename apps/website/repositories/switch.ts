/** Takes the name that somebody typed into the picker of refs to the page of that ref, or to the names like it. */
import { findRef, HEAD, idNamed, isShortId } from '../../../core/use-cases/reading/resolve-ref.ts';
import { redirectTo, type SiteAnswer } from '../layout/answer.ts';
import { placeAddress, repositoryAddress, shownAddress } from './addresses.ts';
import type { PageRequest } from './page-request.ts';
import { kindAsked } from './refs.ts';
import { SEARCH_LENGTH_MAX } from './refs-search.ts';

export async function switchRef(asked: PageRequest): Promise<SiteAnswer> {
  const { visit, repository } = asked;
  const typed = (visit.url.searchParams.get('ref') ?? '').trim();
  const ref = typed === '' ? HEAD : typed;
  const isKnown = findRef(repository, ref) !== null || idNamed(ref) !== null || isShortId(repository, ref);
  const kind = kindAsked(asked);
  if (isKnown) return redirectTo(placeAddress(repository, kind, ref, []));
  const query = { q: typed.slice(0, SEARCH_LENGTH_MAX), page: kind };
  return redirectTo(shownAddress(repository, `${repositoryAddress(repository)}/refs`, query));
}
