/**
 * A webhook receiver for scenarios: HTTPS with a certificate of the test's own authority, which the servers are
 * configured to trust.
 */
import { createHmac } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Authority, createAuthority } from './certificates.ts';
import type { Ending } from './cleanup.ts';
import { answering, type Behaviour, startReceiver } from './receiver.ts';
import { type Account, api, type Strata } from './strata.ts';
import { tempDir } from './temp-dir.ts';

export interface ReceivedDelivery {
  readonly headers: Readonly<Record<string, string>>;
  /** The body's bytes as received. */
  readonly raw: Buffer;
  readonly payload: Payload;
}

/** The members that tests read one by one; tests compare the rest as a whole. */
export interface Payload {
  readonly [member: string]: unknown;
  readonly id: string;
  readonly type: string;
  readonly ref: string;
  readonly before: string;
  readonly after: string;
  readonly commits: readonly {
    readonly id: string;
    readonly message: string;
    readonly author: { readonly name: string };
  }[];
}

export interface WebhookReceiver {
  readonly url: string;
  readonly received: readonly ReceivedDelivery[];
  /** Resolves when this many requests have arrived; throws after a minute. */
  until(count: number): Promise<readonly ReceivedDelivery[]>;
}

export interface WebhookReceivers {
  /** Issues certificates for receivers that need one of their own. */
  readonly authority: Authority;
  /** Settings for the server: trust the authority and allow requests to the loopback interface. */
  readonly env: Readonly<Record<string, string>>;
  /** Starts a receiver; `behaviours` answer its first connections in turn, and the last one all later connections. */
  start(...behaviours: readonly Behaviour[]): Promise<WebhookReceiver>;
}

const SPAN_MS = 60_000;

export async function webhookReceivers(context: Ending): Promise<WebhookReceivers> {
  const authority = createAuthority();
  const file = path.join(await tempDir(context), 'authority.pem');
  await writeFile(file, authority.cert);
  const certificate = authority.issue(['127.0.0.1', 'localhost']);
  return {
    authority,
    env: { STRATA_ALLOW_PRIVATE_TARGETS: 'true', NODE_EXTRA_CA_CERTS: file },
    async start(...behaviours) {
      const inTurn = behaviours.length === 0 ? [NO_CONTENT] : behaviours;
      let connections = 0;
      const receiver = await startReceiver(context, certificate, (socket) => {
        const behaviour = inTurn[Math.min(connections, inTurn.length - 1)];
        connections += 1;
        behaviour?.(socket);
      });
      const received = (): readonly ReceivedDelivery[] => receiver.requests.map(parseRequest);
      return {
        url: `https://127.0.0.1:${receiver.port}/hook`,
        get received() {
          return received();
        },
        async until(count) {
          const deadline = Date.now() + SPAN_MS;
          while (receiver.requests.length < count) {
            if (Date.now() > deadline) throw new Error(`${receiver.requests.length} of ${count} requests arrived`);
            await sleep(20);
          }
          return received();
        },
      };
    },
  };
}

export const NO_CONTENT = answering('HTTP/1.1 204 No Content\r\n\r\n');

/** Parses a request that the receiver kept as latin1: each code unit is one byte. */
function parseRequest(request: string): ReceivedDelivery {
  const end = request.indexOf('\r\n\r\n');
  const lines = request.slice(0, end).split('\r\n').slice(1);
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const raw = Buffer.from(request.slice(end + 4), 'latin1');
  return { headers, raw, payload: JSON.parse(raw.toString('utf8')) as Payload };
}

export function signatureOf(secret: string, raw: Buffer): string {
  return createHmac('sha256', secret).update(raw).digest('hex');
}

export interface CreatedWebhook {
  readonly id: string;
  readonly secret: string;
}

export async function createWebhook(
  strata: Pick<Strata, 'url'>,
  account: Account,
  url: string,
  events: readonly string[] = ['push', 'create', 'delete'],
): Promise<CreatedWebhook> {
  const created = await api(strata, account.token, 'POST', '/v1/webhooks', { url, events });
  if (created.status !== 201) throw new Error(`No webhook: ${created.status} ${created.text}`);
  return created.body as CreatedWebhook;
}

export interface ListedDelivery {
  readonly [member: string]: unknown;
  readonly id: string;
  readonly event_id: string;
  readonly event: string;
  readonly status: string;
  readonly attempts: number;
  readonly attempt_log: readonly {
    readonly at: string;
    readonly http_status: number | null;
    readonly error: string | null;
    readonly detail: string | null;
    readonly duration_ms: number;
  }[];
}

export async function listDeliveries(
  strata: Pick<Strata, 'url'>,
  account: Account,
  webhook: string,
  query = '',
): Promise<readonly ListedDelivery[]> {
  const answer = await api(strata, account.token, 'GET', `/v1/webhooks/${webhook}/deliveries${query}`);
  if (answer.status !== 200) throw new Error(`No deliveries: ${answer.status} ${answer.text}`);
  return (answer.body as { readonly deliveries: readonly ListedDelivery[] }).deliveries;
}

/** Resolves with the list when it satisfies `isWanted`; throws with the last list when it does not in time. */
export async function untilDeliveries(
  strata: Pick<Strata, 'url'>,
  account: Account,
  webhook: string,
  isWanted: (deliveries: readonly ListedDelivery[]) => boolean,
  spanMs = SPAN_MS,
): Promise<readonly ListedDelivery[]> {
  const deadline = Date.now() + spanMs;
  for (;;) {
    const deliveries = await listDeliveries(strata, account, webhook);
    if (isWanted(deliveries)) return deliveries;
    if (Date.now() > deadline)
      throw new Error(`The deliveries did not change as expected: ${JSON.stringify(deliveries, null, 1)}`);
    await sleep(50);
  }
}

/** Answers with a status and a body. */
export function answeringStatus(status: number, body = ''): Behaviour {
  return answering(`HTTP/1.1 ${status} Answer\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}
