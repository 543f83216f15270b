/** The settings of the platform's bucket: an unusable one stops the start by name, and no message repeats a key. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { readSettings } from '../../../../apps/server/settings.ts';
import { faultsIn } from '../../../support/settings-faults.ts';

type Environment = Readonly<Record<string, string>>;
const CHOSEN = {
  STRATA_STORAGE: 's3',
  STRATA_S3_BUCKET: 'layers',
  STRATA_S3_ACCESS_KEY_ID: 'AKIA1',
  STRATA_S3_SECRET_ACCESS_KEY: 'hunter2',
};

const read = (environment: Environment) => {
  const { layerStore } = readSettings(environment, '/tmp');
  return layerStore.kind === 's3' ? layerStore : null;
};

const faultsOf = (environment: Environment) => faultsIn(() => read(environment));

describe("the settings of the platform's bucket", () => {
  test('choose files unless a bucket is chosen with its keys', () => {
    assert.equal(read({}), null);
    assert.equal(read({ ...CHOSEN, STRATA_STORAGE: 'filesystem' }), null);
    assert.deepEqual(read(CHOSEN), {
      kind: 's3',
      endpointUrl: null,
      region: 'us-east-1',
      bucket: 'layers',
      prefix: '',
      pathStyle: false,
      accessKeyId: 'AKIA1',
      secretAccessKey: 'hunter2',
    });
    assert.match(faultsOf({ STRATA_STORAGE: 'gcs' }), /STRATA_STORAGE is "gcs": expected one of filesystem, s3/);
  });

  test('name every part that is missing', () => {
    const faults = faultsOf({ STRATA_STORAGE: 's3' });
    for (const name of ['BUCKET', 'ACCESS_KEY_ID', 'SECRET_ACCESS_KEY']) {
      assert.match(faults, new RegExp(`STRATA_S3_${name} is not set: expected the .*, for STRATA_STORAGE=s3`));
    }
  });

  test('put the name of the bucket into the path where an endpoint is named, unless told otherwise', () => {
    const at = { ...CHOSEN, STRATA_S3_ENDPOINT: 'http://10.0.0.1:9000' };
    assert.deepEqual([read(at)?.endpointUrl, read(at)?.pathStyle], ['http://10.0.0.1:9000', true]);
    assert.equal(read({ ...at, STRATA_S3_PATH_STYLE: 'false' })?.pathStyle, false);
    assert.equal(read({ ...CHOSEN, STRATA_S3_PATH_STYLE: 'true' })?.pathStyle, true);
  });

  test('refuse an endpoint with a path, a query or a user, and never print a possible secret', () => {
    for (const endpoint of ['s3:9000', 'ftp://s3', 'http://s3/bucket', 'http://s3/?a=b', 'http://s3/#a']) {
      const fault = faultsOf({ ...CHOSEN, STRATA_S3_ENDPOINT: endpoint });
      assert.ok(fault.includes(`STRATA_S3_ENDPOINT is ${JSON.stringify(endpoint)}: expected`), fault);
    }
    const withUser = faultsOf({ ...CHOSEN, STRATA_S3_ENDPOINT: 'http://ada:hunter2@s3' });
    assert.match(withUser, /STRATA_S3_ENDPOINT is set, but with something before an @/);
    const broken = faultsOf({ ...CHOSEN, STRATA_S3_SECRET_ACCESS_KEY: 'hunter2\nX-Other: 1' });
    assert.match(broken, /STRATA_S3_SECRET_ACCESS_KEY is set, but of another form/);
    for (const text of [withUser, broken]) assert.doesNotMatch(text, /hunter2/);
  });

  test('end a prefix in one slash, and refuse one that is no path', () => {
    for (const [given, kept] of [
      ['', ''],
      ['/', ''],
      ['git', 'git/'],
      ['git/eu//', 'git/eu/'],
    ] as const) {
      assert.equal(read({ ...CHOSEN, STRATA_S3_PREFIX: given })?.prefix, kept);
    }
    for (const prefix of ['/git', '../git', 'a//b', 'a b', 'a/.b']) {
      assert.match(faultsOf({ ...CHOSEN, STRATA_S3_PREFIX: prefix }), /STRATA_S3_PREFIX is ".*": expected names/);
    }
  });

  test('take values of the greatest length, and refuse one character more', () => {
    const component = 'p'.repeat(100);
    const path = (components: number): string => Array(components).fill(component).join('/');
    for (const [name, longest, tooLong] of [
      ['STRATA_S3_BUCKET', 'b'.repeat(63), 'b'.repeat(64)],
      ['STRATA_S3_BUCKET', 'bbb', 'bb'],
      ['STRATA_S3_REGION', 'r'.repeat(50), 'r'.repeat(51)],
      ['STRATA_S3_PREFIX', component, `${component}p`],
      ['STRATA_S3_PREFIX', path(10), path(11)],
      ['STRATA_S3_ACCESS_KEY_ID', 'k'.repeat(256), 'k'.repeat(257)],
      ['STRATA_S3_SECRET_ACCESS_KEY', 'k'.repeat(256), 'k'.repeat(257)],
    ] as const) {
      assert.notEqual(read({ ...CHOSEN, [name]: longest }), null);
      assert.match(faultsOf({ ...CHOSEN, [name]: tooLong }), new RegExp(`${name} is `));
    }
  });

  test('refuse names that would choose another endpoint', () => {
    for (const bucket of ['arn:aws:s3:eu-west-1:1:accesspoint/a', 'a/b', '../a', 'ab', 'a b c', '-ab', 'evil.test#']) {
      assert.match(faultsOf({ ...CHOSEN, STRATA_S3_BUCKET: bucket }), /STRATA_S3_BUCKET is ".*": expected the name/);
    }
    assert.match(faultsOf({ ...CHOSEN, STRATA_S3_REGION: 'eu.evil.test/' }), /STRATA_S3_REGION is "/);
  });
});
