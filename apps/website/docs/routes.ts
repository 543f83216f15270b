/** The documentation: how to begin, git, tokens, device login, webhooks, and the API. Open to everybody. */
import type { Room } from '../layout/room.ts';
import { apiOverview, apiSubject } from './api-reference.ts';
import { ciJobs } from './ci-jobs.ts';
import { deviceLogin } from './device-login.ts';
import { DOCS } from './frame.ts';
import { gettingStarted } from './getting-started.ts';
import { gitOverHttps } from './git.ts';
import { tokens } from './tokens.ts';
import { webhooks } from './webhooks.ts';

export const docsRoom: Room = {
  navigation: () => ({ label: 'Docs', path: DOCS }),
  routes(site) {
    const { apiReference } = site.context;
    site.publicPage(DOCS, async (visit) => gettingStarted(visit));
    site.publicPage(`${DOCS}/git`, async (visit) => gitOverHttps(visit));
    site.publicPage(`${DOCS}/tokens`, async (visit) => tokens(visit));
    site.publicPage(`${DOCS}/device-login`, async (visit) => deviceLogin(visit));
    site.publicPage(`${DOCS}/ci`, async (visit) => ciJobs(visit));
    site.publicPage(`${DOCS}/webhooks`, async (visit) => webhooks(visit));
    site.publicPage(`${DOCS}/api`, async (visit) => apiOverview(visit, await apiReference()));
    site.publicPage(`${DOCS}/api/:subject`, async (visit) => apiSubject(visit, await apiReference()));
  },
};
