/** Takes the name that somebody typed into the picker of refs to the page of that ref. */
import { findRef, HEAD, idNamed, isShortId } from '../../../core/use-cases/reading/resolve-ref.ts';
import { redirectTo, type SiteAnswer } from '../layout/answer.ts';
import { placeAddress } from './addresses.ts';
import { type PageRequest, showRefusal } from './page-request.ts';

export async function switchRef(asked: PageRequest): Promise<SiteAnswer> {
  const { visit, repository } = asked;
  const typed = (visit.url.searchParams.get('ref') ?? '').trim();
  const ref = typed === '' ? HEAD : typed;
  const isKnown = findRef(repository, ref) !== null || idNamed(ref) !== null || isShortId(repository, ref);
  if (!isKnown) return showRefusal(asked, { code: 'ref-not-found' });
  const kind = visit.url.searchParams.get('page') === 'commits' ? 'commits' : 'tree';
  return redirectTo(placeAddress(repository, kind, ref, []));
}
