/** Go's client, which finds a module's repository by a page (https://go.dev/ref/mod#vcs-find). */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { needs } from '../support/optional-suites.ts';
import { exchange, parseAnswer, rawRequest } from '../support/raw-http.ts';
import {
  type Account,
  commitFile,
  createAccount,
  createRepository,
  git,
  type Strata,
  startStrata,
} from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';

const HOST = 'strata.example';
const GO_SPAN_MS = 120_000;

describe('A module of Go', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;

  beforeAll(async () => {
    const env = { STRATA_WEB_URL: `http://${HOST}`, STRATA_BASE_URL: 'https://api.strata.example:8443' };
    strata = await startStrata(ending, { env });
    ada = await createAccount(strata, 'ada');
  });

  const asked = async (target: string, method = 'GET') => {
    const { port } = new URL(strata.url);
    const { status, body, headers } = await rawRequest(Number(port), { method, target: `http://${HOST}${target}` });
    const [, content = null] = /<head>.*<meta name="go-import" content="([^"]*)">.*<\/head>/s.exec(body) ?? [];
    return { status, content, headers };
  };

  test('is told where its repository lies, to everybody and whatever exists, by the first two segments', async () => {
    await createRepository(strata, ada, 'mod');
    for (const [target, place] of [
      ['/ada/mod?go-get=1', 'ada/mod'],
      ['/ada/mod/?go-get=1', 'ada/mod'],
      ['/ada/mod/deep/package?go-get=1', 'ada/mod'],
      ['/ada/mod/tree/main?x=y&go-get=1', 'ada/mod'],
      ['/Ada/Mod/v2?go-get=1', 'Ada/Mod'],
      ['/nobody/no.thing_at-all?go-get=1', 'nobody/no.thing_at-all'],
    ] as const) {
      const { status, content, headers } = await asked(target);
      assert.deepEqual([status, content], [200, `${HOST}/${place} git http://${HOST}/r/${place}.git`], target);
      assert.match(headers['content-type'] ?? '', /text\/html/);
      assert.match(headers['content-security-policy'] ?? '', /default-src 'none'/);
      assert.equal((await asked(target, 'HEAD')).status, 200);
    }
    const { content } = await asked('/ada/mod.git/sub?go-get=1');
    assert.equal(content, `${HOST}/ada/mod.git git http://${HOST}/r/ada/mod.git`);
  });

  test('is told the authority that was asked if it is the service’s own, and else that of the website', async () => {
    const { port } = new URL(strata.url);
    const target = '/ada/mod?go-get=1';
    for (const [line, named] of [
      [`Host: ${HOST}`, HOST],
      ['Host: API.strata.example:8443', 'api.strata.example:8443'],
      ['Host: evil.example', HOST],
      ['Host: "><script>', HOST],
      ['X-Forwarded-Host: evil.example', HOST],
    ] as const) {
      const lines = line.startsWith('Host:') ? [line] : ['Host: localhost', line];
      const head = [`GET ${target} HTTP/1.1`, 'Connection: close', ...lines].join('\r\n');
      const { body } = parseAnswer(await exchange(Number(port), `${head}\r\n\r\n`));
      assert.match(body, new RegExp(`content="${named}/ada/mod git http://${named}/r/ada/mod\\.git"`), line);
      assert.doesNotMatch(body, /evil|script/);
    }
  });

  test('is named by nothing that no repository can be called', async () => {
    for (const target of [
      ...[
        '/ada?go-get=1',
        '/?go-get=1',
        '/docs/git?go-get=1',
        '/ada/..?go-get=1',
        '/ada/x.lock?go-get=1',
        '/a_b/mod?go-get=1',
      ],
      ...['/ada/%6Dod?go-get=1', '/ada/mod?go-get=2', '/ada/mod?go-get', '/ada/mod?x=go-get=1', '//ada/mod?go-get=1'],
    ]) {
      assert.equal((await asked(target)).content, null, target);
    }
    assert.equal((await asked('/ada/mod?go-get=1', 'POST')).content, null);
  });

  describe('in the go command', needs('go'), () => {
    test('is found and fetched, private and nested, with the credentials of git', {
      timeout: GO_SPAN_MS,
    }, async (context) => {
      const work = await tempDir(context);
      await git(work, ['init', '--quiet', '--initial-branch=main']);
      await commitFile(work, 'go.mod', `module ${HOST}/ada/lib\n\ngo 1.21\n`);
      await commitFile(work, 'deep/package/deep.go', 'package deep\n');
      await commitFile(work, 'nested/go.mod', `module ${HOST}/ada/lib/nested\n\ngo 1.21\n`);
      await commitFile(work, 'nested/nested.go', 'package nested\n');
      await git(work, ['tag', 'v0.1.0']);
      await git(work, ['tag', 'nested/v0.2.0']);
      await git(work, ['push', '--quiet', await createRepository(strata, ada, 'lib'), 'main', '--tags']);

      const consumer = await tempDir(context);
      await writeFile(path.join(consumer, 'go.mod'), 'module consumer\n\ngo 1.21\n');
      const go = (args: readonly string[], token: string | null) =>
        runGo(args, consumer, goEnvironment(strata.url, consumer, token));
      const got = await go(['get', `${HOST}/ada/lib/deep/package@v0.1.0`, `${HOST}/ada/lib/nested@v0.2.0`], ada.token);
      assert.equal(got.failed, false, got.stderr);
      const listed = await go(['list', '-m', 'all'], ada.token);
      assert.deepEqual(listed.stdout.trim().split('\n'), [
        'consumer',
        `${HOST}/ada/lib v0.1.0`,
        `${HOST}/ada/lib/nested v0.2.0`,
      ]);
      const refused = await go(['mod', 'download', `${HOST}/ada/lib@main`], null);
      assert.equal(refused.failed, true);
      assert.match(refused.stderr, /could not read Username|terminal prompts disabled/);
    });
  });
});

function runGo(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv) {
  return new Promise<{ readonly failed: boolean; readonly stdout: string; readonly stderr: string }>((resolve) => {
    execFile('go', args, { cwd, env }, (error, stdout, stderr) => resolve({ failed: error !== null, stdout, stderr }));
  });
}

/** The service itself is the proxy, since import paths hold no port. Everything lies below one folder. */
function goEnvironment(url: string, folder: string, token: string | null): NodeJS.ProcessEnv {
  const helper = '!f() { echo username=ada; echo "password=$STRATA_TEST_TOKEN"; }; f';
  const keeps = token === null ? {} : { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'credential.helper' };
  return {
    ...process.env,
    ...{ http_proxy: url, https_proxy: url, no_proxy: '', NO_PROXY: '' },
    ...{ GOINSECURE: HOST, GONOSUMDB: HOST, GOPROXY: 'direct', GOTOOLCHAIN: 'local', GOFLAGS: '-mod=mod -modcacherw' },
    ...{ GOPATH: path.join(folder, 'path'), GOCACHE: path.join(folder, `cache-${token === null}`), GOENV: 'off' },
    ...{ GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', HOME: folder },
    ...{ ...keeps, GIT_CONFIG_VALUE_0: helper, STRATA_TEST_TOKEN: token ?? '' },
  };
}
