/** The settings of storage buckets: what is taken, and the one form that it gets. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { parseBucketSettings, type WantedBucketSettings, wantedOf } from '../../../../core/account/buckets/settings.ts';
import {
  BUCKET_ACCESS_KEY_ID_LENGTH_MAX,
  BUCKET_KEY_PREFIX_LENGTH_MAX,
  BUCKET_REGION_LENGTH_MAX,
  BUCKET_ROLE_ARN_LENGTH_MAX,
  BUCKET_SECRET_KEY_LENGTH_MAX,
  OUTGOING_URL_LENGTH_MAX,
} from '../../../../core/kernel/limits.ts';

const ROLE: WantedBucketSettings = {
  ...{ provider: 'S3', authMode: 'OIDC', bucketName: 'layers', keyPrefix: 'strata' },
  ...{ roleArn: 'arn:aws:iam::123456789012:role/strata', region: null, endpointUrl: null },
  ...{ accessKeyId: null, secretAccessKey: null },
};
const KEYS: WantedBucketSettings = {
  ...{ provider: 'MINIO', authMode: 'STATIC_KEYS', bucketName: 'layers', keyPrefix: '' },
  ...{ roleArn: null, region: 'us-east-1', endpointUrl: 'https://minio.example:9000' },
  ...{ accessKeyId: 'AKIA1', secretAccessKey: 's3cr/et+' },
};

function parsed(wanted: WantedBucketSettings) {
  const result = parseBucketSettings(wanted);
  assert.ok('settings' in result, JSON.stringify(result));
  return result.settings;
}

/** Returns the setting at fault and its fault, or the code of another refusal. */
function refusal(wanted: WantedBucketSettings): string | null {
  const result = parseBucketSettings(wanted);
  if (!('refused' in result)) return null;
  const { refused } = result;
  return refused.code === 'storage-bucket-setting' ? `${refused.setting} ${refused.fault}` : refused.code;
}

describe('Settings of a storage bucket', () => {
  test('get one form: a prefix ends in a slash, an endpoint is a lower-case origin', () => {
    assert.deepEqual(parsed(ROLE), {
      provider: 'S3',
      place: { bucketName: 'layers', keyPrefix: 'strata/', endpointUrl: null },
      access: { mode: 'OIDC', roleArn: ROLE.roleArn },
    });
    assert.equal(parsed({ ...KEYS, keyPrefix: 'a/b/' }).place.keyPrefix, 'a/b/');
    assert.equal(parsed(KEYS).place.keyPrefix, '');
    const { endpointUrl } = parsed({ ...KEYS, endpointUrl: 'HTTPS://MinIO.example:9000/' }).place;
    assert.equal(endpointUrl, 'https://minio.example:9000');
  });

  test('can be taken apart again for a change of some of them', () => {
    for (const wanted of [ROLE, KEYS]) {
      const settings = parsed(wanted);
      assert.deepEqual(parsed(wantedOf(settings)), settings);
    }
  });

  test('of a role hold neither endpoint nor region nor keys, even if they are sent', () => {
    const sent = { region: 'x y', endpointUrl: 'https://10.0.0.1', accessKeyId: 'a', secretAccessKey: 'canary' };
    assert.deepEqual(parsed({ ...ROLE, ...sent }), parsed(ROLE));
    assert.equal('roleArn' in parsed({ ...KEYS, roleArn: 'nonsense' }).access, false);
  });

  test('take a role only of S3, and an endpoint of Amazon only for S3', () => {
    assert.equal(refusal({ ...ROLE, provider: 'R2' }), 'auth_mode not-offered');
    assert.equal(refusal({ ...ROLE, provider: 'MINIO' }), 'auth_mode not-offered');
    assert.equal(parsed({ ...KEYS, provider: 'S3', endpointUrl: null }).place.endpointUrl, null);
    assert.equal(refusal({ ...KEYS, provider: 'R2', endpointUrl: '' }), 'endpoint_url missing');
    assert.equal(refusal({ ...KEYS, provider: 'S3', endpointUrl: '' }), 'endpoint_url malformed');
  });

  test('are refused by the name of what is missing', () => {
    assert.equal(refusal({ ...ROLE, roleArn: null }), 'role_arn missing');
    assert.equal(refusal({ ...ROLE, bucketName: '' }), 'bucket_name missing');
    for (const setting of ['region', 'accessKeyId', 'secretAccessKey'] as const) {
      const name = { region: 'region', accessKeyId: 'access_key_id', secretAccessKey: 'secret_access_key' }[setting];
      assert.equal(refusal({ ...KEYS, [setting]: null }), `${name} missing`);
      assert.equal(refusal({ ...KEYS, [setting]: '' }), `${name} missing`);
    }
  });

  test('cannot lead a request to another host: a region and a bucket are parts of names of hosts', () => {
    for (const region of ['us-east-1.evil.example/', 'us-east-1@evil', 'a.b', 'EU', 'a--b', '-a', 'a ', 'a\n']) {
      assert.equal(refusal({ ...KEYS, region }), 'region malformed', region);
    }
    for (const bucketName of ['ab', 'a/../b', 'a..b', '10.0.0.1', 'Layers', 'a_b', 'x?y', 'x#y', '.ab', 'ab-', 'a b']) {
      assert.equal(refusal({ ...ROLE, bucketName }), 'bucket_name malformed', bucketName);
    }
    for (const endpointUrl of ['minio.example', 'https://', 'https://a/b', 'https://a?b', 'https://a#b', 'ftp://a']) {
      assert.equal(refusal({ ...KEYS, endpointUrl }), 'endpoint_url malformed', endpointUrl);
    }
  });

  test('cannot leave the prefix or add a header', () => {
    for (const keyPrefix of ['/', '/a', 'a//b', '..', 'a/../b', './a', 'a\\b', 'a b', 'ä', 'a?b', 'a%2f', 'a\r\nb']) {
      assert.equal(refusal({ ...ROLE, keyPrefix }), 'key_prefix malformed', keyPrefix);
    }
    for (const accessKeyId of ['a/b', 'a,b', 'a b', 'a\r\nX: y', 'ä']) {
      assert.equal(refusal({ ...KEYS, accessKeyId }), 'access_key_id malformed', accessKeyId);
    }
    for (const secretAccessKey of ['a b', 'a\n', 'ä']) {
      assert.equal(refusal({ ...KEYS, secretAccessKey }), 'secret_access_key malformed');
    }
    assert.equal(refusal({ ...ROLE, roleArn: 'arn:aws:iam::1:user/x' }), 'role_arn malformed');
  });

  test('are as long as their limits allow, and no longer', () => {
    const texts = (base: WantedBucketSettings, setting: string, lengthMax: number, before = '') =>
      [lengthMax, lengthMax + 1].map((length) => refusal({ ...base, [setting]: before.padEnd(length, 'a') }));
    assert.deepEqual(texts(KEYS, 'region', BUCKET_REGION_LENGTH_MAX), [null, 'region malformed']);
    assert.deepEqual(texts(KEYS, 'accessKeyId', BUCKET_ACCESS_KEY_ID_LENGTH_MAX), [null, 'access_key_id malformed']);
    const secrets = texts(KEYS, 'secretAccessKey', BUCKET_SECRET_KEY_LENGTH_MAX);
    assert.deepEqual(secrets, [null, 'secret_access_key malformed']);
    assert.deepEqual(texts(KEYS, 'bucketName', 63), [null, 'bucket_name malformed']);
    const prefixes = texts(ROLE, 'keyPrefix', BUCKET_KEY_PREFIX_LENGTH_MAX - 1);
    assert.deepEqual(prefixes, [null, 'key_prefix malformed']);
    const endpoints = texts(KEYS, 'endpointUrl', OUTGOING_URL_LENGTH_MAX, 'https://');
    assert.deepEqual(endpoints, [null, 'storage-bucket-endpoint-refused']);
    // The form of a role's name is shorter than the limit, which bounds the work of matching it.
    const roleArn = `arn:aws:iam::123456789012:role/${'r'.repeat(BUCKET_ROLE_ARN_LENGTH_MAX)}`;
    assert.equal(refusal({ ...ROLE, roleArn }), 'role_arn malformed');
  });
});
