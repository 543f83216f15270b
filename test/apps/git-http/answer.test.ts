/** What every answer of the Git endpoints carries, whatever it answers. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createApiFixture } from '../../support/api-fixture.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { type GitRequestOptions, startGit } from '../../support/git-fixture.ts';

test('Every answer names the request as the log does, and may be kept by no proxy', async (context) => {
  const fixture = await createApiFixture();
  cleanUp(context, () => fixture.close());
  const ada = await fixture.account('ada');
  await fixture.repository(ada, 'engine');
  const token = await fixture.token(ada);
  const git = await startGit(fixture);
  cleanUp(context, () => git.close());
  const posted = (service: string, body: string): GitRequestOptions => ({
    body: Buffer.from(body),
    headers: { 'content-type': `application/x-${service}-request`, 'git-protocol': 'version=2' },
  });
  const of = '/r/ada/engine.git';
  for (const [status, method, target, options] of [
    [200, 'GET', `${of}/info/refs?service=git-upload-pack`, {}],
    [200, 'HEAD', `${of}/info/refs?service=git-upload-pack`, {}],
    [200, 'POST', `${of}/git-upload-pack`, posted('git-upload-pack', '0000')],
    [200, 'POST', `${of}/git-upload-pack`, posted('git-upload-pack', '0014command=ls-refs\n0000')],
    [200, 'POST', `${of}/git-upload-pack`, posted('git-upload-pack', 'no packet')],
    [200, 'POST', `${of}/git-receive-pack`, posted('git-receive-pack', '0000')],
    [400, 'POST', `${of}/git-receive-pack`, posted('git-receive-pack', 'no packet')],
    [400, 'POST', `${of}/git-upload-pack`, {}],
    [403, 'GET', `${of}/info/refs`, {}],
    [404, 'GET', '/r/ada/nothing.git/info/refs?service=git-upload-pack', {}],
    [405, 'PUT', `${of}/git-upload-pack`, {}],
    [501, 'GET', `${of}/info/lfs/locks`, {}],
  ] as const) {
    const { headers, ...answer } = await git.request(method, target, token, options);
    const what = `${method} ${target}: ${answer.text}`;
    assert.equal(answer.status, status, what);
    assert.equal(headers.get('x-request-id'), git.finished.at(-1)?.requestId, what);
    assert.equal(headers.get('cache-control'), 'no-cache, max-age=0, must-revalidate', what);
    assert.equal(headers.get('pragma'), 'no-cache', what);
    assert.equal(headers.get('expires'), 'Fri, 01 Jan 1980 00:00:00 GMT', what);
  }
});
