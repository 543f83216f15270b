/**
 * `strata login` behind a network that faults while it waits: connections that are reset, gateways without a service,
 * and a service that says to wait. RFC 8628, section 3.5, says what a device does then.
 */
import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test, vi } from 'vitest';
import { login } from '../../../apps/cli/commands/login.ts';
import { Failure } from '../../../apps/cli/session/failure.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { runInProcess } from '../../support/command-in-process.ts';

type Answer = (response: ServerResponse) => void;

const status =
  (code: number, headers: Readonly<Record<string, string>> = {}): Answer =>
  (response) =>
    void response.writeHead(code, headers).end('{"detail":"said"}');
const reset: Answer = (response) => void response.socket?.resetAndDestroy();
const GRANTED = {
  token: `strata_${'x'.repeat(46)}`,
  username: 'ada',
  access_token: { id: '01890000-0000-7000-8000-000000000000', expires_at: null },
};

/**
 * Serves a session of a device login whose polls get these answers, the last of them from then on. Without a span its
 * end is no date.
 */
async function sessionWith(context: Ending, spanMs: number | null, answers: readonly Answer[]) {
  const polls: number[] = [];
  const server = createServer((request, response) => {
    if (request.method === 'POST') {
      const expires_at = spanMs === null ? 'soon' : new Date(Date.now() + spanMs).toISOString();
      const session = {
        ...{ id: '1', user_code: 'ABCD-EFGH', secret_token: 'a secret of the test', interval: 1 },
        ...{ verification_url: `${url}/access-tokens/create`, expires_at },
      };
      response.writeHead(201).end(JSON.stringify(session));
      return;
    }
    polls.push(performance.now());
    (answers[polls.length - 1] ?? answers.at(-1))?.(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUp(context, () => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const run = (seconds = 0.1) =>
    runInProcess(context, login, { environment: { SERVICE_BASE_URL: url }, options: { 'poll-seconds': seconds } });
  return { polls, run };
}

describe('strata login', () => {
  test('ends where the service names no end of the session, since it would poll without a pause', async (context) => {
    const { polls, run } = await sessionWith(context, null, [status(202), status(410)]);
    const { error } = await run();
    assert.match(error instanceof Failure ? error.message : String(error), /names no end of the login/);
    assert.equal(polls.length, 0);
  });

  test('polls on through resets and 5xx at doubled intervals, and through 429 as long as it says', async (context) => {
    const { polls, run } = await sessionWith(context, 600_000, [
      reset,
      status(500),
      status(502),
      status(202),
      status(429, { 'retry-after': '1' }),
      status(503),
      (response) => void response.end(JSON.stringify(GRANTED)),
    ]);
    const { error, stdout } = await run();
    assert.equal(error, null);
    assert.match(stdout, /Signed in to .* as ada/);
    const gaps = polls.slice(1).map((at, n) => at - (polls[n] ?? 0));
    // A timer may fire a millisecond early.
    for (const [n, least] of [200, 400, 800, 100, 1_000, 200].entries()) {
      assert.ok((gaps[n] ?? 0) >= least - 2, `${gaps.join(' ')}: ${n} is under ${least}`);
    }
    assert.ok((gaps[3] ?? 0) < 800, 'an answer ends the longer interval');
  });

  test('waits no longer than 30 seconds between two polls', async (context) => {
    const { polls, run } = await sessionWith(context, 600_000, [
      ...Array.from({ length: 7 }, () => status(503)),
      (response) => void response.end(JSON.stringify(GRANTED)),
    ]);
    const waits: number[] = [];
    const wait = setTimeout;
    const spy = vi.spyOn(globalThis, 'setTimeout').mockImplementation((done, ms = 0) => {
      waits.push(ms / 1_000);
      return wait(done, 1);
    });
    cleanUp(context, () => spy.mockRestore());
    const { error } = await run(1);
    assert.equal(error, null);
    assert.deepEqual([waits, polls.length], [[1, 2, 4, 8, 16, 30, 30, 30], 8]);
  });

  test('ends with the session as the last poll did', async (context) => {
    // The session ended 59 seconds ago: it is polled for a minute longer.
    const { polls, run } = await sessionWith(context, -59_000, [status(502)]);
    const begun = performance.now();
    const { error } = await run();
    assert.match(String(error), /said/);
    assert.ok(polls.length >= 3 && performance.now() - begun < 10_000, String(polls.length));
  });

  test('says that a token may have been lost if the login has ended behind a poll without an answer', async (context) => {
    const { run } = await sessionWith(context, 600_000, [reset, status(410)]);
    const { error } = await run();
    assert.ok(error instanceof Failure && /its token was lost/.test(error.message), String(error));
    const denied = await (await sessionWith(context, 600_000, [reset, status(403)])).run();
    assert.match(String(denied.error), /was denied/);
  });
});
