/** The documentation: how to begin, git, tokens, device login, webhooks, and the API. Open to everybody. */
import { makeOpenApiDocument } from '../../api/document.ts';
import type { Room, Site } from '../layout/room.ts';
import { apiOverview, apiSubject } from './api-reference.ts';
import { ciJobs } from './ci-jobs.ts';
import { deviceLogin } from './device-login.ts';
import { DOCS } from './frame.ts';
import { gettingStarted } from './getting-started.ts';
import { gitOverHttps } from './git.ts';
import { type ApiReference, readOpenApi } from './open-api.ts';
import { tokens } from './tokens.ts';
import { webhooks } from './webhooks.ts';

export const docsRoom: Room = {
  navigation: () => ({ label: 'Docs', path: DOCS }),
  routes(site) {
    const reference = referenceOf(site);
    site.publicPage(DOCS, async (visit) => gettingStarted(visit));
    site.publicPage(`${DOCS}/git`, async (visit) => gitOverHttps(visit));
    site.publicPage(`${DOCS}/tokens`, async (visit) => tokens(visit));
    site.publicPage(`${DOCS}/device-login`, async (visit) => deviceLogin(visit));
    site.publicPage(`${DOCS}/ci`, async (visit) => ciJobs(visit));
    site.publicPage(`${DOCS}/webhooks`, async (visit) => webhooks(visit));
    site.publicPage(`${DOCS}/api`, async (visit) => apiOverview(visit, await reference()));
    site.publicPage(`${DOCS}/api/:subject`, async (visit) => apiSubject(visit, await reference()));
  },
};

/** The reference is made at the first visit, which takes some 100 ms, and kept. */
function referenceOf({ context }: Site): () => Promise<ApiReference> {
  let made: Promise<ApiReference> | null = null;
  return async () => {
    made ??= makeOpenApiDocument(context.version).then(readOpenApi);
    return made;
  };
}
