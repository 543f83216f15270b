/**
 * Deleted repositories in buckets of their account: a bucket does not move from under them, and may leave them behind.
 */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { streamName } from '../../../core/kernel/envelope.ts';
import type { AccountId, EventId } from '../../../core/kernel/ids.ts';
import { REPLACED_LAYERS_KEPT_MS_MIN } from '../../../core/kernel/limits.ts';
import { DEPENDENT_NAMES_MAX } from '../../../core/kernel/refusal.ts';
import { vaultRef } from '../../../core/kernel/vault-ref.ts';
import { findRepositoryById } from '../../../core/use-cases/repositories/repositories.ts';
import { removePurged } from '../../../core/use-cases/sweeping/remove-purged.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { keepLog } from '../../support/log.ts';
import { TEST_RETENTION_MS } from '../../support/past-repositories.ts';

const KEYS = {
  ...{ name: 'Home', provider: 'MINIO', auth_mode: 'STATIC_KEYS', bucket_name: 'layers', region: 'us-east-1' },
  ...{ endpoint_url: 'https://minio.example:9000', access_key_id: 'AKIA1', secret_access_key: 'secret' },
};
const PLACES = [
  { bucket_name: 'other' },
  { key_prefix: 'x' },
  { endpoint_url: 'https://b.example' },
  { provider: 'R2' },
];

describe('A deleted repository in a bucket', () => {
  let fixture: ApiFixture;
  let account: AccountId;
  let token: TestToken;
  let bucket: string;

  beforeEach(async () => {
    fixture = await createApiFixture();
    account = await fixture.account('ada');
    token = await fixture.token(account);
    bucket = await newBucket();
  });
  afterEach(() => fixture.close());

  const BUCKETS = '/v1/storage-buckets';
  const call = (method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: object, by: TestToken = token) =>
    fixture.request(method, path, by, body === undefined ? {} : { body });
  const put = (change: object, by: TestToken = token) => call('PUT', `${BUCKETS}/${bucket}`, change, by);
  const verify = (id = bucket) => call('POST', `${BUCKETS}/${id}/verify`);
  const listed = async () => (await call('GET', '/v1/repositories/deleted')).json().repositories;
  const restore = (id: string, body?: object) => call('POST', `/v1/repositories/${id}/restore`, body);
  const purge = (id: string, body?: object) => call('POST', `/v1/repositories/${id}/purge`, body);

  async function purgedLayersLeave(): Promise<void> {
    fixture.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN);
    const { context, marks } = fixture;
    const sweeping = { ...context, marks, log: keepLog(), beforeRemoval: async () => undefined };
    await removePurged(sweeping, { aborted: false });
  }

  async function newBucket(name = 'Home'): Promise<string> {
    const made = await call('POST', BUCKETS, { ...KEYS, name });
    assert.equal(made.statusCode, 201, made.body);
    const { id } = made.json();
    assert.equal((await verify(id)).statusCode, 200);
    return id;
  }

  async function inBucket(name: string, id: string | null = bucket): Promise<string> {
    const made = await call('POST', '/v1/repositories', { name, storage_bucket_id: id });
    assert.equal(made.statusCode, 201, made.body);
    const repository = await findRepositoryById(fixture.context, account, made.json().id);
    assert.ok(repository !== null);
    const tip = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 1 });
    await fixture.push(repository, { 'refs/heads/main': tip }, 5_000);
    return repository.id;
  }

  const remove = async (name: string): Promise<void> => {
    assert.equal((await call('DELETE', `/v1/repos/ada/${name}`)).statusCode, 204);
  };

  async function deleted(name: string, id: string | null = bucket): Promise<string> {
    const made = await inBucket(name, id);
    await remove(name);
    return made;
  }

  /** Moves the bucket as versions did that did not look at deleted repositories. */
  async function moveAsBefore(): Promise<void> {
    const { events, ids, clock } = fixture.context;
    const stream = streamName('account', account);
    const [last] = await events.readStream(stream, { direction: 'backwards', limit: 1 });
    assert.ok(last !== undefined);
    const data = {
      ...{ bucket_id: bucket, provider: 'MINIO', place_ref: vaultRef('9'.repeat(64)) },
      removed_ref: vaultRef('8'.repeat(64)),
    };
    const type = 'StorageBucketPlaceChanged';
    const event = { ...last, ...{ id: ids.next<EventId>(), type, version: 1, occurredAt: clock.now(), data } };
    const moved = await events.append({ stream, expected: last.revision, events: [event] });
    assert.equal(moved.outcome, 'appended');
  }

  test('holds the place of the bucket, by name, and nothing else of it', async () => {
    await deleted('old');
    for (const change of PLACES) {
      const answer = await put(change);
      assert.equal(answer.statusCode, 422, JSON.stringify(change));
      assert.match(answer.json().detail, /\bold\b/);
    }
    for (const change of [{ secret_access_key: 'new' }, { region: 'eu-west-1' }, { name: 'Renamed' }]) {
      assert.equal((await put(change)).statusCode, 200, JSON.stringify(change));
    }
    const [one] = await listed();
    assert.deepEqual([one.restorable, one.reason], [true, null]);
  });

  test('is named beside those that are in use', async () => {
    await deleted('old');
    await inBucket('used');
    const { detail } = (await put({ key_prefix: 'x' })).json();
    assert.match(detail, /\bused\b.*\bold\b/);
  });

  test('holds no bucket but its own, and none when it is back, purged or past the retention', async () => {
    await deleted('elsewhere', null);
    await deleted('other', await newBucket('Second'));
    assert.equal((await put({ key_prefix: 'a' })).statusCode, 200);
    await verify();
    const id = await deleted('old');
    assert.equal((await put({ key_prefix: 'b' })).statusCode, 422);
    assert.equal((await restore(id, { name: 'back' })).statusCode, 200);
    assert.match((await put({ key_prefix: 'b' })).json().detail, /: back$/);
    await remove('back');
    assert.match((await put({ key_prefix: 'b' })).json().detail, /\bback\b/);
    assert.equal((await purge(id)).statusCode, 202);
    await purgedLayersLeave();
    assert.equal((await put({ key_prefix: 'b' })).statusCode, 200);
    await verify();
    await deleted('late');
    fixture.clock.advance(TEST_RETENTION_MS + 1);
    assert.equal((await put({ key_prefix: 'c' })).statusCode, 200);
  });

  test('holds the place though nothing was pushed to it, until it is purged', async () => {
    assert.equal(
      (await call('POST', '/v1/repositories', { name: 'empty', storage_bucket_id: bucket })).statusCode,
      201,
    );
    await remove('empty');
    assert.match((await put({ key_prefix: 'x' })).json().detail, /\bempty\b/);
    const [{ id }] = await listed();
    const purged = await purge(id);
    assert.deepEqual([purged.statusCode, purged.json().freed_bytes], [202, 0]);
    assert.ok((await restore(id)).json().detail.includes(purged.json().event_id));
    assert.equal((await put({ key_prefix: 'x' })).statusCode, 200);
  });

  // The attack: a token for one repository asks which others there were.
  test('is not named to a token that may not see it', async () => {
    const id = await inBucket('hidden');
    const own = await fixture.repository(account, 'own');
    const limited = (...repositoryIds: string[]) =>
      fixture.token(account, {
        ...{ grants: ['API_STORAGE'], scope: 'SELECTED_REPO', repositoryIds: repositoryIds as (typeof own.id)[] },
      });
    const [other, seeing] = [await limited(own.id), await limited(own.id, id)];
    await remove('hidden');
    const denied = await put({ key_prefix: 'x' }, other);
    assert.equal(denied.statusCode, 422, denied.body);
    assert.ok(!denied.body.includes('hidden'), denied.body);
    assert.match((await put({ key_prefix: 'x' }, seeing)).json().detail, /hidden/);
  });

  test(`is one of ${DEPENDENT_NAMES_MAX} that are named at most`, async () => {
    for (let count = 0; count <= DEPENDENT_NAMES_MAX; count += 1) await deleted(`r-${count}`);
    const { detail } = (await put({ key_prefix: 'x' })).json();
    assert.equal(detail.match(/\br-\d+/g).length, DEPENDENT_NAMES_MAX);
    assert.match(detail, /and others/);
  });

  test('cannot come back when the bucket is deleted, also if one of its name and place is made again', async () => {
    const id = await deleted('old');
    const kept = await deleted('kept', null);
    assert.equal((await call('DELETE', `${BUCKETS}/${bucket}`)).statusCode, 204);
    await newBucket();
    const [second, first] = await listed();
    assert.deepEqual([second.id, second.restorable, second.reason], [kept, true, null]);
    assert.deepEqual([first.id, first.restorable], [id, false]);
    assert.match(first.reason, /bucket .* was deleted/);
    const answer = await restore(id);
    assert.equal(answer.statusCode, 409, answer.body);
    assert.ok(answer.json().detail.includes(first.reason), answer.body);
    assert.equal((await restore(kept)).statusCode, 200);
    await fixture.repository(account, 'old');
    assert.ok((await restore(id)).json().detail.includes(first.reason), 'another name does not help');
  });

  test('cannot come back from a log in which the bucket moved from under it', async () => {
    const id = await deleted('old');
    await moveAsBefore();
    const [one] = await listed();
    assert.equal(one.restorable, false);
    assert.match(one.reason, /another place/);
    const answer = await restore(id);
    assert.deepEqual([answer.statusCode, answer.json().detail.includes(one.reason)], [409, true]);
    const { statusCode } = await call('GET', '/v1/repos/ada/old');
    assert.equal(statusCode, 404, 'nothing was changed');
  });

  test('that was purged keeps its bucket and place until its layers have left, and a limited token learns no size', async () => {
    assert.equal((await purge(await deleted('old'))).statusCode, 202);
    const drop = (by: TestToken) => call('DELETE', `${BUCKETS}/${bucket}`, undefined, by);
    const refused = await drop(token);
    const told = (what: string) =>
      `This storage bucket can be deleted or have another place when purges have removed ${what} from it: try again in 60 minutes`;
    assert.equal(refused.statusCode, 422, refused.body);
    assert.equal(refused.json().detail, told('5000 bytes'));
    for (const change of PLACES) {
      const fixed = await put(change);
      assert.deepEqual([fixed.statusCode, fixed.json().detail], [422, told('5000 bytes')]);
    }
    assert.equal((await put({ name: 'Other', secret_access_key: 'second-secret' })).statusCode, 200);
    const { id } = await fixture.repository(account, 'own');
    const limited = { grants: ['API_STORAGE'], scope: 'SELECTED_REPO', repositoryIds: [id] } as const;
    const less = await drop(await fixture.token(account, limited));
    assert.equal(less.json().detail, told('layers'));
    await purgedLayersLeave();
    assert.equal((await drop(token)).statusCode, 204);
  });

  test('whose bucket is lost is purged, and the answer says that the bytes stay with their owner', async () => {
    const [moved, gone] = [await deleted('moved'), await deleted('gone', await newBucket('Second'))];
    const bound = (await call('GET', BUCKETS)).json().storage_buckets;
    const second = bound.find(({ name }: { name: string }) => name === 'Second').id;
    await moveAsBefore();
    assert.equal((await call('DELETE', `${BUCKETS}/${second}`)).statusCode, 204);
    for (const id of [moved, gone]) {
      const planned = await purge(id, { dry_run: true });
      const kept = { freed_bytes: 0, left_with_owner_bytes: 5_000 };
      assert.deepEqual(planned.json(), { event_id: null, ...kept });
      const purged = await purge(id);
      const { event_id } = purged.json();
      assert.deepEqual([purged.statusCode, purged.json()], [202, { event_id, ...kept }]);
      const stream = streamName('repository', id);
      const [last] = await fixture.context.events.readStream(stream, { direction: 'backwards', limit: 1 });
      assert.deepEqual([last?.id, last?.type, last?.data['reason']], [event_id, 'LayersExpired', 'purge']);
      const answer = await restore(id);
      assert.equal(answer.statusCode, 410, answer.body);
      assert.ok(answer.json().detail.includes(event_id));
    }
    assert.deepEqual(await listed(), []);
  });
});
