/**
 * The website over the in-memory ports, and browsers that visit it: each keeps its cookies, reads pages and sends their
 * forms as a browser does.
 */
import { randomBytes } from 'node:crypto';
import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { digest } from '../../adapters/node/digest.ts';
import { createBackground } from '../../apps/server/background.ts';
import type { FinishedSiteRequest, SiteContext } from '../../apps/website/context.ts';
import type { Room } from '../../apps/website/layout/room.ts';
import { createCommitTotals } from '../../apps/api/services.ts';
import { createKnownAnswers } from '../../apps/website/known-answers.ts';
import { createRenderer } from '../../apps/website/rendering/renderer.ts';
import { createWebsite } from '../../apps/website/site.ts';
import { accounts } from '../../core/account/evolve.ts';
import { sessionEpochOf } from '../../core/account/state.ts';
import { type AccountId, plusMs } from '../../core/kernel/ids.ts';
import { SESSION_IDLE_SPAN_MS } from '../../core/kernel/limits.ts';
import type { SessionStore } from '../../core/ports/session-store.ts';
import { newAccount } from './accounts.ts';
import { type ApiFixture, createApiFixture, type FixtureOptions } from './api-fixture.ts';
import { createMemoryLayerStore } from './memory/layer-store.ts';
import { mfaParts } from './mfa.ts';
import { createMemorySessionStore } from './memory/session-store.ts';

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

export interface Page {
  readonly status: number;
  readonly headers: LightMyRequestResponse['headers'];
  readonly html: string;
  /** The Location header; null without one. */
  readonly location: string | null;
  /** The cookies that the answer set, as whole headers. */
  readonly setCookies: readonly string[];
}

export interface Browser {
  /** By name. */
  readonly cookies: Map<string, string>;
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<Page>;
  /** Opens the page `on`, takes the token of its forms, and sends the fields to `path` as its form does. */
  submit(path: string, fields?: FormValues, on?: string): Promise<Page>;
  /** Sends a form exactly as given: no token and no headers are added. */
  post(path: string, fields: FormValues, headers?: Readonly<Record<string, string>>): Promise<Page>;
  /** Follows redirects from a page to the one that they end at. */
  follow(page: Page): Promise<Page>;
}

type FormValues = Readonly<Record<string, string | readonly string[]>>;

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
    renderer,
    firstCommits: {
      make: async () => {
        throw new Error('The memory objects take no pushes');
      },
    },
    layers: createMemoryLayerStore(),
    onLayer: () => undefined,
    commitTotals: createCommitTotals(),
    ...createKnownAnswers(),
    ...mfaParts(),
    background: createBackground((what, cause) => {
      throw new Error(`A fault of ${what}`, { cause });
    }),
    signUpOpen: true,
    operatorContact: null,
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
  const browser = (): Browser => createBrowser(site, context.addresses().webUrl);
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

function createBrowser(site: FastifyInstance, webUrl: string): Browser {
  const cookies = new Map<string, string>();
  const visit = async (method: 'GET' | 'POST', path: string, headers: object, payload?: string): Promise<Page> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await site.inject({
      method,
      url: path,
      headers: { host: new URL(webUrl).host, ...(cookie === '' ? {} : { cookie }), ...headers },
      ...(payload === undefined ? {} : { payload }),
    });
    const setCookies = [answer.headers['set-cookie'] ?? []].flat();
    for (const header of setCookies) keepCookie(cookies, header);
    const { location } = answer.headers;
    return {
      status: answer.statusCode,
      headers: answer.headers,
      html: answer.body,
      location: location ?? null,
      setCookies,
    };
  };
  const browser: Browser = {
    cookies,
    get: (path, headers = {}) => visit('GET', path, headers),
    post: (path, fields, headers = {}) =>
      visit('POST', path, { 'content-type': 'application/x-www-form-urlencoded', ...headers }, encodeForm(fields)),
    submit: async (path, fields = {}, on = path) => {
      const token = csrfTokenOf(await browser.get(on));
      const headers = { origin: webUrl, 'sec-fetch-site': 'same-origin' };
      return browser.post(path, { _csrf: token, ...fields }, headers);
    },
    follow: async (page) => {
      let reached = page;
      for (let hops = 0; reached.location !== null; hops += 1) {
        if (hops > 5) throw new Error(`Too many redirects, the last to ${reached.location}`);
        reached = await browser.get(reached.location);
      }
      return reached;
    },
  };
  return browser;
}

function keepCookie(cookies: Map<string, string>, header: string): void {
  const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(header) ?? [];
  const isRemoved = /; *(Max-Age=0|Expires=Thu, 01 Jan 1970)/i.test(header);
  if (isRemoved) cookies.delete(name);
  else cookies.set(name, value);
}

/** Returns the token of the page's forms; throws for a page without one. */
export function csrfTokenOf({ html, status }: Page): string {
  const [, token] = /name="_csrf" value="([^"]+)"/.exec(html) ?? [];
  if (token === undefined) throw new Error(`The page has no form; its status is ${status}:\n${html}`);
  return token;
}

function encodeForm(fields: FormValues): string {
  const pairs = Object.entries(fields).flatMap(([name, values]) => [values].flat().map((value) => [name, value]));
  return new URLSearchParams(pairs).toString();
}
