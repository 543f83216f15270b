/**
 * Starts the server when the parts that it needs can be reached. Until then the address is served as far as it can be:
 * `/healthz` says that the process runs, `/readyz` names the part that it waits for, and everything else is told to
 * come again.
 *
 * Invariants: nothing but an unreachable part is waited for. Any other failure of a start is thrown. Nothing of an
 * attempt that failed stays open when the next one begins.
 */
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Logger } from 'pino';
import { type NeededPart, PartUnreachable } from './part-unreachable.ts';
import { createProbeListener, isProbe, type Probes } from './probes.ts';
import type { Settings } from './settings.ts';

const FIRST_PAUSE_MS = 1_000;
const LAST_PAUSE_MS = 10_000;
/** How often the log says what the start still waits for. */
const SAID_AGAIN_MS = 60_000;
const RETRY_AFTER_SECONDS = 10;

export interface WaitingStart<Composed> {
  readonly settings: Pick<Settings, 'tls' | 'host' | 'port' | 'roles'>;
  readonly log: Pick<Logger, 'warn'>;
  readonly pause: (ms: number) => Promise<void>;
  readonly monotonicMs: () => number;
  /** Throws a `PartUnreachable` for a part that is away, and leaves nothing open. */
  compose(): Promise<Composed>;
}

/** Resolves with what `compose` returns. The address is free again by then. */
export async function composeWhenReachable<Composed>(start: WaitingStart<Composed>): Promise<Composed> {
  let standIn: StandIn | null = null;
  let saidPart: NeededPart | null = null;
  let saidAtMs = Number.NEGATIVE_INFINITY;
  try {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LAST_PAUSE_MS)) {
      try {
        return await start.compose();
      } catch (error) {
        if (!(error instanceof PartUnreachable)) throw error;
        const { part, message } = error;
        if (saidPart !== part || start.monotonicMs() - saidAtMs >= SAID_AGAIN_MS) {
          start.log.warn({ part, err: error.cause }, `The start waits: ${message}`);
          saidPart = part;
          saidAtMs = start.monotonicMs();
        }
        standIn ??= await openStandIn(start.settings);
        standIn.waitFor(part);
      }
      await start.pause(pauseMs);
    }
  } finally {
    await standIn?.close();
  }
}

interface StandIn {
  waitFor(part: NeededPart): void;
  close(): Promise<void>;
}

async function openStandIn({ tls, host, port, roles }: WaitingStart<unknown>['settings']): Promise<StandIn> {
  let awaited: NeededPart | null = null;
  const probes: Probes = {
    roles,
    metrics: async () => ({ contentType: 'text/plain', bytes: new Uint8Array() }),
    ready: async () => ({ ready: false, parts: awaited === null ? {} : { [awaited]: 'unavailable' } }),
    mayScrape: () => false,
  };
  const probe = createProbeListener(probes);
  const answer: RequestListener = (request, response) => {
    const target = (request.url ?? '').split('?')[0] ?? '';
    if (isProbe(target)) {
      probe(target, request, response);
      return;
    }
    const headers = { 'Content-Type': 'application/json', 'Retry-After': RETRY_AFTER_SECONDS, Connection: 'close' };
    response.writeHead(503, headers).end('{"detail":"The server is starting. Try again in a moment."}');
  };
  const server = tls === null ? createServer(answer) : createTlsServer({ cert: tls.cert, key: tls.key }, answer);
  await listen(server, port, host);
  return {
    waitFor: (part) => {
      awaited = part;
    },
    close: () => close(server),
  };
}

/** Rejects if the address is taken. */
export async function listen(server: Server, port: number, host: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
}

async function close(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
}
