/**
 * A repository as of a moment, which a client names after `@` in the URL: it is read with the same requests as the
 * repository itself, and takes no push.
 *
 * Invariants: the moment is resolved after admission. Every refusal is an answer to the first request of a client,
 * whose text git shows after `remote:`.
 */
import { parseMoment } from '../../core/audit/moment.ts';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import type { MomentDenial } from '../../core/use-cases/as-of/repository-as-of.ts';
import type { FoundRepository } from '../../core/use-cases/repositories/repositories.ts';
import { LOST_PLACES } from '../front-door/texts/lost-places.ts';
import { GitHttpError } from './answer.ts';
import type { GitHttpContext } from './context.ts';
import type { GitRequest } from './git-request.ts';
import { decodedMoment } from './target.ts';

/** Returns the repository as of the moment that the target names. Throws GitHttpError. */
export async function repositoryAsOf(
  { pastRepositories }: Pick<GitHttpContext, 'pastRepositories'>,
  repository: FoundRepository,
  momentText: string,
  options: { readonly seen: LogPosition; readonly signal: AbortSignal },
): Promise<FoundRepository> {
  const moment = parseMoment(decodedMoment(momentText));
  if (moment === null) {
    throw notFound(`"${momentText}" is neither a time, such as 20261103T140200Z, nor the id of an event`);
  }
  const found = await pastRepositories.asOf(repository, moment, options);
  if ('denied' in found) throw denialError(found.denied);
  return found;
}

/**
 * Returns the answer for a repository as of a moment that its account has not now. The caller must own the account, and
 * be allowed to read its past.
 */
export async function absenceError(
  { pastRepositories }: Pick<GitHttpContext, 'pastRepositories'>,
  wanted: { readonly account: AccountId; readonly name: string },
  momentText: string,
  options: { readonly seen: LogPosition; readonly signal: AbortSignal },
): Promise<GitHttpError | null> {
  const moment = parseMoment(decodedMoment(momentText));
  const denial = moment === null ? null : await pastRepositories.absence(wanted, moment, options);
  if (denial === null) return null;
  switch (denial.code) {
    case 'repository-deleted-now':
      return denial.lost === null
        ? notFound(`it is deleted; strata repo undelete ${denial.id} brings it back, with its past`)
        : notFound(`it is deleted, and cannot be undeleted: ${LOST_PLACES[denial.lost]}`);
    case 'repository-renamed':
      return notFound(`it is ${denial.name} now`);
    case 'moment-in-future':
    case 'repository-deleted-then':
    case 'objects-expired':
      return denialError(denial);
  }
}

function denialError(denial: MomentDenial): GitHttpError {
  switch (denial.code) {
    case 'moment-in-future':
      return notFound('this moment has not come yet');
    case 'repository-not-yet-made':
      return notFound(`it was made later, at ${denial.madeAt}`);
    case 'repository-deleted-then':
      return notFound('it was deleted at that moment');
    case 'event-not-found':
      return notFound('this event is not one of its own');
    case 'objects-expired': {
      const by = denial.event === null ? '' : ` by the event ${denial.event}`;
      return new GitHttpError(410, `What this moment needs has passed retention: it was removed${by}`);
    }
  }
}

function notFound(reason: string): GitHttpError {
  return new GitHttpError(404, `Repository not found: ${reason}`);
}

export async function refusePush({ repository }: GitRequest): Promise<void> {
  const { account, owned } = repository;
  throw new GitHttpError(
    403,
    `A repository as of a moment is read only: push to ${account.username}/${owned.name}.git without the moment`,
  );
}
