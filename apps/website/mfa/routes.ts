/** The pages about second factors: the list of MFA tokens, their enrolment, and the second step of a sign-in. */
import { listMfaTokens } from '../../../core/use-cases/signing-in/mfa-tokens.ts';
import type { Room } from '../layout/room.ts';
import { addingRoutes } from './adding.ts';
import { tokenRoutes } from './token.ts';
import { showTokens } from './token-list.ts';
import { verifyRoutes } from './verify.ts';

export const mfaRoom: Room = {
  routes(site) {
    const { context } = site;
    site.page('/mfa-tokens', async (visit) =>
      showTokens(visit, await listMfaTokens(context, visit.person.account), {
        passkeysAvailable: context.passkeys.available,
        operatorContact: context.operatorContact,
      }),
    );
    addingRoutes(site);
    tokenRoutes(site);
    verifyRoutes(site);
  },
};
