/** The pages about who somebody is: the landing page, sign-up, sign-in and the settings of the account. */
import type { Room } from '../layout/room.ts';
import { accountRoutes } from './account-settings.ts';
import { deletionRoutes } from './deletion.ts';
import { forgottenPasswordPage } from './forgotten-password.ts';
import { landingPage } from './landing.ts';
import { sessionRoutes } from './session-list.ts';
import { signInRoutes } from './sign-in.ts';
import { signUpRoutes } from './sign-up.ts';
import { wellKnownRoutes } from './well-known.ts';

export const identityRoom: Room = {
  routes(site) {
    site.publicPage('/', landingPage);
    site.publicPage('/forgotten-password', forgottenPasswordPage(site.context));
    signUpRoutes(site);
    signInRoutes(site);
    accountRoutes(site);
    sessionRoutes(site);
    deletionRoutes(site);
    wellKnownRoutes(site);
  },
};
