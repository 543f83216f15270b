/** A browser without scripts that visits the website of a running server, signed in as an account's owner. */
import { randomBytes, randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { digest } from '../../adapters/node/digest.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { createPostgresSessionStore } from '../../adapters/postgres/session-store.ts';
import { type AccountId, plusMs, timestamp } from '../../core/kernel/ids.ts';
import { SESSION_SPAN_MS } from '../../core/kernel/limits.ts';
import { keepLog } from './log.ts';
import type { Account, Strata } from './strata.ts';

export interface SitePage {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly html: string;
  readonly bytes: Buffer;
  /** The Location header; null without one. */
  readonly location: string | null;
}

export interface SiteBrowser {
  /** The path is sent as it is, without normalisation. */
  get(path: string): Promise<SitePage>;
  /** Opens the page `on`, takes the token of its forms, and sends the fields to `path` as its form does. */
  submit(path: string, fields: Readonly<Record<string, string>>, on?: string): Promise<SitePage>;
  /** The name and value of the session's cookie. */
  readonly cookie: string;
}

/** Stores a session as a sign-in does. `path`s are of the running server, also after a restart on the same address. */
export async function signIn(strata: Pick<Strata, 'url' | 'env'>, account: Account): Promise<SiteBrowser> {
  const pool = createPool({
    connectionString: strata.env['STRATA_DATABASE_URL'] ?? '',
    log: keepLog(),
    connectionsMax: 1,
  });
  const id = randomBytes(24).toString('base64url');
  const now = timestamp(new Date().toISOString());
  try {
    await createPostgresSessionStore(pool).add({
      idHash: digest.sha256(id),
      handle: randomUUID(),
      account: account.id as AccountId,
      epoch: 0,
      status: 'signed-in',
      kept: {},
      createdAt: now,
      seenAt: now,
      expiresAt: plusMs(now, SESSION_SPAN_MS),
      addressRef: null,
      agentRef: null,
    });
  } finally {
    await pool.end();
  }
  return browserOf(strata.url, `strata_session=${id}`);
}

/** A browser with this cookie; an empty one is a stranger's. */
export function browserOf(url: string, cookie: string): SiteBrowser {
  const browser: SiteBrowser = {
    cookie,
    get: (path) => ask(url, 'GET', path, { cookie }),
    async submit(path, fields, on = path) {
      const form = await browser.get(on);
      const token = /name="_csrf" value="([^"]+)"/.exec(form.html)?.[1];
      if (token === undefined) throw new Error(`${on} has no form; its status is ${form.status}`);
      const set = form.headers['set-cookie']?.split(';', 1)[0];
      const headers = {
        cookie: set === undefined ? cookie : `${cookie}; ${set}`,
        origin: url,
        'sec-fetch-site': 'same-origin',
        'content-type': 'application/x-www-form-urlencoded',
      };
      return ask(url, 'POST', path, headers, new URLSearchParams({ _csrf: token, ...fields }).toString());
    },
  };
  return browser;
}

async function ask(
  url: string,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: string,
): Promise<SitePage> {
  const { hostname, port, host } = new URL(url);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, method, path, headers: { ...headers, host } }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('error', reject);
      answer.on('end', () => {
        const bytes = Buffer.concat(chunks);
        const received = Object.fromEntries(
          Object.entries(answer.headers).map(([name, value]) => [name, [value].flat().at(-1)]),
        );
        const location = answer.headers.location ?? null;
        resolve({ status: answer.statusCode ?? 0, headers: received, html: bytes.toString('utf8'), bytes, location });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
