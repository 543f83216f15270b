/** Questions to a cloud's token service: what is sent, what each answer means, and what shows of the secrets. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect, promisify } from 'node:util';
import { beforeAll, beforeEach, describe, test, vi } from 'vitest';
import {
  createTokenService,
  ROLE_CONNECTIONS_MAX,
  ROLE_REQUEST_SPAN_MS,
  ROLE_REQUESTS_SPAN_MS,
  ROLE_SESSION_SECONDS,
} from '../../../adapters/sts/assume-role.ts';
import type { BucketFaultCode } from '../../../core/kernel/bucket-fault.ts';
import { type RoleAccess, RoleRefused } from '../../../core/ports/buckets.ts';
import { createAuthority } from '../../support/certificates.ts';
import { cleanUp, type Ending, suiteEnding } from '../../support/cleanup.ts';
import { newAccount } from '../../support/events.ts';
import { freePort } from '../../support/free-port.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { grant, refuse, startTokenService, type TestTokenService } from '../../support/token-service.ts';

const ROLE = 'arn:aws:iam::123456789012:role/strata';
const EXPIRES = '2026-11-21T11:00:00Z';

describe('A question to a token service', () => {
  const ending = suiteEnding();
  let cloud: TestTokenService;
  let issued = 0;

  const serviceAt = (endpoint: string | null, context: Ending, requestMs = 10_000) => {
    const identity = {
      issue: async ({ audience, subject }: { audience: string; subject: string }) =>
        `eyJhbGciOiJSUzI1NiJ9.eyJ0-${audience}-${subject}-${(issued += 1)}.signature-${issued}`,
    };
    const spans = { request: requestMs, requests: 2.5 * requestMs, pause: 5 };
    const service = createTokenService({ identity, endpoint, spans });
    cleanUp(context, async () => service.close());
    return service;
  };
  const access = (roleArn = ROLE): RoleAccess => ({ mode: 'OIDC', account: newAccount(), roleArn });

  beforeAll(async () => {
    cloud = await startTokenService(ending);
  });
  beforeEach(() => {
    cloud.asked.length = 0;
    issued = 0;
  });

  /** Asks once, and returns the refusal. */
  async function refusalOf(context: Ending, asked: RoleAccess = access(), requestMs?: number): Promise<RoleRefused> {
    try {
      await serviceAt(cloud.url, context, requestMs).assumeRole(asked);
    } catch (error) {
      assert.ok(error instanceof RoleRefused);
      return error;
    }
    throw new Error('The role was given');
  }

  test('names role, account, length and token, is not signed, and brings the credentials', async (context) => {
    cloud.answer = grant('ONE', EXPIRES);
    const asked = access();
    assert.deepEqual(await serviceAt(cloud.url, context).assumeRole(asked), {
      accessKeyId: 'ASIAONE',
      secretAccessKey: 'secret of ONE',
      sessionToken: 'session of ONE',
      expiresAt: '2026-11-21T11:00:00.000Z',
    });
    const [{ headers, form } = { headers: {}, form: new URLSearchParams() }, ...more] = cloud.asked;
    assert.equal(more.length, 0);
    assert.deepEqual(Object.fromEntries(form), {
      Action: 'AssumeRoleWithWebIdentity',
      Version: '2011-06-15',
      RoleArn: ROLE,
      RoleSessionName: `strata-${asked.account}`,
      WebIdentityToken: `eyJhbGciOiJSUzI1NiJ9.eyJ0-sts.amazonaws.com-account:${asked.account}-1.signature-1`,
      DurationSeconds: String(ROLE_SESSION_SECONDS),
    });
    // IAM takes 2 to 64 of these characters.
    assert.match(form.get('RoleSessionName') ?? '', /^[\w+=,.@-]{2,64}$/);
    assert.equal(headers.authorization, undefined);
  });

  test('is refused with a code for each reason, once where a repeat cannot help', async (context) => {
    for (const [status, name, code, times] of [
      [403, 'AccessDenied', 'credentials-refused', 1],
      [400, 'InvalidIdentityToken', 'credentials-refused', 1],
      [403, 'IDPRejectedClaim', 'credentials-refused', 1],
      [404, 'NoSuchEntity', 'credentials-refused', 1],
      [400, 'ValidationError', 'credentials-refused', 1],
      [400, 'ExpiredTokenException', 'clock-skewed', 1],
      [400, 'IDPCommunicationError', 'unreachable', 3],
      [400, 'Throttling', 'throttled', 3],
      [503, 'SlowDown', 'throttled', 3],
      [429, 'Whatever', 'throttled', 3],
      [500, 'InternalFailure', 'unreachable', 3],
      [418, 'Whatever', 'failed', 1],
    ] as const satisfies readonly (readonly [number, string, BucketFaultCode, number])[]) {
      cloud.asked.length = 0;
      cloud.answer = refuse(status, name, 'What the cloud says');
      const refused = await refusalOf(context);
      assert.deepEqual([refused.code, cloud.asked.length], [code, times], `${status} ${name}`);
      assert.match(refused.message, /^The token service [^]{5,490}$/);
    }
  });

  // The attack: a token that was seen once is sent again. A cloud that counts them would refuse the repeat.
  test('is repeated with another token after it was asked too often', async (context) => {
    const answers = [refuse(400, 'Throttling'), refuse(503, 'SlowDown'), grant('THREE', EXPIRES)];
    cloud.answer = (asked, response) => answers.shift()?.(asked, response);
    const given = await serviceAt(cloud.url, context).assumeRole(access());
    assert.equal(given.accessKeyId, 'ASIATHREE');
    assert.equal(new Set(cloud.asked.map(({ form }) => form.get('WebIdentityToken'))).size, 3);
  });

  // The attack: a cloud that accepts the connection and never answers, or only a byte now and then.
  test('ends in time if nothing comes, or only the beginning of an answer', async (context) => {
    for (const answer of [
      () => undefined,
      (...[, response]: Parameters<TestTokenService['answer']>) => void response.writeHead(200).write('<Assume'),
    ]) {
      cloud.answer = answer;
      const start = performance.now();
      assert.equal((await refusalOf(context, access(), 400)).code, 'timed-out');
      assert.ok(performance.now() - start < 5_000);
      assert.ok(cloud.asked.length <= 3);
      cloud.asked.length = 0;
    }
  });

  test('is asked within the time for one request, and for all of them', async (context) => {
    cloud.answer = grant('ONE', EXPIRES);
    const spans = vi.spyOn(AbortSignal, 'timeout');
    cleanUp(context, () => spans.mockRestore());
    const service = createTokenService({ identity: { issue: async () => 'token' }, endpoint: cloud.url });
    cleanUp(context, () => service.close());
    await service.assumeRole(access());
    assert.deepEqual(
      spans.mock.calls.map(([spanMs]) => spanMs),
      [ROLE_REQUESTS_SPAN_MS, ROLE_REQUEST_SPAN_MS],
    );
  });

  test('tells a cloud that is not there, and an answer that cannot be read', async (context) => {
    const nobody = serviceAt(`http://127.0.0.1:${await freePort()}`, context).assumeRole(access());
    await assert.rejects(nobody, {
      code: 'unreachable',
      message: 'The token service cannot be reached (ECONNREFUSED)',
    });
    const never = serviceAt('http://nobody.invalid', context).assumeRole(access());
    await assert.rejects(never, { code: 'unreachable' });
    for (const [status, body] of [
      [200, 'not XML <'],
      [200, ''],
      [200, '<AssumeRoleWithWebIdentityResponse/>'],
      [302, ''],
      [400, '<html>no</html>'],
    ] as const) {
      cloud.answer = (_asked, response) =>
        void response.writeHead(status, { location: 'http://127.0.0.1:1/', 'content-type': 'text/xml' }).end(body);
      assert.equal((await refusalOf(context)).code, 'failed', `${status} ${body}`);
    }
  });

  // The attack: somebody on the way answers in the place of the cloud, and reads the token.
  test('is not sent to who has no valid certificate', async (context) => {
    const { cert, key } = createAuthority().issue(['127.0.0.1']);
    const requests: string[] = [];
    const server = createServer({ cert, key }, (request) => requests.push(request.url ?? ''));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    cleanUp(context, async () => void server.close());
    const { port } = server.address() as AddressInfo;
    const asked = serviceAt(`https://127.0.0.1:${port}`, context).assumeRole(access());
    await assert.rejects(asked, { code: 'certificate-invalid' });
    assert.deepEqual(requests, []);
  });

  test('is not sent for a name that is no role, or of a cloud that is not known', async (context) => {
    for (const roleArn of ['', 'strata', 'arn:aws:iam::1:role/a', 'arn:aws-moon:iam::123456789012:role/a']) {
      assert.equal((await refusalOf(context, access(roleArn))).code, 'credentials-refused', roleArn);
    }
    assert.equal(cloud.asked.length, 0);
  });

  // The attack: thousands of buckets, each with a role of its own, are used at the same time.
  test('takes one of as many connections as the limit allows, and waits for its turn beyond it', async (context) => {
    const held: (() => void)[] = [];
    cloud.answer = (asked, response) => held.push(() => grant('ONE', EXPIRES)(asked, response));
    const service = serviceAt(cloud.url, context);
    const asking = Array.from({ length: ROLE_CONNECTIONS_MAX + 1 }, () => service.assumeRole(access()));
    await vi.waitFor(() => assert.equal(held.length, ROLE_CONNECTIONS_MAX), 5_000);
    await sleep(50);
    assert.equal(held.length, ROLE_CONNECTIONS_MAX);
    held.shift()?.();
    await vi.waitFor(() => assert.equal(held.length, ROLE_CONNECTIONS_MAX), 5_000);
    for (const answer of held) answer();
    await Promise.all(asking);
    assert.equal(cloud.asked.length, ROLE_CONNECTIONS_MAX + 1);
  });

  // The attack: a token service repeats the token in its error, which stands in the list of a bucket's errors.
  test('shows neither the token nor the request in its error, and its message is one short line', async (context) => {
    cloud.answer = (asked, response) => {
      const token = asked.form.get('WebIdentityToken') ?? '';
      const parts = `${token} ${token.slice(0, 30)} ${token.split('.')[2]}`;
      refuse(403, 'AccessDenied', `Not for ${parts}\n\u0007${'x'.repeat(2_000)}`)(asked, response);
    };
    const refused = await refusalOf(context);
    assert.equal(refused.cause, undefined);
    assert.doesNotMatch(inspect(refused, { depth: 10, showHidden: true }), /eyJ|signature-|WebIdentityToken/);
    assert.match(refused.message, /^The token service refuses the role: Not for [^\n\p{Cc}]*$/u);
    assert.equal(refused.message.length, 500);
  });

  // The attack: the machine's own keys, by environment, file or metadata service, are used for a user's bucket.
  test('reads no setting of the machine: no environment, no file, no metadata service', async (context) => {
    cloud.answer = grant('ONE', EXPIRES);
    const poison = await startTokenService(context);
    poison.answer = grant('POISON', EXPIRES);
    const home = await tempDir(context);
    const files = path.join(home, '.aws');
    await mkdir(files);
    const config = `[default]\nendpoint_url = ${poison.url}\nregion = eu-poison-1\nrole_arn = ${ROLE}\ncredential_process = touch ${home}/ran\nuse_fips_endpoint = true\nmax_attempts = 9\n`;
    await writeFile(path.join(files, 'config'), config);
    await writeFile(
      path.join(files, 'credentials'),
      '[default]\naws_access_key_id = AKIAPOISON\naws_secret_access_key = p\n',
    );
    const asking = `
      import { createTokenService } from './adapters/sts/assume-role.ts';
      import fs from 'node:fs';
      import { syncBuiltinESMExports } from 'node:module';
      const read = [];
      for (const [owner, name] of [[fs, 'readFile'], [fs, 'readFileSync'], [fs.promises, 'readFile']]) {
        const original = owner[name];
        owner[name] = (file, ...rest) => { read.push(String(file)); return original.call(owner, file, ...rest); };
      }
      syncBuiltinESMExports();
      const service = createTokenService({ identity: { issue: async () => 'token' }, endpoint: ${JSON.stringify(cloud.url)} });
      const { accessKeyId } = await service.assumeRole({ mode: 'OIDC', account: 'a', roleArn: '${ROLE}' });
      service.close();
      console.log(JSON.stringify({ accessKeyId, read: read.filter((file) => file.includes('.aws')) }));`;
    const env = {
      ...{ PATH: process.env['PATH'], HOME: home, AWS_PROFILE: 'default', AWS_REGION: 'eu-poison-1' },
      ...{ AWS_ACCESS_KEY_ID: 'AKIAPOISON', AWS_SECRET_ACCESS_KEY: 'poison', AWS_SESSION_TOKEN: 'poison' },
      ...{ AWS_ENDPOINT_URL: poison.url, AWS_ENDPOINT_URL_STS: poison.url, AWS_USE_FIPS_ENDPOINT: 'true' },
      ...{ AWS_EC2_METADATA_SERVICE_ENDPOINT: poison.url, AWS_CONTAINER_CREDENTIALS_FULL_URI: poison.url },
      ...{ AWS_WEB_IDENTITY_TOKEN_FILE: path.join(files, 'config'), AWS_ROLE_ARN: ROLE, AWS_SDK_UA_APP_ID: 'poison' },
      ...{ AWS_CONFIG_FILE: path.join(files, 'config'), AWS_MAX_ATTEMPTS: '9', HTTP_PROXY: poison.url },
    };
    const words = ['--input-type=module', '--eval', asking];
    const { stdout, stderr } = await promisify(execFile)(process.execPath, words, { env, cwd: process.cwd() });
    assert.deepEqual(JSON.parse(stdout), { accessKeyId: 'ASIAONE', read: [] });
    assert.equal(stderr.replaceAll(/.*ExperimentalWarning.*\n.*\n/g, ''), '');
    assert.deepEqual([poison.asked.length, cloud.asked.length], [0, 1]);
    assert.doesNotMatch(JSON.stringify(cloud.asked[0]?.headers), /poison/i);
  });
});
