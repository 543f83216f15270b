/**
 * The website over the in-memory ports, and browsers that visit it: their requests are injected.
 */

import { randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { digest } from '../../adapters/node/digest.ts';
import { spellDomain } from '../../adapters/node/spell-domain.ts';
import { createApiReference } from '../../apps/server/api-reference.ts';
import { createBackground } from '../../apps/server/behind-answers.ts';
import type { FinishedSiteRequest, SiteContext } from '../../apps/website/context.ts';
import type { Room } from '../../apps/website/layout/room.ts';
import { createRenderer } from '../../apps/website/rendering/renderer.ts';
import { SESSION_IDLE_SPAN_MS } from '../../apps/website/sessions/browser-sessions.ts';
import { createWebsite } from '../../apps/website/site.ts';
import { accounts } from '../../core/account/evolve.ts';
import { sessionEpochOf } from '../../core/account/state.ts';
import { type AccountId, plusMs } from '../../core/kernel/ids.ts';
import type { SessionStore } from '../../core/ports/session-store.ts';
import { newAccount } from './accounts.ts';
import { type ApiFixture, createApiFixture, type FixtureOptions } from './api-fixture.ts';
import { type Carrier, createSiteBrowser, type SiteBrowser, type SitePage } from './form-browser.ts';
import { layersIn } from './layers-in.ts';
import { createMemoryLayerStore } from './memory/layer-store.ts';
import { createMemorySessionStore } from './memory/session-store.ts';
import { mfaParts } from './mfa.ts';
import { testPastRepositories } from './past-repositories.ts';

/** The password of every account that `WebsiteFixture.account` makes. */
export const PASSWORD = 'correct horse battery';

export interface WebsiteFixture {
  /** The service below the website: makes accounts, repositories and pushes. */
  readonly api: ApiFixture;
  readonly site: FastifyInstance;
  readonly context: SiteContext;
  readonly finished: FinishedSiteRequest[];
  /** Makes an account with the password `PASSWORD` and the address `<username>@example.org`. */
  account(username: string): Promise<AccountId>;
  /** A browser that nobody signed in with. */
  browser(): Browser;
  /** A browser that the account's owner is signed in with, without the sign-in page. */
  signedIn(account: AccountId): Promise<Browser>;
  close(): Promise<void>;
}

export type Page = SitePage;
export type Browser = SiteBrowser;

export interface WebsiteOptions {
  readonly api?: FixtureOptions;
  readonly context?: Partial<SiteContext>;
  /** All rooms by default. */
  readonly rooms?: readonly Room[];
  readonly bodySpanMs?: number;
  readonly sessions?: SessionStore;
}

export async function createWebsiteFixture(options: WebsiteOptions = {}): Promise<WebsiteFixture> {
  const api = await createApiFixture(options.api);
  const finished: FinishedSiteRequest[] = [];
  const renderer = createRenderer();
  const context: SiteContext = {
    ...api.context,
    sessions: options.sessions ?? createMemorySessionStore(),
    passwords: {
      expectRoom: () => undefined,
      hash: async (password) => `hash of ${password}`,
      verify: async (password, hash) => hash === `hash of ${password}`,
    },
    spellDomain,
    renderer,
    apiReference: createApiReference(api.context.version),
    findCommandLine: async () => null,
    firstCommits: {
      make: async () => {
        throw new Error('The memory objects take no pushes');
      },
    },
    layers: layersIn(createMemoryLayerStore()),
    onLayer: () => undefined,
    pastRepositories: testPastRepositories({ ...api.context, ...options.context }),
    ...mfaParts(),
    background: createBackground((what, cause) => {
      throw new Error(`A fault of ${what}`, { cause });
    }),
    signUpOpen: true,
    operatorContact: null,
    securityContact: null,
    formKey: 'a key of the forms that tests make',
    onFinished: (request) => finished.push(request),
    ...options.context,
  };
  const { rooms, bodySpanMs } = options;
  const site = createWebsite(context, {
    ...(rooms === undefined ? {} : { rooms }),
    ...(bodySpanMs === undefined ? {} : { bodySpanMs }),
  });
  await site.ready();
  const browser = (): Browser => createSiteBrowser(context.addresses().webUrl, injectingInto(site));
  return {
    api,
    site,
    context,
    finished,
    account: async (username) => newAccount(context, username),
    browser,
    signedIn: async (account) => {
      const signedIn = browser();
      const secure = context.addresses().webUrl.startsWith('https:');
      signedIn.cookies.set(secure ? '__Host-strata_session' : 'strata_session', await startSession(context, account));
      return signedIn;
    },
    close: async () => {
      await site.close();
      await renderer.close();
      await api.close();
    },
  };
}

/** Stores a session of the account and returns its id, as the cookie holds it. */
async function startSession({ sessions, entities, clock, ids }: SiteContext, account: AccountId): Promise<string> {
  const { state } = await entities.get(accounts, account);
  if (state.status !== 'open' && state.status !== 'closed') throw new Error(`The account is ${state.status}`);
  const id = randomBytes(24).toString('base64url');
  const now = clock.now();
  await sessions.add({
    idHash: digest.sha256(id),
    handle: ids.next(),
    account,
    epoch: sessionEpochOf(state),
    status: 'signed-in',
    kept: {},
    createdAt: now,
    seenAt: now,
    expiresAt: plusMs(now, SESSION_IDLE_SPAN_MS),
    addressRef: null,
    agentRef: null,
  });
  return id;
}

function injectingInto(site: FastifyInstance): Carrier {
  return async ({ method, path, headers, body }) => {
    const answer = await site.inject({
      method,
      url: path,
      headers,
      ...(body === null ? {} : { payload: typeof body === 'string' ? body : Buffer.from(body) }),
    });
    return { status: answer.statusCode, headers: answer.headers, bytes: answer.rawPayload };
  };
}
