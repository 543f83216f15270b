/**
 * A bucket of a user on a real S3 server, through the whole service: made over REST, verified by a canary, failed by a
 * wrong key and by a server that is gone.
 */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { filesBelow } from '../support/files-below.ts';
import { needs } from '../support/optional-suites.ts';
import { type Account, api, createAccount, type Strata, startStrata } from '../support/strata.ts';
import { type S3Server, startS3Server } from '../support/versitygw.ts';

const PATH = '/v1/storage-buckets';

describe('A bucket of a user on an S3 server', needs('versitygw'), () => {
  const ending = suiteEnding();
  let s3: S3Server;
  let strata: Strata;
  let ada: Account;

  beforeAll(async () => {
    s3 = await startS3Server(ending);
    strata = await startStrata(ending, { env: { STRATA_ALLOW_PRIVATE_TARGETS: 'true' } });
    ada = await createAccount(strata, 'ada');
  });

  test('is verified without a trace, and fails with the step when its key is wrong or its server is gone', async () => {
    const call = (method: string, target: string, body?: object) => api(strata, ada.token, method, target, body);
    const { status, body } = await call('POST', PATH, {
      ...{ name: 'Home', provider: 'MINIO', auth_mode: 'STATIC_KEYS', bucket_name: s3.bucket, key_prefix: 'strata' },
      ...{ region: s3.region, endpoint_url: s3.url },
      ...{ access_key_id: s3.accessKeyId, secret_access_key: s3.secretAccessKey },
    });
    assert.equal(status, 201);
    const { id } = body as { readonly id: string };
    const verify = () => call('POST', `${PATH}/${id}/verify`);
    const verified = await verify();
    assert.equal(verified.status, 200, verified.text);
    assert.equal((verified.body as { readonly status: string }).status, 'VERIFIED');
    assert.deepEqual(await filesBelow(s3.folder), [], 'the canary is gone');

    assert.equal((await call('PUT', `${PATH}/${id}`, { secret_access_key: 'wrong-secret-key' })).status, 200);
    const wrong = await verify();
    assert.equal(wrong.status, 422);
    assert.match(wrong.text, /Verification failed at the step credentials/);
    assert.ok(!wrong.text.includes('wrong-secret-key'));

    await call('PUT', `${PATH}/${id}`, { secret_access_key: s3.secretAccessKey });
    await s3.kill();
    const gone = await verify();
    assert.equal(gone.status, 422);
    const { errors } = (await call('GET', `${PATH}/errors`)).body as { readonly errors: readonly { code: string }[] };
    assert.deepEqual(
      errors.map(({ code }) => code),
      ['unreachable', 'credentials-refused'],
    );
    await s3.start();
    assert.equal((await verify()).status, 200, 'it recovers by itself');
  });
});
