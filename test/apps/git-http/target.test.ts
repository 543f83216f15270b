/** The parsing of targets, and the routes that they match. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { GIT_ROUTES, isForGit, LFS_ROUTES, PAST_GIT_ROUTES, routesOf } from '../../../apps/git-http/routes.ts';
import { pageOfCloneAddress, parseGitTarget } from '../../../apps/git-http/target.ts';

describe('A target', () => {
  test('names an account, a repository with or without .git, and an endpoint', () => {
    const named = {
      username: 'ada',
      name: 'engine',
      moment: null,
      path: 'info/refs',
      query: 'service=git-upload-pack',
    };
    for (const repository of ['engine.git', 'engine', 'engine.GIT']) {
      assert.deepEqual(parseGitTarget(`/r/ada/${repository}/info/refs?service=git-upload-pack`), named, repository);
    }
    const rpc = parseGitTarget('/r/ada/a.b-c_d.git/git-upload-pack');
    assert.deepEqual(rpc, { username: 'ada', name: 'a.b-c_d', moment: null, path: 'git-upload-pack', query: '' });
    assert.equal(parseGitTarget('/r/ada/engine.git/info/lfs/objects/batch')?.path, 'info/lfs/objects/batch');
  });

  test('may name a moment, of which other escapes are kept as sent', () => {
    for (const moment of [
      '2026-11-03T14:02:00Z',
      '2026-11-03T14:02:00.123+02:00',
      '2026-11-03T14%3A02%3A00%2B02%3A00',
      '20261103T140200Z',
      '0190f3e2-7c1a-7b4e-9a35-000000000001',
    ]) {
      for (const suffix of ['.git', '']) {
        const target = parseGitTarget(`/r/ada/engine@${moment}${suffix}/info/refs?service=git-upload-pack`);
        const kept = moment.replaceAll('%3A', ':');
        assert.deepEqual([target?.name, target?.moment, target?.path], ['engine', kept, 'info/refs'], moment);
      }
    }
  });

  test('may be below the address of the page of the repository', () => {
    const there = parseGitTarget('/r/ada/engine.git/info/refs?service=git-upload-pack');
    for (const place of ['/ada/engine', '/ada/engine.git']) {
      assert.deepEqual(parseGitTarget(`${place}/info/refs?service=git-upload-pack`), there);
    }
    assert.equal(parseGitTarget('/ada/engine@20261103T140200Z/info/refs')?.moment, '20261103T140200Z');
  });

  test('with escapes of unreserved characters, of @ and of : means what they stand for', () => {
    for (const [escaped, plain] of [
      ['/r/ada/hel%6Co.git/info/refs', '/r/ada/hello.git/info/refs'],
      ['/r/ada/hello%2Egit/info/refs', '/r/ada/hello.git/info/refs'],
      ['/r/%61da/hello%2egi%74/git%2Dupload%2dpack', '/r/ada/hello.git/git-upload-pack'],
      ['/%72/ada/a%5Fb%2E/inf%6f/%72efs?service=git%2Dupload-pack', '/r/ada/a_b./info/refs?service=git%2Dupload-pack'],
      ['/ada/hel%6Co/info/refs', '/ada/hello/info/refs'],
      [
        '/r/ada/hello%402026-11-03T14%3A02%3a00%2B02%3A00.git/info/refs',
        '/r/ada/hello@2026-11-03T14:02:00%2B02:00.git/info/refs',
      ],
    ] as const) {
      const meant = parseGitTarget(plain);
      assert.ok(meant !== null);
      assert.deepEqual(parseGitTarget(escaped), meant, escaped);
      assert.equal(isForGit(escaped), true, escaped);
    }
    assert.equal(pageOfCloneAddress('/r/ada/hel%6Co%2Egit'), '/ada/hello');
    assert.equal(pageOfCloneAddress('/r/ada/hello%402026-11-03T14%3A02%3A00Z.git'), '/ada/hello?at=20261103T140200Z');
  });

  test('with any other escape, a double one or a broken one names nothing', () => {
    for (const name of [
      'a%2Fb',
      'a%00',
      '%2500',
      'hel%256Co',
      'a%252Fb',
      'a%',
      'a%6',
      'a%6g',
      '%C3%A9',
      'a%20',
      'a%5C',
      'a%3F',
    ]) {
      for (const above of ['/r/ada', '/ada']) {
        assert.equal(parseGitTarget(`${above}/${name}.git/info/refs`), null, name);
        assert.equal(pageOfCloneAddress(`${above}/${name}.git`), null, name);
      }
    }
    assert.equal(parseGitTarget('/r%2Fada/hello.git/info/refs'), null);
    assert.equal(isForGit('/r/ada/hello.git%2Finfo%2Frefs'), true, 'git answers that there is no such repository');
    assert.equal(parseGitTarget('/r/ada/hello.git%2Finfo%2Frefs'), null);
    assert.equal(parseGitTarget('/r/ada/hello.git/info%2Frefs')?.path, 'info%2Frefs');
  });

  test('in any other form of a path names nothing', () => {
    for (const target of [
      ...['', '/', '/r', '/r/', '/r/ada', '/r/ada/engine.git', '/r/ada/engine.git/', '/r//engine.git/info/refs'],
      ...['/r/ada.git/info/refs', '//ada/engine.git/info/refs', '/r/r//engine.git/info/refs'],
      ...['/r/ada/engine@.git/info/refs', '/r/ada/@now.git/info/refs', '/r/ada/engine@a@b.git/info/refs'],
      ...['/r/a_b/engine.git/info/refs', 'http://x/r/ada/engine.git/info/refs'],
      `/r/ada/engine@${'0'.repeat(65)}.git/info/refs`,
      `/r/ada/${'a'.repeat(129)}.git/info/refs`,
      `/r/${'a'.repeat(65)}/engine.git/info/refs`,
    ]) {
      assert.equal(parseGitTarget(target), null, target);
    }
  });

  test('is parsed in bounded time, whatever it holds', () => {
    const started = performance.now();
    for (const part of ['a', '@', '.git', 'a@a', '%', '.', '%61', '%25'])
      parseGitTarget(`/r/ada/${part.repeat(20_000)}`);
    assert.ok(performance.now() - started < 500);
  });
});

describe('A request', () => {
  test('is for git below /r/, and where an endpoint is below the address of a page', () => {
    for (const endpoint of [
      ...['info/refs', 'info/refs?service=git-upload-pack', 'info/refs?x', 'git-upload-pack', 'git-receive-pack'],
      ...['info/lfs', 'info/lfs/objects/batch', 'git-upload-archive'],
    ]) {
      for (const place of ['/r/ada/engine.git', '/ada/engine', '/ada/engine.git', '/ada/engine@20261103T140200Z.git']) {
        const isLfsOfMoment = place.includes('@') && endpoint.startsWith('info/lfs');
        assert.equal(isForGit(`${place}/${endpoint}`), !isLfsOfMoment, `${place}/${endpoint}`);
      }
    }
    for (const target of ['/r/', '/r/ada', '/r/ada/engine/tree']) assert.equal(isForGit(target), true, target);
  });

  test('is for the website everywhere else', () => {
    for (const target of [
      ...['/', '/ada', '/ada/engine', '/ada/engine.git', '/ada/engine/', '/ada/info/refs', '/info/refs', '/rx/info'],
      ...[
        '/ada/engine/tree/main/info/refs',
        '/ada/engine/blob/main/git-upload-pack',
        '/ada/engine/info',
        '//a/b/info/refs',
      ],
      ...['/ada/engine/info/refs/', '/ada/engine/info/lfsx', '/ada/engine/INFO/REFS', '/ada/engine/?git-upload-pack'],
      ...['/ada/engine?/info/refs', '/ada/engine//info/refs', '*', ''],
    ]) {
      assert.equal(isForGit(target), false, target);
    }
  });
});

describe('A route', () => {
  const routes = (below: string): readonly unknown[] | 'dumb' => {
    const target = parseGitTarget(`/r/ada/engine.git/${below}`);
    assert.ok(target !== null, below);
    return routesOf(target);
  };

  test('matches its own path, and the service that the query names', () => {
    for (const route of GIT_ROUTES) {
      const query = route.serviceInQuery ? `?service=${route.service}` : '';
      assert.deepEqual(routes(route.path + query), [route]);
    }
  });

  test('matches nothing else', () => {
    for (const below of [
      ...['HEAD', 'info', 'info/refs/', 'info/refs%3Fservice=git-upload-pack', 'INFO/REFS', 'Git-Upload-Pack'],
      ...['info/refs?service=git-upload-archive', 'info/refs?service=', 'info/refs?service=--help', 'git-upload-pack/'],
      ...['info/lfsx', 'constructor', '__proto__', 'info/refs?service=__proto__'],
    ]) {
      assert.deepEqual(routes(below), [], below);
    }
    assert.equal(routes('info/refs'), 'dumb');
    assert.equal(routes('info/refs?x=git-upload-pack'), 'dumb');
  });

  test('takes all that Git LFS asks for', () => {
    for (const below of ['info/lfs', 'info/lfs/objects/batch', 'info/lfs/locks/verify?x=y']) {
      assert.equal(routes(below), LFS_ROUTES, below);
    }
  });

  test('of a repository as of a moment has the same path and takes all grants on all repositories', () => {
    assert.equal(PAST_GIT_ROUTES.length, GIT_ROUTES.length);
    for (const [index, { path, service, serviceInQuery, method, contentType }] of GIT_ROUTES.entries()) {
      const query = serviceInQuery ? `?service=${service}` : '';
      const target = parseGitTarget(`/r/ada/engine@20261103T140200Z.git/${path}${query}`);
      assert.ok(target?.moment === '20261103T140200Z');
      const past = PAST_GIT_ROUTES[index];
      assert.deepEqual(routesOf(target), [past]);
      const same = { path: past?.path, service: past?.service, method: past?.method, contentType: past?.contentType };
      assert.deepEqual(same, { path, service, method, contentType });
      assert.deepEqual(past?.requirement, { grant: 'ALL', scope: 'ALL_REPO', onItself: false });
    }
  });
});
