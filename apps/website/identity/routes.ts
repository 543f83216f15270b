/** The pages about who somebody is: the landing page, sign-up, sign-in and the settings of the account. */
import { redirectTo, showPage } from '../layout/answer.ts';
import { html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import type { Room } from '../layout/room.ts';

export const identityRoom: Room = {
  routes(site) {
    site.publicPage('/', async (visit) =>
      showPage(page(visit, { title: 'Git hosting you can replay', width: 'middle' }, html`<h1>Strata</h1>`)),
    );
    site.publicForm('/sign-out', async (visit) => {
      await visit.session.signOut();
      return redirectTo('/', 'You are signed out.');
    });
  },
};
