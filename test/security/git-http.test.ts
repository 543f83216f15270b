/** Hostile HTTP requests and URLs at the Git endpoints, sent byte by byte over a socket. */
import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import {
  basicAuthorization,
  commandList,
  commit,
  DELIMITER,
  FLUSH,
  pack,
  packet,
  postService,
  reportOf,
  type WireTarget,
  wirePush,
  wireRefs,
} from '../support/git-wire.ts';
import { eventually } from '../support/processes.ts';
import { exchange, parseAnswer, rawRequest } from '../support/raw-http.ts';
import { api, createAccount, createToken } from '../support/strata.ts';
import { startWatchedServer, type WatchedServer } from '../support/watched-push.ts';

const FIRST = commit('first');
const MAIN = 'refs/heads/main';

describe('At the Git endpoints', () => {
  const ending = suiteEnding();
  let server: WatchedServer;
  let target: WireTarget;
  let authorization: string;

  beforeAll(async () => {
    server = await startWatchedServer(ending);
    target = await server.newTarget();
    authorization = `Authorization: ${basicAuthorization(server.ada)}`;
    const pushed = await wirePush(target, [{ ref: MAIN, after: FIRST.id }], [FIRST]);
    assert.equal(pushed.refs.get(MAIN), 'ok');
  });

  const get = (path: string, headers: readonly string[] = [authorization]) =>
    rawRequest(server.port, { target: path, headers });

  test('the files of the dumb protocol do not exist, with credentials or without', async () => {
    for (const file of [
      ...['HEAD', 'config', 'description', 'packed-refs', 'info/exclude', 'info/refs/', 'hooks/pre-receive'],
      ...['objects/info/alternates', 'objects/info/http-alternates', 'objects/info/packs', 'shallow'],
      `objects/${FIRST.id.slice(0, 2)}/${FIRST.id.slice(2)}`,
      ...['logs/HEAD', 'refs/heads/main'],
    ]) {
      const answer = await get(`/r/ada/${target.name}.git/${file}`);
      assert.equal(answer.status, 404, file);
      assert.equal(answer.body, `Nothing is served at ${file} below a repository\n`);
      assert.equal((await get(`/r/ada/${target.name}.git/${file}`, [])).status, 401, file);
    }
    const dumb = await get(`/r/ada/${target.name}.git/info/refs`);
    assert.equal(dumb.status, 403);
    assert.doesNotMatch(dumb.body, new RegExp(FIRST.id));
  });

  test('a service that is not offered is named, whether there is a repository or not, after the credential', async () => {
    for (const service of ['git-upload-archive', 'git-', 'git-shell', '--help', `git-${'x'.repeat(2_000)}`]) {
      for (const place of [`/r/ada/${target.name}.git`, '/r/ada/nothing.git', `/ada/${target.name}`, '/eve/nothing']) {
        const shown = service.slice(0, 100);
        const text = `The service ${shown} is not offered here: git-upload-pack and git-receive-pack are\n`;
        const refs = await get(`${place}/info/refs?service=${service}`);
        assert.deepEqual([refs.status, refs.body], [403, text]);
        assert.equal((await get(`${place}/info/refs?service=${service}`, [])).status, 401);
        if (!service.startsWith('git-u')) continue;
        const posted = await rawRequest(server.port, {
          ...{ method: 'POST', target: `${place}/${service}`, headers: [authorization, 'Content-Length: 0'] },
        });
        assert.deepEqual([posted.status, posted.body], [403, text]);
      }
    }
    const escaped = await get(`/r/ada/${target.name}.git/info/refs?service=%1b[31m%0d%0aX-Y:%20z`);
    assert.equal(escaped.status, 403);
    assert.doesNotMatch(escaped.body, /\x1b|\r/);
    assert.equal(escaped.headers['x-y'], undefined);
  });

  test('a path with dots, encoded or extra characters names no repository', async () => {
    const { name } = target;
    const query = 'info/refs?service=git-upload-pack';
    for (const path of [
      `/r/ada/../ada/${name}.git/${query}`,
      `/r/ada/x/../${name}.git/${query}`,
      `/r/ada/%2e%2e/ada/${name}.git/${query}`,
      `/r/ada%2f${name}.git/${query}`,
      `/r/ada/${name}.git%2finfo/refs?service=git-upload-pack`,
      `/r/ada/${name}%00.git/${query}`,
      `/r/ada/${name}.git%00/${query}`,
      `/r/ada/${name.replace('o', '%256f')}.git/${query}`,
      `/r/ada/${name}%252egit/${query}`,
      `/r/ada/${name}%2f.git/${query}`,
      `/r//ada/${name}.git/${query}`,
      `/r/ada//${name}.git/${query}`,
      `/r/ada/${name}.git//${query}`,
      `/r/ada/./${name}.git/${query}`,
      `/r/ada/${name}.git.git/${query}`,
      `/r/ada/${name}.git;x/${query}`,
      `/r/ada/${name}.git\\${query}`,
      `/r/ada/${name.replace('o', 'o\u0301')}.git/${query}`,
      ...['.git', '..git', 'CON.git', 'nul', 'a.lock', '-x', '--upload-pack=id'].map((odd) => `/r/ada/${odd}/${query}`),
      `/r/${'a'.repeat(4_000)}/${name}.git/${query}`,
      `/r/ada/${name}.git/info/refs?service=git-upload-pack%00`,
      `/r/ada/${name}.git/info/refs?service=git-upload-archive`,
      `/r/ada/${name}.git/info/refs?service=--help`,
    ]) {
      const answer = await get(Buffer.from(path, 'utf8').toString('latin1'));
      assert.ok([400, 403, 404].includes(answer.status), `${path}: ${answer.status}`);
      assert.doesNotMatch(answer.body, /service=|version 2/, path);
      const without = await get(Buffer.from(path, 'utf8').toString('latin1'), []);
      assert.ok(without.status === 401 || without.status === 400, `${path} without credentials: ${without.status}`);
    }
    for (const absolute of [`http://localhost/r/ada/${name}.git/${query}`, `//r/ada/${name}.git/${query}`, '*']) {
      const answer = await get(absolute);
      assert.ok(answer.status >= 400 && answer.status < 500, `${absolute}: ${answer.status}`);
      assert.doesNotMatch(answer.body, /service=|version 2/, absolute);
    }
  });

  test('an escaped character counts as what it stands for, in the address and in what it costs', async () => {
    const { name } = target;
    const escaped = [...name].map((character) => `%${character.charCodeAt(0).toString(16)}`).join('');
    for (const place of [`/r/ada/${escaped}%2Egit`, `/%72/%61da/${name}.git`, `/ada/${escaped}`]) {
      const answer = await get(`${place}/inf%6f/refs?service=git-upload-pack`);
      assert.equal(answer.status, 200, place);
      assert.match(answer.body, /service=git-upload-pack/);
      assert.equal((await get(`${place}/info/refs?service=git-upload-pack`, [])).status, 401);
    }
    const now = new Date().toISOString().replaceAll(':', '%3A');
    assert.equal((await get(`/r/ada/${name}%40${now}.git/${'info/refs?service=git-upload-pack'}`)).status, 200);
    const deletion = commandList([{ ref: 'refs/heads/none', before: FIRST.id }]).toString('latin1');
    const type = 'Content-Type: application/x-git-receive-pack-request';
    await rawRequest(server.port, {
      ...{ method: 'POST', target: `/r/ada/${name}.git/git-receive%2Dpack`, body: deletion },
      headers: [authorization, type, `Content-Length: ${deletion.length}`],
    });
    // The line is written after the answer.
    await eventually('the request counts as a push', () => {
      const lines = server.strata.log().split('\n');
      return lines.findLast((line) => line.includes('"git"'))?.includes('"operation":"push"') === true;
    });
  });

  test('only the methods that git uses are allowed', async () => {
    const paths = { 'info/refs?service=git-upload-pack': 'GET', 'git-upload-pack': 'POST', 'git-receive-pack': 'POST' };
    for (const [path, allowed] of Object.entries(paths)) {
      for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', allowed === 'GET' ? 'POST' : 'GET']) {
        const headers = [authorization, 'Content-Length: 0'];
        const answer = await rawRequest(server.port, { method, target: `/r/ada/${target.name}.git/${path}`, headers });
        assert.equal(answer.status, 405, `${method} ${path}`);
        assert.equal(answer.headers['allow'], allowed);
      }
    }
  });

  test('a request with two Authorization or Host headers is refused', async () => {
    const eve = await createAccount(server.strata, 'eve');
    const path = `/r/ada/${target.name}.git/info/refs?service=git-upload-pack`;
    const other = `Authorization: ${basicAuthorization(eve)}`;
    for (const headers of [
      [authorization, other],
      [other, authorization],
      [authorization, authorization.replace('Auth', 'AUTH')],
      [authorization, 'Host: evil.example'],
      [authorization, 'host: localhost'],
    ]) {
      const answer = await get(path, headers);
      assert.equal(answer.status, 400, headers.join());
      assert.doesNotMatch(answer.body, /service=/);
    }
  });

  test('a body of ambiguous length smuggles no second request', async () => {
    const smuggled = [
      `POST /r/ada/${target.name}.git/git-receive-pack HTTP/1.1`,
      ...['Host: localhost', authorization, 'Content-Type: application/x-git-receive-pack-request'],
    ];
    const deletion = commandList([{ ref: MAIN, before: FIRST.id }]).toString('latin1');
    const second = `${smuggled.join('\r\n')}\r\nContent-Length: ${deletion.length}\r\n\r\n${deletion}`;
    for (const [headers, body] of [
      [['Content-Length: 4', 'Transfer-Encoding: chunked'], `0\r\n\r\n${second}`],
      [['Content-Length: 4', 'Content-Length: 5'], `0000${second}`],
      [['Content-Length: 4, 4'], `0000${second}`],
      [['Content-Length: +4'], `0000${second}`],
      [['Content-Length: 0x4'], `0000${second}`],
      [['Transfer-Encoding: gzip, chunked'], `0\r\n\r\n${second}`],
      [['Transfer-Encoding: gzip', 'Transfer-Encoding: chunked'], `0\r\n\r\n${second}`],
      [['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], `0\r\n\r\n${second}`],
      [['Transfer-Encoding: chunked, identity'], `0\r\n\r\n${second}`],
      [['Transfer-Encoding: xchunked'], `0\r\n\r\n${second}`],
      [['Transfer-Encoding: identity'], `0\r\n\r\n${second}`],
      [['Transfer-Encoding : chunked'], `0\r\n\r\n${second}`],
      [['Transfer-Encoding: chunked'], `+4\r\n0000\r\n0\r\n\r\n${second}`],
    ] as const) {
      const head = [
        `POST /r/ada/${target.name}.git/git-upload-pack HTTP/1.1`,
        ...['Host: localhost', authorization, 'Content-Type: application/x-git-upload-pack-request', ...headers],
      ];
      const answered = await exchange(server.port, `${head.join('\r\n')}\r\n\r\n${body}`);
      assert.equal(parseAnswer(answered).status, 400, headers.join());
      assert.equal(answered.match(/HTTP\/1\.1 /g)?.length, 1, `${headers.join()}: ${answered}`);
      assert.equal((await wireRefs(target)).get(MAIN), FIRST.id, headers.join());
    }
  });

  test('a body of another media type or content coding is refused', async () => {
    const post = (headers: Readonly<Record<string, string>>, body = Buffer.from('0000')) =>
      postService(target, 'git-receive-pack', body, { headers });
    for (const type of [
      ...['text/plain', 'application/x-git-upload-pack-request', 'application/x-git-receive-pack-request, x'],
      ...['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'],
    ]) {
      assert.equal((await post({ 'Content-Type': type })).status, 400, type);
    }
    for (const coding of ['deflate', 'br', 'zstd', 'gzip, gzip', 'compress', 'gzip;q=1']) {
      assert.equal((await post({ 'Content-Encoding': coding })).status, 400, coding);
    }
    const broken = [
      Buffer.from('no gzip at all'),
      gzipSync(Buffer.alloc(4_000, '0000')).subarray(0, 20),
      Buffer.alloc(0),
    ];
    for (const body of broken) {
      assert.equal((await post({ 'Content-Encoding': 'gzip' }, Buffer.from(body))).status, 400);
    }
  });

  test('a body that inflates beyond its limit is refused', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, '0'));
    const compressed = { 'Content-Encoding': 'gzip' };
    const fetched = await postService(target, 'git-upload-pack', bomb, { headers: compressed });
    assert.equal(fetched.status, 413);
    const filler = packet('0'.repeat(60_000));
    const wants = Buffer.concat([packet('command=fetch\n'), DELIMITER, ...Array.from({ length: 700 }, () => filler)]);
    const headers = { ...compressed, 'Git-Protocol': 'version=2' };
    assert.equal((await postService(target, 'git-upload-pack', gzipSync(wants), { headers })).status, 413);
  });

  test('headers and bodies are accepted in every form that git sends', async () => {
    const next = commit('second', undefined, [FIRST.id]);
    const body = Buffer.concat([commandList([{ ref: 'refs/heads/forms', after: next.id }]), pack([next])]);
    const headers = { 'Content-Encoding': 'gzip', Expect: '100-continue', 'Git-Protocol': 'version=2' };
    // fetch does not allow the header Expect.
    const { Expect: expect, ...plain } = headers;
    const report = reportOf(await postService(target, 'git-receive-pack', gzipSync(body), { headers: plain }));
    assert.equal(report.refs.get('refs/heads/forms'), 'ok');
    const head = [
      `POST /r/ada/${target.name}.git/git-receive-pack HTTP/1.1`,
      ...['Host: localhost', 'Connection: close', authorization, `Expect: ${expect}`],
      ...['Content-Type: application/x-git-receive-pack-request', 'Transfer-Encoding: chunked'],
    ];
    const again = commandList([{ ref: 'refs/heads/forms', before: next.id }]).toString('latin1');
    const chunks = [...again].map((byte) => `1\r\n${byte}\r\n`).join('');
    const answered = await exchange(server.port, `${head.join('\r\n')}\r\n\r\n${chunks}0\r\n\r\n`);
    assert.match(answered, /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK/);
    assert.match(answered, /ok refs\/heads\/forms/);
    assert.equal((await wireRefs(target)).has('refs/heads/forms'), false);
  });

  test('the probe of four bytes is answered, and without valid credentials with 401', async () => {
    for (const service of ['git-receive-pack', 'git-upload-pack'] as const) {
      const probe = await postService(target, service, FLUSH);
      assert.deepEqual([probe.status, probe.bytes.length], [200, 0]);
      const unknown = { ...target, account: { ...target.account, token: 'x' } };
      assert.equal((await postService(unknown, service, FLUSH)).status, 401);
    }
  });

  test('what follows a command list without commands is refused in words, not ignored', async () => {
    const answer = await postService(target, 'git-receive-pack', Buffer.from('0000PACKignored'));
    assert.equal(answer.status, 400);
    assert.match(answer.bytes.toString(), /^Not a push: bytes follow a command list that holds no command\n$/);
  });

  test('only a valid token is accepted as credentials, wherever clients put one', async () => {
    const path = `/r/ada/${target.name}.git/info/refs?service=git-upload-pack`;
    const { token } = server.ada;
    const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;
    const almost = token.slice(0, -1);
    for (const value of [
      ...['Bearer', `Bearer ${token}x`, `Bearer ${almost}`, `Bearer ada:${token}`, token, basic(token)],
      ...[basic(`ada:${token} `), basic(`ada:${token}\n`), basic(`ada: ${token}`), basic(`ada:${almost}`)],
      ...[basic(`${almost}:`), basic(` ${token}:`), basic(`${token}:${almost}`), basic(`${almost}:x-oauth-basic`)],
      ...['ada:correct horse battery', 'ada@example.org:correct horse battery', 'ada:', ':'].map(basic),
      ...['Basic', 'Basic !!!', `Basic ${'A'.repeat(20_000)}`, `Digest ${token}`, `${basic(`ada:${token}`)}, x`],
    ]) {
      const answer = await get(path, [`Authorization: ${value}`]);
      assert.equal(answer.status, 401, value.slice(0, 60));
      assert.equal(answer.headers['www-authenticate'], 'Basic realm="Strata"');
    }
    // Any username is accepted with a valid token, as the documentation tells git users.
    for (const value of [
      ...['ada', 'x-access-token', '', 'a'].map((name) => basic(`${name}:${token}`)),
      ...[basic(`${token}:`), basic(`${token}:x-oauth-basic`), `Bearer ${token}`],
    ]) {
      assert.equal((await get(path, [`Authorization: ${value}`])).status, 200);
    }
  });

  test('each operation requires its own grant, and a token sees only the repositories of its scope', async () => {
    const grants = async (list: string, more: readonly string[] = []) =>
      createToken(server.strata, 'ada', ['--grants', list, ...more]);
    const statusOf = async (token: string, service: string, name = target.name): Promise<number> => {
      const headers = [`Authorization: ${basicAuthorization({ username: 'ada', token })}`];
      return (await get(`/r/ada/${name}.git/info/refs?service=${service}`, headers)).status;
    };
    const reader = await grants('GIT_HTTP_READ');
    const writer = await grants('GIT_HTTP_WRITE');
    const neither = await grants('API_REPOS_READ');
    const statuses = [];
    for (const { token } of [reader, writer, neither]) {
      statuses.push([await statusOf(token, 'git-upload-pack'), await statusOf(token, 'git-receive-pack')]);
    }
    // The grant to write includes reading.
    assert.deepEqual(statuses, [
      [200, 403],
      [200, 200],
      [403, 403],
    ]);
    // Without the grant, a missing repository still answers 404.
    assert.equal(await statusOf(neither.token, 'git-upload-pack', 'missing'), 404);
    const found = await api(server.strata, server.ada.token, 'GET', `/v1/repos/ada/${target.name}`);
    const { id } = found.body as { id: string };
    const selected = await grants('ALL', ['--scope', 'SELECTED_REPO', '--repository-ids', id]);
    const hidden = await server.newTarget();
    assert.equal(await statusOf(selected.token, 'git-receive-pack'), 200);
    assert.equal(await statusOf(selected.token, 'git-upload-pack', hidden.name), 404);
  });
});
