/** Clients that take the service for their proxy: requests in absolute form (RFC 9112, section 3.2.2), and CONNECT. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { exchange, parseAnswer, type RawAnswer } from '../support/raw-http.ts';
import {
  type Account,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  startStrata,
  tryGit,
} from '../support/strata.ts';

const OWN = 'strata.example';
const API = 'api.strata.example:8443';

describe('A request in absolute form', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let port: number;
  let ada: Account;
  let work: string;

  beforeAll(async () => {
    const env = { STRATA_WEB_URL: `http://${OWN}`, STRATA_BASE_URL: `https://${API}` };
    strata = await startStrata(ending, { env });
    port = Number(new URL(strata.url).port);
    ada = await createAccount(strata, 'ada');
    work = await newWorkTree(ending);
    await git(work, ['push', '--quiet', await createRepository(strata, ada, 'feat'), 'main']);
  });

  const send = async (target: string, headers: readonly string[] = [], method = 'GET'): Promise<RawAnswer> => {
    const lines = headers.some((line) => line.startsWith('Host:')) ? headers : ['Host: localhost', ...headers];
    return parseAnswer(await exchange(port, `${[`${method} ${target} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n`));
  };
  const closing = 'Connection: close';
  const authorization = (): string => `Authorization: Basic ${Buffer.from(`ada:${ada.token}`).toString('base64')}`;

  test('is served where its authority is that of the website or of the API', async () => {
    const refs = '/r/ada/feat.git/info/refs?service=git-upload-pack';
    for (const start of [
      ...[`http://${OWN}`, `HTTP://STRATA.Example`, `http://${OWN}:80`, `http://${OWN}:`, `https://${OWN}:443`],
      ...[`http://${API}`, `https://${API}`],
    ]) {
      const answer = await send(start + refs, [closing, authorization(), 'Host: elsewhere.example']);
      assert.equal(answer.status, 200, start);
      assert.match(answer.body, /service=git-upload-pack/);
      assert.equal((await send(start + refs, [closing])).status, 401, start);
      assert.equal((await send(`${start}/v1/account/usage`, [closing])).status, 401, start);
      assert.equal((await send(`${start}/healthz`, [closing])).status, 200, start);
      assert.match((await send(`${start}/sign-in`, [closing])).body, /<title>Sign in/, start);
      assert.match((await send(start, [closing])).headers['content-type'] ?? '', /text\/html/, start);
      assert.equal((await send(`${start}?x=y`, [closing])).status, 200, start);
    }
  });

  test('is 421 for any other authority, which gets nothing forwarded', async () => {
    for (const target of [
      ...['http://elsewhere.example/', 'http://127.0.0.1:1/', `http://localhost:${port}/healthz`, `http://${OWN}./`],
      ...[`http://${OWN}:8080/`, `http://x@${OWN}/`, `http://${OWN}@elsewhere.example/`, `http://${OWN}%2F/`],
      ...[`http://${OWN}:443/`, `ftp://${OWN}/`, 'http:///sign-in', `http://${OWN}\\@elsewhere.example/`],
      `http://${'a'.repeat(20_000)}/`,
    ]) {
      const answer = await send(target, [closing, `Host: ${OWN}`, authorization()]);
      assert.ok(answer.status === 421 || answer.status === 400, `${target}: ${answer.status}`);
      assert.doesNotMatch(answer.body, /<title>|status/, target);
    }
    const { status, body } = await send('http://elsewhere.example/', [closing]);
    assert.equal(status, 421);
    assert.match(body, /\{"detail":"This service answers for its own addresses only"\}/);
  });

  test('is judged by its authority where the origin of a form counts, and without it by Host as before', async () => {
    const form = (origin: string, host: string) => [closing, `Origin: ${origin}`, `Host: ${host}`, 'Content-Length: 0'];
    const isCrossSite = async (target: string, headers: readonly string[]): Promise<boolean> =>
      /another site/.test((await send(target, headers, 'POST')).body);
    const evil = 'http://evil.example';
    assert.equal(await isCrossSite(`http://${API}/sign-in`, form(evil, 'evil.example')), true);
    assert.equal(await isCrossSite(`http://${API}/sign-in`, form(`http://${API}`, 'evil.example')), false);
    assert.equal(await isCrossSite('/sign-in', form(`http://${API}`, 'evil.example')), true);
    assert.equal(await isCrossSite('/sign-in', form(evil, 'evil.example')), false);
    assert.match((await send('/sign-in', [closing, 'Host: evil.example'])).body, /<title>Sign in/);
  });

  test('brings a clone and a push through http_proxy', async () => {
    const url = `http://ada:${ada.token}@${OWN}/ada/feat`;
    const proxied = ['-c', `http.proxy=http://127.0.0.1:${port}`, '-c', 'http.followRedirects=false'];
    assert.match(await git(work, [...proxied, 'ls-remote', url]), /refs\/heads\/main/);
    await git(work, [...proxied, 'push', '--quiet', url, 'main:by-proxy']);
    const refused = await tryGit(work, [...proxied, 'ls-remote', 'http://elsewhere.example/ada/feat']);
    assert.match(refused.stderr, /The requested URL returned error: 421/);
    const tunnel = await tryGit(work, [...proxied, 'ls-remote', `https://${OWN}/ada/feat`]);
    assert.match(tunnel.stderr, /response 405/);
  });

  test('to make a tunnel is 405, and ends the connection', async () => {
    for (const target of [`${OWN}:443`, '127.0.0.1:22', '/r/ada/feat.git/info/refs', `http://${OWN}/`]) {
      const answer = await send(target, [], 'CONNECT');
      assert.equal(answer.status, 405, target);
      assert.deepEqual([answer.headers['connection'], answer.headers['allow']], ['close', 'GET, HEAD, POST']);
      assert.match(answer.headers['x-request-id'] ?? '', /^[0-9a-f-]{36}$/);
    }
    // Behind a request that is not answered yet there is no answer, and nothing breaks.
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    const refs = `GET /r/ada/feat.git/info/refs HTTP/1.1\r\nHost: x\r\n${authorization()}\r\n\r\n`;
    socket.write(`${refs}${refs}CONNECT ${OWN}:443 HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n`);
    const answers = await text(socket).catch(() => '');
    assert.doesNotMatch(answers, /200 OK|<title>/);
    assert.equal((await send('/healthz', [closing])).status, 200);
  });
});
