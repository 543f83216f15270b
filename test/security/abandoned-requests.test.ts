/**
 * Clients that disconnect at every point of every kind of request: the test holds back each call to a port, and each
 * start of git, in turn, and destroys while it runs the client's connection.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, test } from 'vitest';
import { ROUTES } from '../../apps/api/routes.ts';
import { gitKinds, type RequestKind, restKinds } from '../support/abandoned-requests.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { noteFigure } from '../support/figures.ts';
import { NO_PROC } from '../support/git-below.ts';
import type { HeldOutcome } from '../support/held-calls.ts';
import { type HeldServer, startHeldServer } from '../support/held-server.ts';
import { thirdOf } from '../support/kill-sample.ts';
import { skippedFor } from '../support/skipped.ts';

const OUTCOMES: readonly HeldOutcome[] = ['result', 'outage'];
/** More calls than any request makes. */
const CALLS_MAX = 200;
/** The test assumes that a request with an incomplete body makes no further call after this time. */
const IDLE_MS = 100;

/** Answered from memory, without a call that could wait. */
const FROM_MEMORY: ReadonlySet<string> = new Set([
  ...['getOpenApi', 'getOpenApi30', 'getIssuer', 'getPublicKeys', 'getLogKeys', 'listLogKeys'],
]);

describe('A client that disconnects', skippedFor(NO_PROC), () => {
  // The attack: anyone who may send requests sends small ones and disconnects. If the server is waiting for another
  // part at that moment, a rejection without a handler would end the process, and what the request holds would never be
  // released.
  const ending = suiteEnding();
  const unhandled: unknown[] = [];
  let server: HeldServer;
  let everyKind: readonly RequestKind[];
  /** A run of CI takes a third of those over REST, others for each commit (kill-sample.ts). */
  let kinds: readonly RequestKind[];

  beforeAll(async () => {
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    ending.onTestFinished(() => void process.off('unhandledRejection', note));
    server = await startHeldServer(ending);
    const [ofGit, ofRest] = [await gitKinds(server), await restKinds(server)];
    const chosen = new Set(thirdOf(ofRest.map(({ name }) => name)));
    everyKind = [...ofGit, ...ofRest];
    kinds = [...ofGit, ...ofRest.filter(({ name }) => chosen.has(name))];
  });

  async function begin(bytes: Buffer): Promise<Socket> {
    const socket = connect(server.port, '127.0.0.1');
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.write(bytes);
    return socket;
  }

  /** Resolves with the bytes received until either side closes the connection. */
  function answerOn(socket: Socket): Promise<string> {
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    return new Promise((resolve) => socket.once('close', () => resolve(Buffer.concat(chunks).toString('latin1'))));
  }

  /** Disconnects, releases the held call, and checks that the request leaves nothing behind. */
  async function leave(where: string, socket: Socket, release: () => unknown): Promise<void> {
    const { localPort = 0 } = socket;
    socket.destroy();
    await server.closed(localPort);
    await release();
    await server.quiet().catch((cause: unknown) => {
      throw new Error(`After ${where}`, { cause });
    });
    assert.deepEqual(unhandled, [], `After ${where}`);
  }

  /**
   * Repeats the request and disconnects at its first call, its second, and so on; returns the calls' names. The last
   * repetition has no call left to hold, so it must be answered: no repetition may use up a resource of the server.
   */
  async function leaveAtEachCall({ name, make }: RequestKind, outcome: HeldOutcome): Promise<readonly string[]> {
    const left: string[] = [];
    for (let nth = 1; nth < CALLS_MAX; nth += 1) {
      const { bytes, status } = await make();
      const held = server.calls.hold(nth, outcome);
      const socket = await begin(bytes);
      const answered = answerOn(socket);
      const reached = await Promise.race([held.reached, answered.then(() => null)]);
      await leave(`${name}, ${outcome} of ${reached ?? 'no call'}`, socket, held.release);
      if (reached === null) {
        assert.match(await answered, new RegExp(`^HTTP/1.1 ${status} `), name);
        return left;
      }
      left.push(reached);
    }
    throw new Error(`${name} makes more than ${CALLS_MAX} calls`);
  }

  /** Does the same with a request whose body stays incomplete. */
  async function leaveBeforeTheEnd({ name, make }: RequestKind, outcome: HeldOutcome): Promise<readonly string[]> {
    const left: string[] = [];
    for (let nth = 1; nth < CALLS_MAX; nth += 1) {
      const { bytes } = await make();
      const held = server.calls.hold(nth, outcome);
      const socket = await begin(bytes.subarray(0, -10));
      const reached = await Promise.race([held.reached, sleep(IDLE_MS, null)]);
      await leave(`${name} cut short, ${outcome} of ${reached ?? 'no call'}`, socket, held.release);
      if (reached === null) return left;
      left.push(reached);
    }
    throw new Error(`${name} makes more than ${CALLS_MAX} calls`);
  }

  test('there is a kind of request for each operation of the API', (context) => {
    const known = new Set(everyKind.map(({ operationId }) => operationId));
    assert.deepEqual(
      ROUTES.map(({ operationId }) => operationId).filter((id) => !known.has(id)),
      [],
    );
    noteFigure(context, `abandoned requests: ${kinds.length} of ${everyKind.length} kinds`);
  });

  for (const outcome of OUTCOMES) {
    test(`while a call of its request waits for its ${outcome} leaves nothing behind`, async (context) => {
      const left = new Set<string>();
      for (const kind of kinds) {
        const at = await leaveAtEachCall(kind, outcome);
        for (const name of at) left.add(name);
        assert.ok(FROM_MEMORY.has(kind.operationId ?? '') || at.length > 0, `${kind.name} makes no call`);
      }
      await context.annotate([...left].join(' '));
    });

    test(`before its body is complete, while a call waits for its ${outcome}, leaves nothing behind`, async (context) => {
      const left = new Set<string>();
      for (const kind of kinds.filter(({ hasBody }) => hasBody)) {
        for (const name of await leaveBeforeTheEnd(kind, outcome)) left.add(name);
      }
      await context.annotate([...left].join(' '));
      assert.ok(left.has('usage.usageOf'), 'the server reads the usage before the pack');
    });
  }

  test('while git starts for its request leaves no process', async (context) => {
    const reached: string[] = [];
    for (const { name, make } of kinds) {
      for (let nth = 1, isReached = true; isReached; nth += 1) {
        const { bytes, status } = await make();
        await server.git.hold(nth);
        const socket = await begin(bytes);
        const answered = answerOn(socket);
        isReached = await Promise.race([server.git.reached(), answered.then(() => false)]);
        await leave(`${name}, process ${nth}`, socket, () => server.git.release());
        if (isReached) reached.push(`${name} ${nth}`);
        else assert.match(await answered, new RegExp(`^HTTP/1.1 ${status} `), name);
      }
    }
    await context.annotate(reached.join(', '));
    assert.ok(reached.includes('a push that git checks 1') && reached.includes('a fetch in version 2 1'));
  });
});
