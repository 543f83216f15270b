/** How long a client may take for the body of a request, and be silent in it. */
import assert from 'node:assert/strict';
import { connect, Socket } from 'node:net';
import { describe, type TestContext, test, vi } from 'vitest';
import { FETCH_BODY_SPAN_MS } from '../../../apps/git-http/fetch.ts';
import { BODY_IDLE_MS, JSON_BODY_SPAN_MS } from '../../../core/kernel/limits.ts';
import { createApiFixture } from '../../support/api-fixture.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { startGit } from '../../support/git-fixture.ts';
import { eventually, turns } from '../../support/test-timers.ts';

const GIT_TARGET = '/r/ada/engine.git/git-';

interface Services {
  readonly apiPort: number;
  readonly gitPort: number;
  readonly secret: string;
}

async function start(context: TestContext): Promise<Services> {
  const fixture = await createApiFixture();
  cleanUp(context, () => fixture.close());
  const ada = await fixture.account('ada');
  await fixture.repository(ada, 'engine');
  const git = await startGit(fixture);
  cleanUp(context, () => git.close());
  const { secret } = await fixture.token(ada);
  return { apiPort: await fixture.listen(), gitPort: git.port, secret };
}

/** Returns what was answered so far. */
type Answer = () => string;

/** Sends a request all but the end of its body. */
function begin(context: TestContext, port: number, target: string, headers: readonly string[]): Answer {
  const socket = connect(port, '127.0.0.1');
  cleanUp(context, () => void socket.destroy());
  socket.on('error', () => undefined);
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  const head = [`POST ${target} HTTP/1.1`, 'Host: localhost', ...headers, 'Content-Length: 100', '', '0'];
  socket.write(head.join('\r\n'));
  return () => text;
}

const toApi = (context: TestContext, { apiPort, secret }: Services): Answer =>
  begin(context, apiPort, '/v1/repositories', [`Authorization: Bearer ${secret}`, 'Content-Type: application/json']);

function toGit(context: TestContext, { gitPort, secret }: Services, service: string): Answer {
  const authorization = `Authorization: Basic ${Buffer.from(`git:${secret}`).toString('base64')}`;
  const type = `Content-Type: application/x-git-${service}-request`;
  return begin(context, gitPort, `${GIT_TARGET}${service}`, [authorization, type]);
}

describe('The body of a request', () => {
  test('may take as long as the limit to arrive, to the last moment, and no longer', async (context) => {
    const services = await start(context);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    context.onTestFinished(() => void vi.useRealTimers());
    const timers = vi.spyOn(globalThis, 'setTimeout');
    cleanUp(context, () => timers.mockRestore());
    for (const [send, spanMs] of [
      [() => toApi(context, services), JSON_BODY_SPAN_MS],
      [() => toGit(context, services, 'upload-pack'), FETCH_BODY_SPAN_MS],
    ] as const) {
      timers.mockClear();
      const answer = send();
      await eventually(() => timers.mock.calls.some(([, ms]) => ms === spanMs));
      vi.advanceTimersByTime(spanMs - 1);
      await turns();
      assert.equal(answer(), '');
      vi.advanceTimersByTime(1);
      await eventually(() => answer() !== '');
      assert.match(answer(), /^HTTP\/1\.1 408 [^]*The body took too long to arrive/);
    }
  });

  test('may be silent for as long as the limit, after which Node ends its connection', async (context) => {
    const services = await start(context);
    const silences = vi.spyOn(Socket.prototype, 'setTimeout');
    cleanUp(context, () => silences.mockRestore());
    for (const service of ['upload-pack', 'receive-pack']) {
      silences.mockClear();
      toGit(context, services, service);
      await eventually(() => silences.mock.calls.some(([ms]) => ms === BODY_IDLE_MS));
    }
  });
});
