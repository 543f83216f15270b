/**
 * Decides whether a fetch may be answered, and opens what its answer is made from (docs/git-path.md, Fetch).
 *
 * Invariants: upload-pack checks nobody's access, so the objects, or an answer in memory, are returned only after the
 * transfer quota, every want and every `deepen-not` were checked against the refs of the view. Whoever gets a fetch
 * must close it, or the repository's objects are never evicted; on every other exit this file closes them.
 */
import { DEPTH_OF_ALL, type FetchRequest } from '../../git/wire/fetch-request.ts';
import { GIB } from '../../kernel/byte-units.ts';
import type { Digest } from '../../kernel/digest.ts';
import type { ObjectId, Timestamp } from '../../kernel/ids.ts';
import { sortInTurns } from '../../kernel/turns.ts';
import type { Clock } from '../../ports/clock.ts';
import type { HeldAnswer, ObjectDatabase, ObjectReader, PlainClone, RefsView } from '../../ports/object-database.ts';
import type { TransferBudget } from '../../usage/budget.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { refsKeyOf, refsViewOf } from './advertised-refs.ts';
import { unauthorisedMentions, unauthorisedWants } from './authorise-wants.ts';
import { openView, type RepositoryView } from './repository-view.ts';
import { countRefsToGit } from './resolve-ref.ts';

/** The size of all layers of a repository whose answers to clones are kept; those of larger ones are not. */
export const ANSWER_KEPT_BYTES_MAX = GIB;
/**
 * Answers to more wants are not kept: their key is made from all of them, in order. Internal: what is not kept is made
 * again.
 */
const ANSWER_KEPT_WANTS_MAX = 131_072;

export interface OpenFetchContext {
  readonly objects: Pick<ObjectDatabase, 'open' | 'heldAnswer'>;
  readonly transferBudget: TransferBudget;
  readonly digest: Pick<Digest, 'sha256'>;
  readonly clock: Pick<Clock, 'nextTurn'>;
}

/** Why a fetch is refused. Git's clients read the reasons in Git's own words, so they are no codes of the API. */
export type FetchDenial =
  | { readonly code: 'transfer-quota-reached' }
  /** There is no object with this id, or none that may be fetched. */
  | { readonly code: 'want-not-reachable'; readonly id: ObjectId }
  /** upload-pack exits on a `deepen-not` that names no ref, or more than one. */
  | { readonly code: 'deepen-not-unresolved' | 'deepen-not-ambiguous'; readonly name: string };

/** A fetch that may be answered. */
export interface OpenFetch {
  readonly reader: ObjectReader;
  readonly view: RefsView;
  /**
   * Commits of the client's shallow boundary that it could not fetch. upload-pack must not see them
   * (core/git/history/hidden-edges.ts).
   */
  readonly hiddenEdges: ReadonlySet<ObjectId>;
  /** Names the answer: fetches with equal keys get equal bytes. Null if the answer must not be kept. */
  readonly answerKey: string | null;
  /** Null for any other request than a plain clone. */
  readonly clone: PlainClone | null;
  /** Idempotent. */
  close(): void;
}

/** A fetch that may be answered with bytes in memory. Whoever gets them must release them. */
export interface HeldFetch {
  readonly held: HeldAnswer;
}

type Denied = { readonly refused: FetchDenial };

/** Opens a fetch at the revision of the repository that the caller found. */
export async function openFetch(
  context: OpenFetchContext,
  repository: FoundRepository,
  fetch: FetchRequest,
  now: Timestamp,
): Promise<OpenFetch | HeldFetch | Denied> {
  if (!(await context.transferBudget.hasRoom(repository.accountId, repository.account.plan))) {
    return { refused: { code: 'transfer-quota-reached' } };
  }
  const view = openView(context, repository);
  let isOpen = false;
  try {
    const opened = await authorise(context, view, fetch, now);
    isOpen = 'reader' in opened;
    return opened;
  } finally {
    if (!isOpen) view.close();
  }
}

async function authorise(
  context: OpenFetchContext,
  opening: RepositoryView,
  fetch: FetchRequest,
  now: Timestamp,
): Promise<OpenFetch | HeldFetch | Denied> {
  const { repository } = opening;
  const { state } = repository.entity;
  const objects = () => opening.objects();
  const viewKey = refsKeyOf(repository);
  const [denied] = await unauthorisedWants(state, fetch.wants, viewKey, now, objects);
  if (denied !== undefined) return { refused: { code: 'want-not-reachable', id: denied } };
  const not = deniedDeepenNot(repository, fetch);
  if (not !== null) return { refused: not };
  const hidden = deepensToAll(fetch) ? await unauthorisedMentions(state, fetch.shallow, viewKey, now, objects) : [];
  const key = hidden.length > 0 ? null : await answerKey(context, repository, fetch, viewKey);
  const held = key === null ? null : context.objects.heldAnswer(repository.id, key);
  if (held !== null) return { held };
  return {
    reader: await objects(),
    view: refsViewOf(repository),
    hiddenEdges: new Set(hidden),
    answerKey: key,
    clone: plainCloneOf(fetch),
    close: () => opening.close(),
  };
}

function deniedDeepenNot(repository: FoundRepository, { deepen }: FetchRequest): FetchDenial | null {
  for (const name of deepen?.kind === 'limits' ? deepen.not : []) {
    const found = countRefsToGit(repository, name);
    if (found !== 1) return { code: found === 0 ? 'deepen-not-unresolved' : 'deepen-not-ambiguous', name };
  }
  return null;
}

/**
 * Whether the client requests the whole history. upload-pack then sends the parents of every commit that the client
 * names as shallow, whether a ref reaches it or not.
 */
function deepensToAll({ deepen }: FetchRequest): boolean {
  return deepen?.kind === 'depth' && deepen.commits === DEPTH_OF_ALL;
}

/** A client may have no part of what it asks for, and take all of it in the form in which packs are stored. */
function plainCloneOf(fetch: FetchRequest): PlainClone | null {
  const { wants, haveCount, done, shallow, deepen, filter, ofsDelta, sideBand, includeTag } = fetch;
  const takesAll = done && haveCount === 0 && shallow.length === 0 && deepen === null && filter === null;
  return takesAll && wants.length > 0 && ofsDelta && sideBand === 'side-band-64k' ? { wants, includeTag } : null;
}

/**
 * The key holds everything git makes the answer from, and nothing about the caller. Null for a client that has commits,
 * since only requests without any recur, and for a repository too large to keep. `viewKey` stands for the refs: they
 * decide which tags are included and what `deepen-not` means.
 */
async function answerKey(
  { digest, clock }: OpenFetchContext,
  { entity }: FoundRepository,
  fetch: FetchRequest,
  viewKey: string,
): Promise<string | null> {
  const { wants, shallow, haveCount, ...rest } = fetch;
  const isTooLarge = entity.state.layersSizeBytes > ANSWER_KEPT_BYTES_MAX || wants.length > ANSWER_KEPT_WANTS_MAX;
  if (haveCount > 0 || isTooLarge) return null;
  const ordered = (ids: readonly ObjectId[]) => sortInTurns(ids, (a, b) => (a < b ? -1 : 1), clock.nextTurn);
  return digest.sha256(JSON.stringify([viewKey, await ordered(wants), await ordered(shallow), rest]));
}
