/** The pages of access tokens, and of the devices that ask for one. */
import { KIB } from '../../../core/kernel/byte-units.ts';
import { type AccessTokenId, parseUuid } from '../../../core/kernel/ids.ts';
import { listOwnRepositories } from '../../../core/use-cases/repositories/repositories-for-tokens.ts';
import { revokeAccessToken } from '../../../core/use-cases/tokens/access-tokens.ts';
import {
  type AccessTokenWithLastUse,
  listAccessTokens,
  readAccessToken,
} from '../../../core/use-cases/tokens/list-access-tokens.ts';
import type { SiteContext } from '../context.ts';
import { redirectTo, type SiteAnswer } from '../layout/answer.ts';
import type { Fields } from '../layout/forms.ts';
import { notFound } from '../layout/problems.ts';
import type { Room, Site } from '../layout/room.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { makeToken, showCreate } from './create.ts';
import { decideGrant, sessionNamed, showGrant } from './device-grant.ts';
import { changeToken, showEdit } from './edit.ts';
import { showList, showRevoke } from './list.ts';

/** The body of a form about a token, which may name as many repositories as a token lists. */
export const TOKEN_FORM_BYTES_MAX = 256 * KIB;

const BYTES = { bytesMax: TOKEN_FORM_BYTES_MAX };

export const tokensRoom: Room = {
  navigation: () => ({ label: 'Tokens', path: '/access-tokens' }),
  routes(site) {
    const { context } = site;
    site.page('/access-tokens', async (visit) => {
      const { account } = visit.person;
      const own = await listOwnRepositories(context, account);
      const { items } = await listAccessTokens(context, account, visit.position);
      return showList(visit, items, own);
    });
    site.page('/access-tokens/create', async (visit) => {
      const session = sessionNamed(visit);
      return session === null ? showCreate(context, visit) : showGrant(context, visit, session);
    });
    const create = async (visit: PersonVisit, fields: Fields): Promise<SiteAnswer> => {
      const session = sessionNamed(visit);
      return session === null ? makeToken(context, visit, fields) : decideGrant(context, visit, session, fields);
    };
    site.form('/access-tokens/create', create, BYTES);
    routesOfOne(site);
  },
};

function routesOfOne(site: Site): void {
  const { context } = site;
  site.page('/access-tokens/:id', (visit) => ofToken(context, visit, (found) => showEdit(context, visit, found)));
  const change = (visit: PersonVisit, fields: Fields): Promise<SiteAnswer> =>
    ofToken(context, visit, (found) => changeToken(context, visit, found, fields));
  site.form('/access-tokens/:id', change, BYTES);
  site.page('/access-tokens/:id/revoke', (visit) => ofToken(context, visit, async (found) => showRevoke(visit, found)));
  site.formBeyondQuota('/access-tokens/:id/revoke', (visit) =>
    ofToken(context, visit, async ({ token }) => {
      const revoked = await revokeAccessToken(context, await visit.origin(null), token.id);
      return 'refused' in revoked ? notFound(visit) : redirectTo('/access-tokens', 'The token is revoked.');
    }),
  );
}

/** Another account's token, a revoked one and an id of no token get the same page. */
async function ofToken(
  context: SiteContext,
  visit: PersonVisit,
  show: (found: AccessTokenWithLastUse) => Promise<SiteAnswer>,
): Promise<SiteAnswer> {
  const id = parseUuid<AccessTokenId>(visit.params['id'] ?? '');
  if (id === null) return notFound(visit);
  const found = await readAccessToken(context, visit.person.account, id);
  return 'refused' in found ? notFound(visit) : show(found);
}
