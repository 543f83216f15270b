/**
 * What a page of a repository was asked for: who asks, the repository, and the ref and path of the address.
 *
 * Invariants: every page reaches its repository through `onRepository`, which asks the front door. A repository
 * that the person does not see gets the same page as one that does not exist.
 */
import type { Refusal, RefusalCode } from '../../../core/kernel/refusal.ts';
import type { Requirement } from '../../../core/use-cases/callers/permission.ts';
import { fullIdOf } from '../../../core/use-cases/reading/full-id.ts';
import { type RefPath, splitRefPath } from '../../../core/use-cases/reading/ref-path.ts';
import { isShortId } from '../../../core/use-cases/reading/resolve-ref.ts';
import { type FoundRepository, isFormerName } from '../../../core/use-cases/repositories/repositories.ts';
import { admitToRepository } from '../../front-door/admission.ts';
import type { SiteContext } from '../context.ts';
import { localPath, movedTo, redirectTo, type SiteAnswer } from '../layout/answer.ts';
import { type Fields, NO_FIELDS } from '../layout/forms.ts';
import { type Content, html } from '../layout/html.ts';
import { notFound } from '../layout/problems.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { commitAddress, MOMENT, repositoryAddress, segmentsOf } from './addresses.ts';
import { repositoryAsOf } from './as-of.ts';
import type { AskedPage } from './asked-page.ts';
import { notFoundHere, showRepositoryProblem } from './frame.ts';

export interface PageRequest extends AskedPage {
  readonly context: SiteContext;
}

type Handler = (visit: PersonVisit, fields?: Fields) => Promise<SiteAnswer>;

/** People have every grant on their own repositories, so sight is all that there is to check. */
const SEEN: Requirement = { grant: null, scope: null, onItself: false };

export function onRepository(
  context: SiteContext,
  handler: (asked: PageRequest, fields: Fields) => Promise<SiteAnswer>,
): Handler {
  return async (visit, fields = NO_FIELDS) => {
    const { username = '', repository: name = '' } = visit.params;
    const names = { username, name };
    const repository = await admitToRepository(context, visit.person.principal, SEEN, names, 'sight');
    if ('denied' in repository) return notFound(visit);
    // A form that was open while the repository was renamed is taken where it was sent.
    const moved = fields === NO_FIELDS && isFormerName(repository, name) ? movedPage(visit, repository) : null;
    return moved ?? handler({ context, visit, repository }, fields);
  };
}

function movedPage({ target }: PersonVisit, repository: FoundRepository): SiteAnswer | null {
  return movedTo(target.replace(/^\/[^/?#]+\/[^/?#]+/, repositoryAddress(repository)));
}

/** Does what `onRepository` does, for pages that show the repository as of the moment that the address names. */
export function onRepositoryAsOf(context: SiteContext, handler: (asked: PageRequest) => Promise<SiteAnswer>): Handler {
  return onRepository(context, async (asked) => {
    const { visit } = asked;
    const now = { ...asked, takesMoment: true };
    const text = visit.url.searchParams.get(MOMENT);
    if (text === null) return handler(now);
    const found = await repositoryAsOf(context, asked.repository, text, visit);
    return 'title' in found ? showRepositoryProblem(now, found) : handler({ ...now, repository: found });
  });
}

/** Does what `onRepositoryAsOf` does, for addresses that end in `<ref>/<path>`. */
export function onPlace(
  context: SiteContext,
  handler: (asked: PageRequest, place: RefPath) => Promise<SiteAnswer>,
): Handler {
  return onRepositoryAsOf(context, async (asked) => {
    const segments = segmentsOf(asked.visit.target);
    if (segments === null) return notFoundHere(asked);
    const place = splitRefPath(asked.repository, segments);
    if (place === null) return showRefusal(asked, { code: 'ref-not-found' });
    return isShortId(asked.repository, place.ref) ? leadToFullId(asked, place.ref) : handler(asked, place);
  });
}

const BEFORE_REF = /^(\/[^/?#]+\/[^/?#]+\/[^/?#]+\/)[^/?#]+/;

/** Leads to the same page under the full id, which stays right whatever is pushed later. */
export async function leadToFullId(asked: PageRequest, digits: string): Promise<SiteAnswer> {
  const { context, repository, visit } = asked;
  const addressOf = (id: string): string => visit.target.replace(BEFORE_REF, `$1${id}`);
  const found = await fullIdOf(context, repository, digits);
  if ('refused' in found) return showRefusal(asked, found.refused, addressOf);
  const address = localPath(addressOf(found.id));
  return address === null ? notFound(visit) : redirectTo(address);
}

interface RefusalPage {
  readonly status: number;
  readonly title: string;
  readonly text: Content;
}

/** What the use cases of reading refuse; anything else is no fault of the address. */
const NO_PATH: RefusalPage = {
  status: 404,
  title: 'No such file or folder',
  text: 'Nothing has this path at this commit. It may be on another branch.',
};
const PAGES: Readonly<Partial<Record<RefusalCode, RefusalPage>>> = {
  'ref-not-found': {
    status: 404,
    title: 'No such branch, tag or commit',
    text: 'It may have been deleted or renamed since this address was written. The repository’s page lists what there is.',
  },
  'ref-not-a-commit': {
    status: 422,
    title: 'This tag has no commits',
    text: 'It leads to a folder or a file, not to a commit. The repository’s page of tags shows what each leads to.',
  },
  'ref-not-a-tree': {
    status: 422,
    title: 'This tag leads to a file',
    text: 'Archives are made of folders. The page of the file has its bytes.',
  },
  'commit-without-patch': {
    status: 422,
    title: 'This commit has no patch',
    text: 'A merge and a commit that changed no file have none. Its .diff says what differs from its first parent.',
  },
  'files-too-many': {
    status: 422,
    title: 'Too many files',
    text: 'This branch, tag or commit has too many files to list or to search together. A search below one folder may do.',
  },
  'path-not-found': NO_PATH,
  'path-not-a-file': NO_PATH,
  'repository-without-commits': {
    status: 404,
    title: 'Nothing was pushed yet',
    text: 'The repository’s page has the commands for a first push.',
  },
  'default-branch-missing': {
    status: 404,
    title: 'The default branch does not exist',
    text: 'It was deleted, or never pushed. The repository’s page lists the branches that there are.',
  },
  'file-too-large': { status: 403, title: 'This file is too large', text: 'A clone has it whole.' },
  'transfer-quota-reached': {
    status: 403,
    title: 'No transfer left this month',
    text: 'The plan’s quota of transfer is reached for this month.',
  },
};

/**
 * The page for what a use case refused to show. `addressOf` leads to what was asked for under the full id of a commit;
 * by default to the commit.
 */
export function showRefusal(
  asked: AskedPage,
  refusal: Refusal,
  addressOf = (id: string): string => commitAddress(asked.repository, id),
): SiteAnswer {
  const refused = refusal.code === 'short-id-ambiguous' ? severalCommits(refusal, addressOf) : PAGES[refusal.code];
  return refused === undefined ? notFoundHere(asked) : showRepositoryProblem(asked, refused);
}

function severalCommits(
  { digits, commits, more }: Extract<Refusal, { readonly code: 'short-id-ambiguous' }>,
  addressOf: (id: string) => string,
): RefusalPage {
  const links = commits.map((id) => html` <a class="id" href="${addressOf(id)}">${id}</a>`);
  const text = html`Choose one, or write more digits:${links}${more && ' and others'}`;
  return { status: 422, title: `Several commits begin with ${digits}`, text };
}

/** Returns a number of the query, `otherwise` if it is missing or none. */
export function numberAsked({ url }: Pick<PersonVisit, 'url'>, name: string, otherwise: number): number {
  const text = url.searchParams.get(name) ?? '';
  return /^\d{1,9}$/.test(text) ? Number(text) : otherwise;
}
