/**
 * Starts the server when the parts that it needs can be reached. Until then the address is served as far as it can be:
 * `/healthz` says that the process runs, `/readyz` names the part that it waits for, and everything else is told to
 * come again.
 *
 * Invariants: nothing but an unreachable part is waited for. Any other failure of a start is thrown. Nothing of an
 * attempt that failed stays open when the next one begins.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { uuids } from '../../adapters/node/ids.ts';
import { answerUnreadable } from '../api/faults.ts';
import { ownAuthorities } from '../front-door/own-authorities.ts';
import { createHttpServer } from './http.ts';
import { type NeededPart, PartUnreachable } from './part-unreachable.ts';
import type { Probes } from './probes.ts';
import type { Settings } from './settings.ts';
import { SettingsError } from './settings-reader.ts';
import { createOwnAddress } from './source-address.ts';

const FIRST_PAUSE_MS = 1_000;
const LAST_PAUSE_MS = 10_000;
/** How often the log says what the start still waits for. */
const SAID_AGAIN_MS = 60_000;
const RETRY_AFTER_SECONDS = 10;

export interface WaitingStart<Composed> {
  readonly settings: Pick<Settings, 'tls' | 'host' | 'port' | 'roles' | 'trustedProxies' | 'baseUrl' | 'webUrl'>;
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

/** Serves what can be served with the bounds of the server itself. */
async function openStandIn(settings: WaitingStart<unknown>['settings']): Promise<StandIn> {
  let awaited: NeededPart | null = null;
  const probes: Probes = {
    roles: settings.roles,
    metrics: async () => ({ contentType: 'text/plain', bytes: new Uint8Array() }),
    ready: async () => ({ ready: false, parts: awaited === null ? {} : { [awaited]: 'unavailable' } }),
    mayScrape: () => false,
  };
  const server = createHttpServer({
    tls: settings.tls,
    probes,
    git: comeAgain,
    rest: comeAgain,
    website: comeAgain,
    newRequestId: () => uuids.next(),
    authorities: ownAuthorities(settings),
    isExempt: createOwnAddress(settings.trustedProxies),
    onUnreadable: (error, socket) => answerUnreadable(error, socket, uuids.next()),
  });
  await listen(server, settings);
  return {
    waitFor: (part) => {
      awaited = part;
    },
    close: () => close(server),
  };
}

function comeAgain(_request: IncomingMessage, response: ServerResponse): void {
  const headers = { 'Content-Type': 'application/json', 'Retry-After': RETRY_AFTER_SECONDS, Connection: 'close' };
  response.writeHead(503, headers).end('{"detail":"The server is starting. Try again in a moment."}');
}

/** Rejects with what to change in the settings if the place is taken, forbidden or unknown. */
export async function listen(server: Server, { port, host }: Pick<Settings, 'port' | 'host'>): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(unusablePlace(error, { port, host }) ?? error));
    server.listen(port, host, resolve);
  });
}

/** Returns null if the settings are not the reason. */
function unusablePlace(cause: NodeJS.ErrnoException, { port, host }: Pick<Settings, 'port' | 'host'>) {
  const why = {
    EADDRINUSE: `STRATA_PORT is ${port}, which another program uses on ${host}: end it, or choose another port`,
    EACCES: `STRATA_PORT is ${port}, which this user may not listen on: choose a port from 1024 on`,
    EADDRNOTAVAIL: `STRATA_HOST is ${host}, which is no address of this machine`,
    ENOTFOUND: `STRATA_HOST is ${host}, which no address is known of`,
  }[cause.code ?? ''];
  return why === undefined ? null : new SettingsError(why, { cause });
}

async function close(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
}
