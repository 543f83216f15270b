/**
 * `strata oidc-exchange` with the runners of CI systems as their documentation describes them: GitHub's "OpenID Connect
 * reference", CircleCI's "Using OpenID Connect tokens in jobs" and "OIDC tokens with custom claims", and Bitbucket's
 * "Integrate Pipelines with resource servers using OIDC".
 */
import assert from 'node:assert/strict';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { describe, test } from 'vitest';
import { exchange } from '../../../apps/cli/commands/exchange.ts';
import { Failure } from '../../../apps/cli/session/failure.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { runInProcess } from '../../support/command-in-process.ts';
import { tempDir } from '../../support/temp-dir.ts';

const ORGANIZATION = '5034460f-c7c4-4c43-9457-de07e2029e7b';
const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const identityToken = (aud: unknown): string => `${encoded({ alg: 'RS256' })}.${encoded({ aud })}.c2lnbmF0dXJl`;

async function serve(
  context: Ending,
  answer: (request: IncomingMessage, response: ServerResponse, times: number) => void,
): Promise<{ readonly url: string; readonly times: () => number }> {
  let times = 0;
  const server = createServer((request, response) => {
    times += 1;
    answer(request, response, times);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUp(context, () => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, times: () => times };
}

const exchanging = (context: Ending) =>
  serve(context, (_request, response) => void response.end('{"token":"an access token"}'));

function failure(error: unknown): Failure {
  assert.ok(error instanceof Failure, String(error));
  return error;
}

describe('strata oidc-exchange', () => {
  test("asks GitHub's runner again on 5xx, 429 and resets", async (context) => {
    const service = await exchanging(context);
    const runner = await serve(context, (request, response, times) => {
      assert.equal(new URL(request.url ?? '', 'http://runner').searchParams.get('audience'), `${service.url}/ada`);
      if (times === 1) response.writeHead(500).end('<html>');
      else if (times === 2) response.writeHead(429, { 'retry-after': '1' }).end();
      else if (times === 3) response.socket?.resetAndDestroy();
      else response.end(JSON.stringify({ count: 1, value: identityToken(`${service.url}/ada`) }));
    });
    const { error, stdout } = await runInProcess(context, exchange, {
      environment: {
        SERVICE_BASE_URL: service.url,
        SERVICE_USERNAME: 'ada',
        ACTIONS_ID_TOKEN_REQUEST_URL: `${runner.url}/token?api-version=2.0`,
        ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'of the runner',
      },
    });
    assert.deepEqual([error, stdout, runner.times(), service.times()], [null, 'an access token\n', 4, 1]);
  });

  // An identity token works once: a repeat would be refused, whatever became of the first.
  test('never repeats the exchange, and says what a lost answer means', async (context) => {
    for (const answer of [
      (response: ServerResponse) => void response.socket?.resetAndDestroy(),
      (response: ServerResponse) => void response.writeHead(502).end('<html>'),
      (response: ServerResponse) => void response.writeHead(503, { 'retry-after': '1' }).end('{"detail":"Later"}'),
    ]) {
      const service = await serve(context, (_request, response) => answer(response));
      const { error } = await runInProcess(context, exchange, {
        environment: { SERVICE_BASE_URL: service.url },
        options: { 'id-token': identityToken(`${service.url}/ada`) },
      });
      assert.match(failure(error).hint ?? '', /may be used up/);
      assert.equal(service.times(), 1);
    }
    const limited = await serve(
      context,
      (_request, response) => void response.writeHead(429, { 'retry-after': '1' }).end(),
    );
    const { error } = await runInProcess(context, exchange, {
      environment: { SERVICE_BASE_URL: limited.url },
      options: { 'id-token': identityToken(`${limited.url}/ada`) },
    });
    assert.deepEqual([limited.times(), String(error).includes('429')], [1, true]);
  });

  test('lets the command of CircleCI make a token, since the one in the variable is for the organization', async (context) => {
    const service = await exchanging(context);
    const folder = await tempDir(context);
    const command = path.join(folder, 'circleci');
    await writeFile(path.join(folder, 'token'), `${identityToken(`${service.url}/ada`)}\n`);
    await writeFile(
      command,
      `#!/bin/sh\nfor word in "$@"; do echo "$word"; done >'${folder}/asked'\ncat '${folder}/token'\n`,
    );
    await chmod(command, 0o755);
    const environment = {
      SERVICE_BASE_URL: service.url,
      SERVICE_USERNAME: 'ada',
      CIRCLECI: 'true',
      CIRCLE_OIDC_TOKEN: identityToken(ORGANIZATION),
      CIRCLE_OIDC_TOKEN_V2: identityToken(ORGANIZATION),
    };
    const PATH = `${folder}:/usr/bin:/bin`;
    const made = await runInProcess(context, exchange, { environment: { ...environment, PATH } });
    assert.deepEqual([made.error, made.stdout], [null, 'an access token\n']);
    assert.deepEqual((await readFile(path.join(folder, 'asked'), 'utf8')).split('\n'), [
      ...['run', 'oidc', 'get', '--claims', `{"aud":"${service.url}/ada"}`, ''],
    ]);

    const missing = await runInProcess(context, exchange, {
      environment: { ...environment, PATH: await tempDir(context) },
    });
    assert.match(failure(missing.error).message, /circleci run oidc get .* is not installed/);
    await writeFile(command, '#!/bin/sh\necho "not in a job" >&2\nexit 1\n');
    const broken = await runInProcess(context, exchange, { environment: { ...environment, PATH } });
    assert.match(failure(broken.error).message, /not in a job/);
    assert.equal(service.times(), 1);
  });

  // The attack: who runs the service gets a token of the job that is good elsewhere, and uses it there.
  test('sends no token that is for somebody else, and names its audience', async (context) => {
    const service = await exchanging(context);
    for (const audience of [
      ORGANIZATION,
      'sts.amazonaws.com',
      'https://github.com/acme',
      `ari:cloud:bitbucket::workspace/${ORGANIZATION}`,
      [`${service.url}x/ada`],
      ['sts.amazonaws.com', `${service.url}/ada`],
      [`${service.url}/ada`, 'sts.amazonaws.com'],
    ]) {
      const { error } = await runInProcess(context, exchange, {
        environment: { SERVICE_BASE_URL: service.url, BITBUCKET_STEP_OIDC_TOKEN: identityToken(audience) },
      });
      const { message, status } = failure(error);
      assert.equal(status, 2);
      assert.ok(message.includes(`is for ${[audience].flat().join(', ')}, and not for ${service.url} alone`), message);
    }
    for (const token of ['no token', 'a.b', `x.${encoded([])}`, `${encoded({})}.e30.x`, `${encoded({})}.x.x`]) {
      const { error } = await runInProcess(context, exchange, {
        environment: { SERVICE_BASE_URL: service.url, SERVICE_ID_TOKEN: token },
      });
      assert.equal(failure(error).status, 2, token);
    }
    assert.equal(service.times(), 0);
    for (const options of [
      { 'id-token': identityToken([`${service.url}/ada`]) },
      { 'id-token': identityToken('https://website.example/ada'), audience: 'https://website.example/ada' },
    ]) {
      const { error } = await runInProcess(context, exchange, {
        environment: { SERVICE_BASE_URL: service.url },
        options,
      });
      assert.equal(error, null);
    }
  });
});
