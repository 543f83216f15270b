/**
 * The whole HTTP interface in this process, over ports and git processes that a test can hold back one by one.
 *
 * Invariants: the Git and REST handlers are joined as in the product. The object database is the real one, limited
 * to one git process at a time, so that the next request hangs when a process slot was not released.
 */
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo, Socket } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { createGitObjectDatabase } from '../../adapters/git/object-database.ts';
import { createApi } from '../../apps/api/app.ts';
import { createRefAnswers } from '../../apps/git-http/advertise.ts';
import { createGitHandler } from '../../apps/git-http/handler.ts';
import { createHttpServer } from '../../apps/server/http.ts';
import { DEFAULT_PLANS } from '../../core/account/plans.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import { type ApiFixture, createApiFixture, type TestToken } from './api-fixture.ts';
import { cleanUp, type Ending } from './cleanup.ts';
import { filesBelow } from './files-below.ts';
import { runGit } from './git.ts';
import { gitBelow } from './git-below.ts';
import type { WireTarget } from './git-wire.ts';
import { createHeldCalls, type HeldCalls } from './held-calls.ts';
import { layersIn } from './layers-in.ts';
import { createMemoryLayerStore } from './memory/layer-store.ts';
import { testPastRepositories } from './past-repositories.ts';
import { tempDir } from './temp-dir.ts';

const QUIET_SPAN_MS = 5_000;

/** Git processes; a test can make the n-th one wait before it begins. */
export interface HeldGit {
  /** Holds the n-th process from now on, counted from 1. */
  hold(nth: number): Promise<void>;
  /** Resolves with true when the held process starts, or with false when `release` was called before. */
  reached(): Promise<boolean>;
  release(): Promise<void>;
}

export interface HeldServer {
  readonly port: number;
  readonly calls: HeldCalls;
  readonly git: HeldGit;
  readonly fixture: ApiFixture;
  readonly account: AccountId;
  readonly token: TestToken;
  /** A repository of the account that git can push to. */
  readonly target: WireTarget;
  /** Resolves when the server has also closed the connection from this client port. */
  closed(clientPort: number): Promise<void>;
  /**
   * Resolves when no request is in progress and none has left calls, files or processes behind. Rejects after five
   * seconds with a list of what is left.
   */
  quiet(): Promise<void>;
}

export async function startHeldServer(ending: Ending): Promise<HeldServer> {
  const directory = await tempDir(ending);
  const calls = createHeldCalls();
  const unbounded = { ...DEFAULT_PLANS.FREE, repos: null, byo_storage: true };
  const fixture = await createApiFixture({
    plans: { ...DEFAULT_PLANS, FREE: unbounded },
    wrapEvents: (events) => calls.watch('events', events),
    entitiesSizeBytesMax: 0,
  });
  cleanUp(ending, () => fixture.close());
  const git = await heldGit(path.join(directory, 'git'));
  const cacheDirectory = path.join(directory, 'cache');
  const layers = layersIn(calls.watch('layers', createMemoryLayerStore()));
  const objects = await createGitObjectDatabase({
    ...{ directory: cacheDirectory, layers, gitPath: git.path, cacheBytesMax: 2 ** 30 },
    processesMax: 1,
    log: { info: () => undefined, warn: () => undefined, error: () => undefined },
  });
  cleanUp(ending, () => objects.close());
  let clients = 0;
  const context = {
    ...fixture.context,
    layers,
    objects: calls.watch('objects', objects),
    newContents: objects.newContents,
    readModels: calls.watch('readModels', fixture.context.readModels),
    usage: calls.watch('usage', fixture.context.usage),
    vault: calls.watch('vault', fixture.context.vault),
    deliveries: calls.watch('deliveries', fixture.context.deliveries),
    deviceRequests: calls.watch('deviceRequests', fixture.context.deviceRequests),
    outgoing: calls.watch('outgoing', fixture.context.outgoing),
    lastUse: fixture.context.lastUse,
    bucketFindings: calls.watch('bucketFindings', fixture.context.bucketFindings),
    refusedExchanges: calls.watch('refusedExchanges', fixture.context.refusedExchanges),
    // Takes a token's claims as its text.
    identityTokens: {
      read: (token: string) => ({
        claims: JSON.parse(token) as JsonObject,
        inexact: new Set<string>(),
        isAlgorithmAllowed: true,
      }),
      ...calls.watch('identityTokens', { verify: async () => null }),
    },
    // Each request gets an address of its own, so that no rate limit applies.
    clientAddress: () => `192.0.2.${(clients += 1) % 250}-${clients}`,
    ...calls.watch('addresses', { sourceAddressRef: async () => null }),
    ...calls.watch('failpoints', { failpoint: async () => undefined }),
    onFinished: () => undefined,
    onLayer: () => undefined,
  };
  const pastRepositories = testPastRepositories(context);
  const api = createApi(context);
  await api.ready();
  cleanUp(ending, () => api.close());
  const http = createHttpServer({
    tls: null,
    git: createGitHandler({
      ...context,
      pastRepositories,
      refAnswers: createRefAnswers('strata/test'),
      warmClones: { asked: () => undefined },
      log: pino({ level: 'silent' }),
    }),
    probes: {
      roles: [],
      metrics: async () => ({ contentType: '', bytes: Buffer.alloc(0) }),
      ready: async () => readyNow(),
      mayScrape: () => true,
    },
    rest: (request, response) => api.routing(request, response),
    website: null,
    authorities: new Set(),
    isExempt: () => true,
    newRequestId: () => context.ids.next(),
    onUnreadable: (_error, socket) => socket.destroy(),
  });
  const connections = new Map<number, Socket>();
  http.on('connection', (socket: Socket) => {
    const { remotePort = 0 } = socket;
    connections.set(remotePort, socket);
    socket.once('close', () => connections.delete(remotePort));
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  cleanUp(ending, () => {
    http.closeAllConnections();
    http.close();
  });
  const { port } = http.address() as AddressInfo;
  const account = await fixture.account('ada', 'FREE');
  const token = await fixture.token(account);
  await fixture.repository(account, 'code', 'main');
  const left = async (): Promise<readonly string[]> => {
    const calling = calls.pending() > 0 ? [`${calls.pending()} calls`] : [];
    const held = calls.unclosed().map((name) => `what ${name} gave`);
    if (calling.length + held.length > 0) return [...calling, ...held];
    return [...(await filesBelow(path.join(cacheDirectory, 'incoming'))), ...gitBelow(process.pid)];
  };
  return {
    ...{ port, calls, git, fixture, account, token },
    target: {
      strata: { url: `http://127.0.0.1:${port}` },
      account: { username: 'ada', token: token.secret },
      name: 'code',
    },
    closed: async (clientPort) => {
      const socket = connections.get(clientPort);
      // Waits for `close`, not `end`: the connection may end with an error.
      if (socket !== undefined) await new Promise<void>((resolve) => socket.once('close', () => resolve()));
    },
    quiet: async () => {
      const giveUpMs = performance.now() + QUIET_SPAN_MS;
      let found = await left();
      for (; found.length > 0; found = await left()) {
        if (performance.now() > giveUpMs) throw new Error(`Left behind: ${found.join(', ')}`);
        await sleep(1);
      }
      // Gives an unhandled rejection time to be reported.
      await sleep(1);
    },
  };
}

function readyNow() {
  return { ready: true, parts: {} };
}

/**
 * Makes a `git` program that counts its starts in a folder, waits where the test holds it, and then executes the real
 * git.
 */
async function heldGit(folder: string): Promise<HeldGit & { readonly path: string }> {
  const program = path.join(folder, 'git');
  const real = runGit(['--exec-path']).toString().trim();
  const [starts, held, nth] = ['starts', 'held', 'nth'].map((name) => path.join(folder, name));
  const script = [
    '#!/bin/sh',
    `if [ -e '${nth}' ]; then`,
    `  i=1; while ! mkdir "${starts}/$i" 2>/dev/null; do i=$((i + 1)); done`,
    `  if [ "$i" = "$(cat '${nth}')" ]; then mkdir '${held}'; while [ -e '${nth}' ]; do sleep 0.01; done; fi`,
    'fi',
    `exec '${real}/git' "$@"`,
  ];
  await mkdir(folder, { recursive: true });
  await writeFile(program, `${script.join('\n')}\n`, { mode: 0o755 });
  const release = async (): Promise<void> => {
    for (const entry of [nth, held, starts]) await rm(entry ?? '', { recursive: true, force: true });
  };
  return {
    path: program,
    hold: async (number) => {
      await release();
      await mkdir(starts ?? '');
      await writeFile(nth ?? '', `${number}`);
    },
    reached: async () => {
      for (;;) {
        const names = readdirSync(folder);
        if (names.includes('held') || !names.includes('nth')) return names.includes('held');
        await sleep(2);
      }
    },
    release,
  };
}
