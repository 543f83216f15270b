/**
 * Leads from a repository's address with `.git`, as people copy it from a clone, to its page.
 *
 * Invariants: the answer is made from the address alone, so it tells nothing of what exists.
 */
import { isUsernameForm, repositoryNameRefusal } from '../../../core/account/names.ts';
import { asciiLowerCase } from '../../../core/kernel/text.ts';
import { redirectTo, type SiteAnswer } from '../layout/answer.ts';
import type { PersonVisit } from '../layout/visit.ts';

/** No repository's name ends in `.git`, so every other address is the handler's. */
export function orFromCloneAddress(handler: (visit: PersonVisit) => Promise<SiteAnswer>): typeof handler {
  return async (visit) => {
    const { username = '', repository = '' } = visit.params;
    const [, name] = /^(.+)\.git$/i.exec(repository) ?? [];
    if (name === undefined || repositoryNameRefusal(name) !== null || !isUsernameForm(asciiLowerCase(username))) {
      return handler(visit);
    }
    return redirectTo(`/${username}/${name}${visit.url.search}`);
  };
}
