/** Browsers without scripts that visit the website of a running server, over sockets. */
import { randomBytes, randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { digest } from '../../adapters/node/digest.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { createPostgresSessionStore } from '../../adapters/postgres/session-store.ts';
import { SESSION_SPAN_MS } from '../../apps/website/sessions/browser-sessions.ts';
import { type AccountId, plusMs, timestamp } from '../../core/kernel/ids.ts';
import { type Carrier, createSiteBrowser, type SiteBrowser } from './form-browser.ts';
import { keepLog } from './log.ts';
import type { Account, Strata } from './strata.ts';

/**
 * Stores a session as a sign-in does, and returns a browser that the account's owner is signed in with. It works for
 * the running server, also after a restart on the same address.
 */
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
  return browserOf(strata.url, new Map([['strata_session', id]]));
}

/** A browser with these cookies; without any it is a stranger's. */
export function browserOf(url: string, cookies: Map<string, string> = new Map()): SiteBrowser {
  return createSiteBrowser(url, overSocketsTo(url), cookies);
}

function overSocketsTo(url: string): Carrier {
  const { hostname, port } = new URL(url);
  return ({ method, path, headers, body }) =>
    new Promise((resolve, reject) => {
      const sent = request({ hostname, port, method, path, headers }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('error', reject);
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, bytes: Buffer.concat(chunks) }),
        );
      });
      sent.on('error', reject);
      sent.end(body ?? undefined);
    });
}
