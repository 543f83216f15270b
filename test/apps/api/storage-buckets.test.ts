/** Storage buckets over REST, as docs/interface.md, Storage buckets, specifies them. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest';
import { accounts as accountEntities } from '../../../core/account/evolve.ts';
import { LOG_START, streamName } from '../../../core/kernel/envelope.ts';
import { type AccountId, type RepositoryId, type StorageBucketId, uuid } from '../../../core/kernel/ids.ts';
import {
  BUCKET_CHECKS_OF_ACCOUNT_MAX,
  BUCKET_CHECKS_OF_ACCOUNT_SPAN_MS,
  BUCKET_FAULT_MESSAGE_LENGTH_MAX,
} from '../../../core/kernel/limits.ts';
import type { BucketFault } from '../../../core/ports/buckets.ts';
import { changePlan } from '../../../core/use-cases/accounts/accounts.ts';
import { recordBucketError } from '../../../core/use-cases/buckets/record-bucket-error.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { CAUSE } from '../../support/node.ts';

const ROLE = {
  ...{ name: 'Archive', provider: 'S3', auth_mode: 'OIDC', bucket_name: 'layers', key_prefix: 'strata' },
  ...{ role_arn: 'arn:aws:iam::123456789012:role/strata', is_default: false },
};
const SECRET = 'canary-secret-key';
const KEYS = {
  ...{ name: 'Home', provider: 'MINIO', auth_mode: 'STATIC_KEYS', bucket_name: 'layers', region: 'us-east-1' },
  ...{ endpoint_url: 'https://minio.example:9000', access_key_id: 'AKIA1', secret_access_key: SECRET },
};
const DENIED: BucketFault = { step: 'put', code: 'access-denied', message: 'Access Denied' };

describe('storage buckets', () => {
  let fixture: ApiFixture;
  let accounts = 0;
  let owner: AccountId;
  let token: TestToken;

  beforeAll(async () => {
    fixture = await createApiFixture();
  });
  afterAll(() => fixture.close());
  beforeEach(async () => {
    accounts += 1;
    owner = await fixture.account(`ada${accounts}`);
    token = await fixture.token(owner, { grants: ['API_STORAGE'] });
    fixture.buckets.fail(null);
    fixture.buckets.during(async () => undefined);
  });

  const PATH = '/v1/storage-buckets';
  const create = (body: object, by = token) => fixture.request('POST', PATH, by, { body });
  const get = (id: string, by = token) => fixture.request('GET', `${PATH}/${id}`, by);
  const put = (id: string, body: object, by = token) => fixture.request('PUT', `${PATH}/${id}`, by, { body });
  const remove = (id: string, by = token) => fixture.request('DELETE', `${PATH}/${id}`, by);
  const verify = (id: string, by = token) => fixture.request('POST', `${PATH}/${id}/verify`, by);
  const errors = (query = '', by = token) => fixture.request('GET', `${PATH}/errors${query}`, by);
  const made = async (body: object): Promise<string> => {
    const answer = await create(body);
    assert.equal(answer.statusCode, 201, answer.body);
    return answer.json().id;
  };

  /** A repository in a bucket, as a server that offers them makes it. */
  async function bind(name: string, bucket: string) {
    const { events, clock, ids } = fixture.context;
    const stream = streamName('account', owner);
    const [last] = await events.readStream(stream, { direction: 'backwards', limit: 1 });
    assert.ok(last !== undefined);
    const data = { repository_id: ids.next<RepositoryId>(), name };
    const more = { description: null, default_branch: null, storage_bucket_id: bucket };
    await events.append({
      stream,
      expected: last.revision,
      events: [
        {
          ...last,
          ...{ id: ids.next(), type: 'RepositoryCreated', version: 1, occurredAt: clock.now() },
          data: { ...data, ...more },
        },
      ],
    });
    return data.repository_id;
  }

  test('are created pending verification, in one form, without the settings of the other mode', async () => {
    const now = fixture.clock.now();
    const role = (await create({ ...ROLE, region: 'nowhere at all', endpoint_url: 'https://10.0.0.1' })).json();
    assert.deepEqual(role, {
      ...{ id: role.id, ...ROLE, key_prefix: 'strata/', region: null, endpoint_url: null, access_key_id: null },
      ...{ status: 'PENDING_VERIFICATION', last_validated_at: null, last_error: null, conditional_writes: null },
      ...{ repository_count: 0, created_at: now, updated_at: now },
    });
    const keys = (await create(KEYS)).json();
    assert.deepEqual([keys.key_prefix, keys.role_arn, keys.is_default], ['', null, false]);
    assert.deepEqual((await get(role.id)).json(), role);
    const list = (await fixture.request('GET', PATH, token)).json();
    assert.deepEqual(list, { storage_buckets: [role, keys] });
  });

  test('name every field that is missing or wrong', async () => {
    const missing = (await create({})).json().detail.map(({ loc }: { loc: string[] }) => loc[1]);
    assert.deepEqual(missing, ['name', 'provider', 'auth_mode', 'bucket_name']);
    for (const [wrong, field] of [
      [{ ...ROLE, role_arn: 'admin' }, 'role_arn'],
      [{ ...ROLE, role_arn: undefined }, 'role_arn'],
      [{ ...ROLE, provider: 'R2' }, 'auth_mode'],
      [{ ...ROLE, provider: 'B2' }, 'provider'],
      [{ ...ROLE, name: '' }, 'name'],
      [{ ...KEYS, region: 'evil.example/' }, 'region'],
      [{ ...KEYS, endpoint_url: undefined }, 'endpoint_url'],
      [{ ...KEYS, secret_access_key: '' }, 'secret_access_key'],
      [{ ...KEYS, bucket_name: 'a/../b' }, 'bucket_name'],
      [{ ...KEYS, key_prefix: '../other' }, 'key_prefix'],
    ] as const) {
      const answer = await create(wrong);
      assert.equal(answer.statusCode, 422, field);
      assert.deepEqual(answer.json().detail[0].loc, ['body', field]);
    }
    assert.equal((await create({ ...ROLE, name: 'x', is_default: true })).statusCode, 201);
    assert.equal((await create({ ...KEYS, name: 'X' })).statusCode, 409);
  });

  test('attack: an endpoint that leads into the network of the server is refused, when it is made and changed', async () => {
    const id = await made(KEYS);
    for (const endpoint_url of [
      'https://127.0.0.1:9000',
      'https://169.254.169.254',
      'https://[::ffff:10.0.0.1]',
      'https://to-10-0-0-1.example',
      'https://2130706433',
      'https://localhost:8080',
      'https://git.example.org',
      'https://user:canary-password@minio.example',
      'http://minio.example',
      'https://minio.example/%2e%2e/latest',
    ]) {
      for (const answer of [await create({ ...KEYS, name: 'new', endpoint_url }), await put(id, { endpoint_url })]) {
        assert.equal(answer.statusCode, 422, endpoint_url);
        assert.deepEqual(answer.json().detail[0].loc, ['body', 'endpoint_url']);
        assert.ok(!answer.body.includes('canary'));
      }
    }
    assert.equal((await get(id)).json().endpoint_url, KEYS.endpoint_url);
  });

  test('tell what is wrong with them whole up to the limit, and cut a longer text', async () => {
    const id = await made(KEYS);
    for (const [length, shown] of [
      [BUCKET_FAULT_MESSAGE_LENGTH_MAX, 'x'.repeat(BUCKET_FAULT_MESSAGE_LENGTH_MAX)],
      [BUCKET_FAULT_MESSAGE_LENGTH_MAX + 1, `${'x'.repeat(BUCKET_FAULT_MESSAGE_LENGTH_MAX - 1)}…`],
    ] as const) {
      fixture.buckets.fail({ ...DENIED, message: 'x'.repeat(length) });
      assert.match((await verify(id)).json().detail, new RegExp(`[^x]${shown}$`), `${length}`);
    }
  });

  test('attack: the secret key, the role and the place are in no event, no log line and no other answer', async () => {
    const id = await made(KEYS);
    await made(ROLE);
    fixture.buckets.fail({ ...DENIED, message: `no\r\nsuch key ${SECRET}\u2028<script>` });
    const answers = [
      await get(id),
      await put(id, { secret_access_key: `${SECRET}-2` }),
      await put(id, { secret_access_key: SECRET, region: 'us-west-2' }),
      await put(id, { secret_access_key: `${SECRET}\n` }),
      await verify(id),
      await errors(),
      await fixture.request('GET', PATH, token),
    ];
    for (const answer of answers) assert.ok(!answer.body.includes('canary'), answer.body);
    const failed = answers[4]?.json().detail;
    assert.equal(failed, 'Verification failed at the step put: no such key … <script>');
    const all = await fixture.context.events.readAll(LOG_START, 10_000);
    const events = JSON.stringify(all.map(({ type, data, sourceAddressRef }) => [type, data, sourceAddressRef]));
    for (const hidden of ['canary', 'AKIA1', 'minio.example', 'us-west-2', 'role/strata', 'layers', 'such key']) {
      assert.ok(!events.includes(hidden), hidden);
      assert.ok(!fixture.logged.join('\n').includes(hidden), hidden);
    }
  });

  test("attack: another account's bucket is as unknown as one that does not exist", async () => {
    const id = await made(ROLE);
    const eve = await fixture.token(await fixture.account(`eve${accounts}`));
    for (const nothing of [id, '0190f3e2-7c1a-7b4e-9a35-ffffffffffff', 'x']) {
      for (const answer of [
        await get(nothing, eve),
        await put(nothing, { name: 'mine' }, eve),
        await verify(nothing, eve),
        await remove(nothing, eve),
      ]) {
        assert.deepEqual([answer.statusCode, answer.json()], [404, { detail: 'Storage bucket not found' }]);
      }
    }
    assert.equal((await errors(`?storage_bucket_id=${id}`, eve)).statusCode, 404);
    const body = { name: 'theft', storage_bucket_id: id };
    assert.equal((await fixture.request('POST', '/v1/repositories', eve, { body })).statusCode, 404);
    assert.equal((await get(id)).statusCode, 200);
  });

  test('attack: a token for some repositories cannot redirect others, nor learn of them', async () => {
    const id = await made(ROLE);
    const hidden = await bind('hidden', id);
    const own = await fixture.repository(owner, 'own');
    const limited = await fixture.token(owner, {
      ...{ grants: ['API_STORAGE'], scope: 'SELECTED_REPO', repositoryIds: [own.id] },
    });
    const denied = { detail: 'This token lacks the scope ALL_REPO' };
    for (const answer of [
      await create({ ...KEYS, is_default: true }, limited),
      await put(id, { is_default: true }, limited),
      await put(id, { role_arn: 'arn:aws:iam::999999999999:role/thief' }, limited),
      await put(id, { name: 'mine' }, limited),
    ]) {
      assert.deepEqual([answer.statusCode, answer.json()], [403, denied]);
    }
    const removed = await remove(id, limited);
    assert.equal(removed.statusCode, 422);
    assert.ok(!removed.body.includes('hidden'));
    assert.equal((await get(id, limited)).json().repository_count, 0);
    assert.equal((await get(id)).json().repository_count, 1);
    const error = { bucket: id as StorageBucketId, operation: 'push', code: 'timed-out' } as const;
    for (const repository of [hidden, own.id, null]) {
      await recordBucketError(fixture.context, { account: owner, cause: CAUSE }, { ...error, repository });
    }
    const seen = (await errors('', limited)).json();
    assert.deepEqual(
      [seen.pagination.total, seen.errors.map((one: { repository_id: string }) => one.repository_id)],
      [2, [null, own.id]],
    );
    assert.equal((await errors()).json().pagination.total, 3);
    assert.equal((await create({ ...KEYS, name: 'for me' }, limited)).statusCode, 201);
  });

  test('are verified by a canary, with the settings that are current', async () => {
    const id = await made(KEYS);
    const verified = await verify(id);
    assert.equal(verified.statusCode, 200);
    const { status, last_validated_at } = verified.json();
    assert.deepEqual([status, last_validated_at], ['VERIFIED', fixture.clock.now()]);
    assert.deepEqual(fixture.buckets.checked.at(-1), {
      ...{ bucketName: 'layers', keyPrefix: '' },
      access: {
        ...{ mode: 'STATIC_KEYS', endpointUrl: KEYS.endpoint_url, region: 'us-east-1' },
        ...{ accessKeyId: 'AKIA1', secretAccessKey: SECRET },
      },
    });
    for (const change of [{ secret_access_key: 'new' }, { region: 'eu-west-1' }, { key_prefix: 'x' }]) {
      assert.equal((await verify(id)).json().status, 'VERIFIED');
      assert.equal((await put(id, change)).json().status, 'PENDING_VERIFICATION', JSON.stringify(change));
    }
    await verify(id);
    const same = { name: 'Renamed', is_default: true, key_prefix: 'x/', region: 'eu-west-1' };
    const after = (await put(id, same)).json();
    assert.deepEqual([after.status, after.name, after.is_default], ['VERIFIED', 'Renamed', true]);
    const role = await made(ROLE);
    await verify(role);
    assert.deepEqual(fixture.buckets.checked.at(-1)?.access, {
      ...{ mode: 'OIDC', account: owner, roleArn: ROLE.role_arn },
    });
  });

  test('show whether their place keeps conditional writes, from the first verification there until the place changes', async () => {
    const id = await made(KEYS);
    const shown = async () => (await get(id)).json().conditional_writes;
    assert.equal(await shown(), null);
    fixture.buckets.find({ conditionalWrites: false, checksBodies: true });
    assert.equal((await verify(id)).json().conditional_writes, false);
    assert.equal((await put(id, { region: 'eu-west-1' })).json().conditional_writes, false, 'the same place');
    fixture.buckets.fail(DENIED);
    await verify(id);
    assert.equal(await shown(), false, 'a verification that failed found out nothing');
    assert.equal((await put(id, { key_prefix: 'other' })).json().conditional_writes, null);
    assert.equal(await shown(), null);
    fixture.buckets.fail(null);
    fixture.buckets.find({ conditionalWrites: true, checksBodies: false });
    await verify(id);
    assert.equal(await shown(), true);
  });

  test('leave nothing of what was found out when they are deleted, also during their verification', async () => {
    const { entities, bucketFindings } = fixture.context;
    for (const during of [true, false]) {
      const id = await made(KEYS);
      const bucket = uuid<StorageBucketId>(id);
      const { state } = await entities.get(accountEntities, owner);
      const place = state.status === 'open' ? state.storageBuckets.get(bucket)?.placeRef : undefined;
      assert.ok(place !== undefined);
      if (during) fixture.buckets.during(async () => void (await remove(id)));
      assert.equal((await verify(id)).statusCode, during ? 404 : 200);
      const at = { account: owner, bucket, place };
      if (!during) assert.notEqual(await bucketFindings.find(at), null);
      if (!during) await remove(id);
      assert.equal(await bucketFindings.find(at), null);
      fixture.buckets.during(async () => undefined);
    }
  });

  test('fail with the step in the answer, in the bucket and in the list of errors', async () => {
    const id = await made(ROLE);
    fixture.buckets.fail(DENIED);
    const failed = await verify(id);
    assert.equal(failed.statusCode, 422);
    assert.deepEqual(failed.json(), { detail: 'Verification failed at the step put: Access Denied' });
    const bucket = (await get(id)).json();
    const message = 'Step put: The provider denied access';
    assert.deepEqual([bucket.status, bucket.last_error], ['FAILED', message]);
    const { errors: listed, pagination } = (await errors(`?storage_bucket_id=${id}&limit=10`)).json();
    assert.deepEqual(pagination, { limit: 10, offset: 0, total: 1 });
    assert.deepEqual(listed, [
      {
        ...{ id: listed[0].id, storage_bucket_id: id, repository_id: null, operation: 'verify' },
        ...{ code: 'access-denied', message, occurred_at: fixture.clock.now() },
      },
    ]);
    fixture.buckets.fail({ step: 'credentials', code: 'credentials-refused', message: 'Not authorized' });
    assert.match((await verify(id)).json().detail, /Not authorized\. This service is at http:\/\/localhost:8080/);
    fixture.buckets.fail(null);
    const again = (await verify(id)).json();
    assert.deepEqual([again.status, again.last_error], ['VERIFIED', null]);
    const codes = (await errors()).json().errors.map(({ code }: { code: string }) => code);
    assert.deepEqual(codes, ['credentials-refused', 'access-denied'], 'newest first');
    assert.equal((await errors('?offset=1&limit=1')).json().errors[0].code, 'access-denied');
    assert.equal((await errors('?offset=-1')).statusCode, 422);
    assert.equal((await remove(id)).statusCode, 204);
    assert.equal((await errors()).json().pagination.total, 0, 'those of a deleted bucket are not listed');
  });

  test('are not verified by a check of settings that changed in between', async () => {
    const id = await made(ROLE);
    fixture.buckets.during(async () => {
      fixture.buckets.during(async () => undefined);
      await put(id, { key_prefix: 'elsewhere' });
    });
    const late = await verify(id);
    assert.equal(late.statusCode, 409, late.body);
    assert.equal((await get(id)).json().status, 'PENDING_VERIFICATION');
    assert.equal((await verify(id)).statusCode, 200);
  });

  test('keep their status when a verification dies in the middle', async () => {
    const id = await made(ROLE);
    await verify(id);
    fixture.buckets.during(async () => {
      throw new Error('the process died');
    });
    assert.equal((await verify(id)).statusCode, 500);
    assert.equal((await get(id)).json().status, 'VERIFIED');
    fixture.buckets.during(async () => undefined);
    assert.equal((await verify(id)).statusCode, 200, 'its slot is free again');
  });

  test('are verified so often in a span, and no more', async () => {
    const id = await made(ROLE);
    for (let n = 0; n < BUCKET_CHECKS_OF_ACCOUNT_MAX; n += 1) assert.equal((await verify(id)).statusCode, 200);
    const limited = await verify(id);
    assert.equal(limited.statusCode, 429);
    assert.ok(Number(limited.headers['retry-after']) > 0);
    fixture.clock.advance(BUCKET_CHECKS_OF_ACCOUNT_SPAN_MS - 1);
    assert.equal((await verify(id)).statusCode, 429);
    fixture.clock.advance(1);
    assert.equal((await verify(id)).statusCode, 200);
  });

  test('need a plan for their creation and verification, and for nothing else', async () => {
    const free = await fixture.account(`free${accounts}`, 'FREE');
    const poor = await fixture.token(free);
    const denied = await create(ROLE, poor);
    assert.equal(denied.statusCode, 403);
    assert.match(denied.json().detail, /plan PRO/);
    assert.deepEqual((await fixture.request('GET', PATH, poor)).json(), { storage_buckets: [] });
    assert.equal((await fixture.request('GET', `${PATH}/oidc-setup`, poor)).statusCode, 200);
    const id = await made(ROLE);
    await changePlan(fixture.context, CAUSE, owner, 'FREE');
    assert.equal((await verify(id)).statusCode, 403, 'after a downgrade');
    assert.equal((await put(id, { name: 'Old' })).statusCode, 200);
    assert.equal((await remove(id)).statusCode, 204);
  });

  test('hold their place while repositories depend on them, which the refusal names', async () => {
    const id = await made(KEYS);
    await bind('tools', id);
    for (const change of [{ bucket_name: 'other' }, { key_prefix: 'x' }, { endpoint_url: 'https://b.example' }]) {
      const answer = await put(id, change);
      assert.equal(answer.statusCode, 422, JSON.stringify(change));
      assert.match(answer.json().detail, /: tools$/);
    }
    assert.equal((await put(id, { provider: 'R2' })).statusCode, 422);
    assert.equal((await put(id, { access_key_id: 'AKIA2', secret_access_key: 'other' })).statusCode, 200);
    const kept = await remove(id);
    assert.deepEqual(kept.json(), { detail: 'Repositories depend on this storage bucket: tools' });
    const all = await fixture.token(owner);
    const username = `ada${accounts}`;
    assert.equal((await fixture.request('DELETE', `/v1/repos/${username}/tools`, all)).statusCode, 204);
    assert.equal((await remove(id)).statusCode, 204);
    assert.equal((await get(id)).statusCode, 404);
  });

  test('hold new repositories only when they are verified, by name or as the default', async () => {
    const all = await fixture.token(owner);
    const repository = async (name: string, more: object) => {
      const answer = await fixture.request('POST', '/v1/repositories', all, { body: { name, ...more } });
      const { detail, storage_bucket_id } = answer.json();
      return [answer.statusCode, answer.statusCode === 201 ? storage_bucket_id : detail] as const;
    };
    const id = await made({ ...ROLE, is_default: true });
    const unknown = '0190f3e2-7c1a-7b4e-9a35-ffffffffffff';
    assert.equal((await repository('a', { storage_bucket_id: unknown }))[0], 404);
    for (const more of [{}, { storage_bucket_id: id }]) {
      const [status, detail] = await repository('a', more);
      assert.deepEqual([status, /not verified/.test(String(detail))], [422, true]);
    }
    await verify(id);
    assert.deepEqual(await repository('a', {}), [201, id]);
    assert.deepEqual(await repository('b', { storage_bucket_id: id }), [201, id]);
    assert.deepEqual(await repository('c', { storage_bucket_id: null }), [201, null]);
    assert.equal((await get(id)).json().repository_count, 2);
    await put(id, { is_default: false });
    assert.deepEqual(await repository('d', {}), [201, null]);
  });

  test('come with what a cloud must trust', async () => {
    const setup = (await fixture.request('GET', `${PATH}/oidc-setup`, token)).json();
    assert.deepEqual(
      [setup.issuer, setup.audience, setup.subject],
      ['http://localhost:8080', 'sts.amazonaws.com', `account:${owner}`],
    );
    const { Condition } = setup.trust_policy.Statement[0];
    assert.equal(Condition.StringEquals['localhost:8080:sub'], `account:${owner}`);
  });

  test('record an error that repeats once, however often it comes', async () => {
    const id = (await made(ROLE)) as StorageBucketId;
    const error = { bucket: id, repository: null, operation: 'read', code: 'unreachable' } as const;
    const record = () => recordBucketError(fixture.context, { account: owner, cause: CAUSE }, error);
    await Promise.all(Array.from({ length: 50 }, record));
    for (let n = 0; n < 50; n += 1) await record();
    assert.equal((await errors()).json().pagination.total, 1);
  });
});
