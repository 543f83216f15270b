/**
 * Repositories in the bucket of a user on a real S3 server, with real git: what was acknowledged is in the bucket, what
 * goes wrong with the bucket is said at the client, and no other repository is harmed.
 */
import assert from 'node:assert/strict';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { filesBelow } from '../support/files-below.ts';
import { needs } from '../support/optional-suites.ts';
import { type S3Proxy, startS3Proxy } from '../support/s3-proxy.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
  tryAdmin,
  tryGit,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type S3Server, startS3Server } from '../support/versitygw.ts';

const BUCKETS = '/v1/storage-buckets';
const PREFIX = 'of-ada';

describe('Repositories in the bucket of a user', needs('versitygw'), () => {
  const ending = suiteEnding();
  let s3: S3Server;
  let proxy: S3Proxy;
  let shared: SharedParts;
  let first: Strata;
  let second: Strata;
  let ada: Account;
  let bucket: string;

  beforeAll(async () => {
    s3 = await startS3Server(ending);
    proxy = await startS3Proxy(ending, s3.port);
    shared = await sharedParts(ending);
    const env = { STRATA_ALLOW_PRIVATE_TARGETS: 'true' };
    [first, second] = await Promise.all([
      startNode(ending, shared, env),
      // Only requests fill its cache: no background work does.
      startNode(ending, shared, { ...env, STRATA_ROLES: 'git,api' }),
    ]);
    ada = await createAccount(first, 'ada');
    const made = await api(first, ada.token, 'POST', BUCKETS, {
      ...{ name: 'Home', provider: 'MINIO', auth_mode: 'STATIC_KEYS', bucket_name: s3.bucket, key_prefix: PREFIX },
      ...{ region: s3.region, endpoint_url: proxy.url },
      ...{ access_key_id: s3.accessKeyId, secret_access_key: s3.secretAccessKey },
    });
    bucket = (made.body as { readonly id: string }).id;
    assert.equal((await api(first, ada.token, 'POST', `${BUCKETS}/${bucket}/verify`)).status, 200);
  });

  async function inBucket(name: string): Promise<string> {
    const made = await api(first, ada.token, 'POST', '/v1/repositories', { name, storage_bucket_id: bucket });
    assert.deepEqual([made.status, (made.body as { storage_bucket_id: string }).storage_bucket_id], [201, bucket]);
    return gitUrl(first, ada, name);
  }

  const idOf = async (name: string): Promise<string> =>
    ((await api(first, ada.token, 'GET', `/v1/repos/ada/${name}`)).body as { id: string }).id;

  /** The layers of a repository as files below the bucket's folder. */
  const layersOf = async (name: string): Promise<readonly string[]> => {
    const below = `repositories/${await idOf(name)}/layers/`;
    const folder = path.join(s3.folder, PREFIX);
    return (await filesBelow(folder)).filter((file) => file.startsWith(below)).map((file) => path.join(folder, file));
  };

  async function cloneOf(url: string): Promise<string> {
    const folder = await tempDir(ending);
    await git(folder, ['clone', '--quiet', '--mirror', url, 'copy.git']);
    await git(path.join(folder, 'copy.git'), ['fsck', '--full', '--strict']);
    return (await git(path.join(folder, 'copy.git'), ['rev-parse', 'refs/heads/main'])).trim();
  }

  const failedClone = async (url: string): Promise<string> => {
    const cloned = await tryGit(await tempDir(ending), ['clone', '--quiet', '--mirror', url, 'copy.git']);
    assert.notEqual(cloned.code, 0);
    return cloned.stderr;
  };

  const failedPush = async (work: string, url: string): Promise<string> => {
    const pushed = await tryGit(work, ['push', url, 'main']);
    assert.notEqual(pushed.code, 0);
    return pushed.stderr;
  };

  const errors = async (): Promise<readonly string[]> => {
    const { body } = await api(first, ada.token, 'GET', `${BUCKETS}/errors`);
    const listed = (body as { errors: { repository_id: string; operation: string; code: string }[] }).errors;
    return listed.map(({ repository_id: of, operation, code }) => `${of} ${operation} ${code}`);
  };

  test('are pushed into the bucket before the answer, cloned from a node that never saw them, and use no quota', async () => {
    const url = await inBucket('engine');
    const work = await newWorkTree(ending);
    await git(work, ['push', '--quiet', url, 'main']);
    const tip = await commitFile(work, 'second', 'more\n');
    await git(work, ['push', '--quiet', url, 'main']);
    assert.equal((await layersOf('engine')).length, 2);
    assert.deepEqual(await filesBelow(shared.layersDir), []);
    assert.equal(await cloneOf(gitUrl(second, ada, 'engine')), tip);
    const usage = (await api(first, ada.token, 'GET', '/v1/account/usage')).body as {
      readonly storage_bytes: { readonly used: number };
      readonly byo_storage_bytes: { readonly used: number };
    };
    assert.equal(usage.storage_bytes.used, 0);
    const used = (await Promise.all((await layersOf('engine')).map((file) => stat(file)))).reduce(
      (sum, { size }) => sum + size,
      0,
    );
    assert.deepEqual(usage.byo_storage_bytes, { used, quota: null, buckets: [{ storage_bucket_id: bucket, used }] });
    const removal = await api(first, ada.token, 'DELETE', `${BUCKETS}/${bucket}`);
    assert.equal(removal.status, 422);
    assert.match(removal.text, /depend on this storage bucket: engine/);
    const listed = await tryAdmin(first, ['storage', 'list']);
    assert.match(listed.stdout, new RegExp(`ada/engine in the bucket ${bucket}: 2 layers, `));
    const verified = await tryAdmin(first, ['storage', 'verify', '--repository', 'ada/engine']);
    assert.equal(verified.code, 0, verified.stdout);
  });

  test('come back from a deletion to the place that their bucket kept, and are read right away', async () => {
    const url = await inBucket('back');
    const work = await newWorkTree(ending);
    await git(work, ['push', '--quiet', url, 'main']);
    const tip = (await git(work, ['rev-parse', 'main'])).trim();
    const call = (method: string, target: string, body?: object) => api(first, ada.token, method, target, body);
    const id = await idOf('back');
    assert.equal((await call('DELETE', '/v1/repos/ada/back')).status, 204);
    const moved = await call('PUT', `${BUCKETS}/${bucket}`, { key_prefix: 'elsewhere' });
    assert.equal(moved.status, 422, moved.text);
    assert.match(moved.text, /deleted repositories can come back to them [^:]*: back"/);
    assert.equal((await call('POST', `/v1/repositories/${id}/restore`)).status, 200);
    for (const list of ['branches', 'commits']) {
      const { status, text } = await call('GET', `/v1/repos/ada/back/${list}`);
      assert.ok(status === 200 && text.includes(tip), `${list}: ${status} ${text}`);
    }
    assert.equal(await cloneOf(gitUrl(second, ada, 'back')), tip);
  });

  test('say at git that the bucket is gone, keep serving what is cached, and recover by themselves', async () => {
    const [url, plain] = [await inBucket('gone'), await createRepository(first, ada, 'plain')];
    const work = await newWorkTree(ending);
    await git(work, ['push', '--quiet', url, 'main']);
    await git(work, ['push', '--quiet', plain, 'main']);
    const before = (await git(work, ['rev-parse', 'main'])).trim();
    await s3.kill();
    const after = await commitFile(work, 'second', 'more\n');
    const [refused, unread, beside] = await Promise.all([
      failedPush(work, url),
      failedClone(gitUrl(second, ada, 'gone')),
      git(work, ['push', '--quiet', plain, 'main']),
    ]);
    const line = 'the storage bucket "Home" cannot be reached: try again; its owner finds the errors on its page';
    assert.ok(refused.includes(`remote: ${line}`), refused);
    assert.match(refused, /! \[remote rejected\] main -> main \(the storage bucket failed\)/);
    assert.ok(unread.includes(`fatal: remote error: ${line}`), unread);
    assert.equal(beside, '');
    const contents = await api(second, ada.token, 'GET', '/v1/repos/ada/gone/contents/README');
    assert.deepEqual(
      [contents.status, contents.body],
      [503, { detail: 'The bucket that holds this repository cannot be reached, try again' }],
    );
    assert.equal(await cloneOf(url), before);
    const id = await idOf('gone');
    for (const operation of ['push', 'read']) assert.ok((await errors()).includes(`${id} ${operation} unreachable`));
    await s3.start();
    await git(work, ['push', '--quiet', url, 'main']);
    assert.equal(await cloneOf(gitUrl(second, ada, 'gone')), after);
  });

  test('say that the keys were revoked, and go on with new keys before anybody verifies them', async () => {
    const url = await inBucket('keys');
    const work = await newWorkTree(ending);
    const put = (secret: string) => api(first, ada.token, 'PUT', `${BUCKETS}/${bucket}`, { secret_access_key: secret });
    assert.equal((await put('revoked-secret-key')).status, 200);
    const refused = await failedPush(work, url);
    assert.match(refused, /the storage bucket "Home" refuses the service's credentials: its owner must act/);
    assert.equal((await put(s3.secretAccessKey)).status, 200);
    await git(work, ['push', '--quiet', url, 'main']);
    assert.equal((await api(first, ada.token, 'POST', `${BUCKETS}/${bucket}/verify`)).status, 200);
    assert.ok((await errors()).includes(`${await idOf('keys')} push credentials-refused`));
    for (const text of [refused, first.log(), second.log()]) {
      assert.ok(!text.includes('revoked-secret-key') && !text.includes(s3.secretAccessKey));
      assert.ok(!text.includes(proxy.url.slice('http://'.length)), 'the place of a bucket is in no log line');
    }
  });

  test('say that objects are missing or altered, and serve what a node had checked before', async () => {
    const [missing, altered] = [await inBucket('missing'), await inBucket('altered')];
    const work = await newWorkTree(ending);
    for (const url of [missing, altered]) await git(work, ['push', '--quiet', url, 'main']);
    const tip = (await git(work, ['rev-parse', 'main'])).trim();
    const [gone = ''] = await layersOf('missing');
    await rm(gone);
    const [changed = ''] = await layersOf('altered');
    const bytes = await readFile(changed);
    bytes.writeUInt8(bytes.readUInt8(600) ^ 1, 600);
    await writeFile(changed, bytes);
    const says = async (name: string) => failedClone(gitUrl(second, ada, name));
    assert.match(await says('missing'), /the storage bucket "Home" lacks stored objects of this repository/);
    assert.match(await says('altered'), /the storage bucket "Home" holds altered objects of this repository/);
    for (const url of [missing, altered]) assert.equal(await cloneOf(url), tip);
    const [missingId, alteredId] = [await idOf('missing'), await idOf('altered')];
    const listed = await errors();
    assert.ok(listed.includes(`${missingId} read object-missing`), listed.join());
    assert.ok(listed.includes(`${alteredId} read object-altered`), listed.join());
  });

  test('in a slow bucket hold up no other repository', async () => {
    const [slow, plain] = [await inBucket('slow'), await createRepository(first, ada, 'fast')];
    const work = await newWorkTree(ending);
    proxy.fault = ({ method }) => (method === 'PUT' ? { kind: 'delay', ms: 3_000 } : null);
    let isPushed = false;
    const pushing = git(work, ['push', '--quiet', slow, 'main']).then(() => (isPushed = true));
    for (let round = 0; round < 3; round += 1) {
      await git(work, ['push', '--quiet', plain, `main:round-${round}`]);
    }
    assert.ok(!isPushed, 'three pushes to the platform are faster than one to the slow bucket');
    await pushing;
    proxy.fault = () => null;
  });
});
