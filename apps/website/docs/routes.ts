/** The documentation: how to begin, what there is beside git, the command line, and the API. Open to everybody. */
import type { Room } from '../layout/room.ts';
import { apiOverview, apiSubject } from './api-reference.ts';
import { audit } from './audit.ts';
import { buckets } from './buckets.ts';
import { ciJobs } from './ci-jobs.ts';
import { commandLine, sendCommandLine } from './command-line.ts';
import { deviceLogin } from './device-login.ts';
import { DOCS } from './frame.ts';
import { gettingStarted } from './getting-started.ts';
import { gitOverHttps } from './git.ts';
import { timeTravel } from './time-travel.ts';
import { tokens } from './tokens.ts';
import { undo } from './undo.ts';
import { webhooks } from './webhooks.ts';

export const docsRoom: Room = {
  navigation: () => ({ label: 'Docs', path: DOCS }),
  routes(site) {
    const { apiReference, findCommandLine, retentionMs } = site.context;
    site.publicPage(DOCS, async (visit) => gettingStarted(visit));
    site.publicPage(`${DOCS}/git`, async (visit) => gitOverHttps(visit));
    site.publicPage(`${DOCS}/tokens`, async (visit) => tokens(visit));
    site.publicPage(`${DOCS}/device-login`, async (visit) => deviceLogin(visit));
    site.publicPage(`${DOCS}/ci`, async (visit) => ciJobs(visit));
    site.publicPage(`${DOCS}/webhooks`, async (visit) => webhooks(visit));
    site.publicPage(`${DOCS}/undo`, async (visit) => undo(visit, { retentionMs }));
    site.publicPage(`${DOCS}/time-travel`, async (visit) => timeTravel(visit, { retentionMs }));
    site.publicPage(`${DOCS}/audit`, async (visit) => audit(visit));
    site.publicPage(`${DOCS}/buckets`, async (visit) => buckets(visit));
    site.publicPage(`${DOCS}/cli`, (visit) => commandLine(visit, findCommandLine));
    site.publicPage(`${DOCS}/cli/:package`, (visit) => sendCommandLine(visit, findCommandLine));
    site.publicPage(`${DOCS}/api`, async (visit) => apiOverview(visit, await apiReference()));
    site.publicPage(`${DOCS}/api/:subject`, async (visit) => apiSubject(visit, await apiReference()));
  },
};
