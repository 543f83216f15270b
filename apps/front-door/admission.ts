/**
 * Admission: the checks of every request, of the REST API and of Git alike.
 *
 * Invariants: the checks have one order. A malformed request is refused first (400), then a missing or invalid
 * credential (401), an unknown route or method (404, 405), a missing grant or scope (403) or an invisible repository
 * (404), and last the request's content. The server answers nothing from memory before `entities.barrier()`. No denial
 * tells a repository that the caller does not see from one that does not exist, nor does the time it takes: nothing of
 * the former is loaded.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Cause, LogPosition } from '../../core/kernel/envelope.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import { READ_WAIT_MS } from '../../core/kernel/limits.ts';
import { type MaybePromise, whenReady } from '../../core/kernel/maybe-promise.ts';
import type { Door } from '../../core/repository/events.ts';
import type { Entities } from '../../core/runtime/entities.ts';
import type { Context, Guarding } from '../../core/runtime/execute.ts';
import {
  authenticate,
  type EndedToken,
  endOf,
  guardedBy,
  type NoteToken,
} from '../../core/use-cases/callers/authenticate.ts';
import {
  type Lack,
  lackOf,
  type OwnedBy,
  type Requirement,
  sees,
  stillPermitted,
} from '../../core/use-cases/callers/permission.ts';
import { actorOf, type Principal, usedBy } from '../../core/use-cases/callers/principal.ts';
import { type FoundRepository, findOwnRepository } from '../../core/use-cases/repositories/repositories.ts';
import type { RateRefusal, RateState } from './callers.ts';
import type { FrontDoor } from './front-door.ts';
import { sentSecret, type TokenOf } from './sent-secret.ts';

/** Why a request is denied. REST and Git word each denial themselves (apps/api/denials.ts, apps/git-http/faults.ts). */
export type Denial =
  | { readonly denied: 'credential-missing' }
  /**
   * Malformed, unknown, expired or revoked: the answer does not say which. `ended`: the token, for its owner's record.
   */
  | { readonly denied: 'credential-not-valid'; readonly ended: EndedToken | null }
  /** Not valid either, and not the first that came from there. */
  | { readonly denied: 'too-many-failed-tokens'; readonly waitSeconds: number }
  /** Valid, but its account asks for more than is its share. */
  | { readonly denied: 'rate-exceeded'; readonly refusal: RateRefusal; readonly principal: Principal }
  | { readonly denied: 'not-permitted'; readonly lack: Lack }
  /** No repository has that name, or the caller does not see it. */
  | { readonly denied: 'repository-not-found' };

const CREDENTIAL_MISSING: Denial = { denied: 'credential-missing' };
const CREDENTIAL_NOT_VALID: Denial = { denied: 'credential-not-valid', ended: null };
const REPOSITORY_NOT_FOUND: Denial = { denied: 'repository-not-found' };

export interface Identified {
  readonly principal: Principal;
  /** The log's head when the request arrived; every answer includes the events up to it. */
  readonly position: LogPosition;
  readonly rate: RateState;
}

/**
 * Returns the caller that the request's token identifies, as of the log's current head, and counts the request, which
 * costs these points, until the response is closed. Throws `NodeBehind` when this node does not reach that head within
 * READ_WAIT_MS.
 */
export async function identify(
  door: FrontDoor,
  { request, response }: Exchange,
  tokenOf: TokenOf,
  points: number,
): Promise<Identified | Denial> {
  const read = sentSecret(door, request, tokenOf);
  if (read === 'missing') return CREDENTIAL_MISSING;
  if (read === 'malformed') return CREDENTIAL_NOT_VALID;
  const address = door.clientAddress(request);
  const reaching = upToDate(door);
  const position = reaching instanceof Promise ? await reaching : reaching;
  const judging = door.failedTokens.judge(read, address, position);
  const judgement = judging instanceof Promise ? await judging : judging;
  const seen: { token: Parameters<NoteToken> | null } = { token: null };
  const noteToken: NoteToken = (...token) => void (seen.token = token);
  const authenticating = judgement.worth ? authenticate(door, read, noteToken) : null;
  const principal = authenticating instanceof Promise ? await authenticating : authenticating;
  if (principal === null) {
    door.failedTokens.failed(address);
    if (seen.token !== null) {
      const ending = endOf(door, read, seen.token);
      return { denied: 'credential-not-valid', ended: ending instanceof Promise ? await ending : ending };
    }
    if (judgement.worth || judgement.waitSeconds === null) return CREDENTIAL_NOT_VALID;
    return { denied: 'too-many-failed-tokens', waitSeconds: judgement.waitSeconds };
  }
  door.failedTokens.passed(read);
  const entered = enter(door, response, principal, points);
  if ('exceeded' in entered) return { denied: 'rate-exceeded', refusal: entered, principal };
  door.lastUse.touch(usedBy(principal));
  return { principal, position, rate: entered };
}

/** A request and the response to it. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Counts a request of the principal until its response is closed. */
export function enter(
  { callers }: Pick<FrontDoor, 'callers'>,
  response: ServerResponse,
  principal: Principal,
  points: number,
): RateState | RateRefusal {
  const entered = callers.enter(principal, points);
  if ('exceeded' in entered) return entered;
  // The client may have gone in between.
  if (response.closed) entered.leave();
  else response.once('close', entered.leave);
  return entered.rate;
}

/** The node did not catch up with the log in time. */
export class NodeBehind extends Error {
  override readonly name = 'NodeBehind';
  readonly code = 'node-behind';
}

/**
 * Returns the position when this node has applied the log up to the head it had at the call, without a wait under a
 * read lease. Throws `NodeBehind` when that takes longer than READ_WAIT_MS.
 */
export function upToDate({
  entities,
}: {
  readonly entities: Pick<Entities, 'barrier' | 'known'>;
}): MaybePromise<LogPosition> {
  return entities.known() ?? reachHead(entities);
}

async function reachHead(entities: Pick<Entities, 'barrier'>): Promise<LogPosition> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new NodeBehind('This node did not reach the log head in time')), READ_WAIT_MS);
  });
  try {
    return await Promise.race([entities.barrier(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Returns the denial if the principal does not meet the requirement, else null. `id` is empty for routes without one.
 */
export function notPermitted(principal: Principal, requirement: Requirement, id: string): Denial | null {
  const lack = lackOf(requirement, principal, id);
  return lack === null ? null : { denied: 'not-permitted', lack };
}

export interface RepositoryNames {
  readonly username: string;
  readonly name: string;
}

/**
 * Which denial the client gets when both apply. REST answers a missing grant without a lookup of the repository. Git
 * answers a missing grant only for a repository that the caller sees.
 */
export type DenialPrecedence = 'permission' | 'sight';

/** Returns the repository of these names if the principal sees it and meets the requirement, else the denial. */
export function admitToRepository(
  context: Context,
  principal: Principal,
  requirement: Requirement,
  names: RepositoryNames,
  precedence: DenialPrecedence,
): MaybePromise<FoundRepository | Denial> {
  const denial = notPermitted(principal, requirement, '');
  if (denial !== null && precedence === 'permission') return denial;
  const { account: accountId } = principal;
  const finding = findOwnRepository(context, accountId, names, (id) => sees(principal, { id, accountId }));
  return whenReady(finding, (found) => (found === null ? REPOSITORY_NOT_FOUND : (denial ?? found)));
}

/** What admitted a request. The server checks it again whenever an append of the request loses a race. */
export interface Permitted {
  readonly principal: Principal;
  readonly requirement: Requirement;
  /** The id in the path, for a requirement on one thing (`onItself`); empty for routes without one. */
  readonly id: string;
  readonly repository: OwnedBy | null;
  /** What the request came in by. */
  readonly door: Door;
}

export interface Origin {
  readonly account: AccountId;
  readonly cause: Cause;
  readonly guarding: Guarding;
  readonly door: Door;
}

/** Returns the cause for the request's events, and the guard that fails their append if the permission is gone. */
export async function originOf(
  frontDoor: FrontDoor,
  request: IncomingMessage,
  requestId: string,
  { principal, requirement, id, repository, door }: Permitted,
): Promise<Origin> {
  const { account } = principal;
  const sourceAddressRef = await frontDoor.sourceAddressRef(account, frontDoor.clientAddress(request));
  return {
    account,
    cause: { actor: actorOf(principal), requestId, sourceAddressRef, causationId: null },
    guarding: guardedBy(frontDoor, principal, stillPermitted(principal, { requirement, id, repository })),
    door,
  };
}
