/** The pages of storage buckets: what they show, which forms they take, and what strangers and hostile names get. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest';
import { ERRORS_SHOWN_MAX, REPOSITORIES_SHOWN_MAX } from '../../../apps/website/buckets/bucket.ts';
import type { StorageBucketId } from '../../../core/kernel/ids.ts';
import { STORAGE_BUCKETS_MAX } from '../../../core/kernel/limits.ts';
import { changePlan } from '../../../core/use-cases/accounts/accounts.ts';
import { recordBucketError } from '../../../core/use-cases/buckets/record-bucket-error.ts';
import { letLayersGo } from '../../../core/use-cases/repositories/expire-layers-early.ts';
import { createRepository, deleteRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { accepted } from '../../support/accounts.ts';
import { CAUSE } from '../../support/node.ts';
import { type Browser, createWebsiteFixture, type WebsiteFixture } from '../../support/website.ts';

const HOSTILE = '"><script>alert(1)</script>';
const SECRET = 'canary-secret-key';
const ROLE = { name: 'Archive', bucket_name: 'layers', role_arn: 'arn:aws:iam::123456789012:role/strata' };
const KEYS = {
  ...{ name: 'Home', bucket_name: 'layers', region: 'us-east-1', endpoint_url: 'https://minio.example:9000' },
  ...{ access_key_id: 'AKIA1', secret_access_key: SECRET },
};
const CREATE = '/storage-buckets/create';

describe('The pages of storage buckets', () => {
  let fixture: WebsiteFixture;
  let number = 0;

  beforeAll(async () => {
    fixture = await createWebsiteFixture();
  });
  afterAll(() => fixture.close());
  beforeEach(() => fixture.api.buckets.fail(null));

  /** A person with an account of their own, signed in. */
  const person = async () => {
    number += 1;
    const account = await fixture.api.account(`person-${number}`);
    return { account, browser: await fixture.signedIn(account) };
  };
  const made = async (browser: Browser, kind = 's3', fields: object = ROLE): Promise<string> => {
    const { location, html } = await browser.submit(`${CREATE}/${kind}`, { ...fields });
    assert.match(location ?? html, /^\/storage-buckets\/[0-9a-f-]{36}$/);
    return location ?? '';
  };

  test('say at first where things are, and lead to the guide', async () => {
    const { browser } = await person();
    const list = await browser.get('/storage-buckets');
    assert.equal(list.status, 200);
    assert.match(list.html, /No storage buckets yet/);
    const kinds = await browser.get(CREATE);
    const links = [...kinds.html.matchAll(/href="\/storage-buckets\/create\/([a-z0-9-]+)"/g)].map(([, kind]) => kind);
    assert.deepEqual(links, ['s3', 's3-keys', 'r2', 'minio']);
    for (const kind of links) assert.equal((await browser.get(`${CREATE}/${kind}`)).status, 200);
    for (const kind of ['azure', 'constructor', '__proto__']) {
      assert.equal((await browser.get(`${CREATE}/${kind}`)).status, 404, kind);
    }
  });

  test('show the trust policy of the account ready to copy, and say when a cloud cannot reach the service', async () => {
    const { account, browser } = await person();
    const { html } = await browser.get('/storage-buckets/setup');
    assert.match(html, new RegExp(`account:${account}`));
    assert.match(html, /sts:AssumeRoleWithWebIdentity/);
    assert.match(html, /s3:PutObject/);
    assert.match(html, /AWS cannot reach the address of this service, because it is not HTTPS/);
    assert.ok(html.length < 60_000);
  });

  test('make a bucket of each kind, verify it, and show how that ended', async () => {
    const { browser } = await person();
    const role = await made(browser);
    await made(browser, 'r2', { ...KEYS, name: 'Cloud', region: 'auto' });
    await made(browser, 's3-keys', { ...KEYS, name: 'Keys', endpoint_url: '' });
    const minio = await made(browser, 'minio', { ...KEYS, is_default: 'true' });
    const list = (await browser.get('/storage-buckets')).html;
    for (const words of [
      'Archive',
      'Cloudflare R2',
      'MinIO',
      'not verified',
      'default',
      `4 of ${STORAGE_BUCKETS_MAX}`,
    ]) {
      assert.ok(list.includes(words), words);
    }
    const done = await browser.submit(`${role}/verify`, {}, role);
    assert.equal(done.location, role);
    const shown = (await browser.get(role)).html;
    assert.match(shown, /<span class="mark good">verified/);
    assert.doesNotMatch(shown, /Conditional writes/);
    fixture.api.buckets.find({ conditionalWrites: false, checksBodies: true });
    await browser.submit(`${role}/verify`, {}, role);
    assert.match((await browser.get(role)).html, /<dt>Conditional writes<\/dt><dd>No: /);

    fixture.api.buckets.fail({ step: 'put', code: 'access-denied', message: `No put ${HOSTILE} ${SECRET}` });
    const failed = await browser.submit(`${minio}/verify`, {}, minio);
    assert.equal(failed.status, 422);
    assert.match(failed.html, /Verification failed at the step put: No put/);
    assert.ok(!failed.html.includes('<script>alert') && !failed.html.includes('canary'));
    const after = (await browser.get(minio)).html;
    assert.match(after, /<span class="mark bad">failed/);
    assert.match(after, /Step put: The provider denied access/);
    assert.ok(!after.includes('No put'), 'what the provider said is not kept');
    assert.match((await browser.get('/storage-buckets/errors')).html, /Step put: The provider denied access/);
  });

  test('keep what was entered but the secret, and say beside the field and above the form what was wrong', async () => {
    const { browser } = await person();
    await made(browser);
    const cases: readonly (readonly [string, object, string, RegExp])[] = [
      ['s3', { ...ROLE, name: 'x', role_arn: 'admin' }, 'role_arn', /arn:aws:iam/],
      ['s3', { ...ROLE, name: '' }, 'name', /1 to 100/],
      ['s3', { ...ROLE, name: 'ARCHIVE' }, 'name', /exists already/],
      ['s3', { ...ROLE, name: 'x', bucket_name: 'a/../b' }, 'bucket_name', /3 to 63/],
      ['s3', { ...ROLE, name: 'x', key_prefix: '../other' }, 'key_prefix', /single slashes/],
      ['minio', { ...KEYS, endpoint_url: 'https://127.0.0.1' }, 'endpoint_url', /public address/],
      ['minio', { ...KEYS, endpoint_url: 'https://me:canary@minio.example' }, 'endpoint_url', /username/],
      ['minio', { ...KEYS, endpoint_url: '' }, 'endpoint_url', /required/],
      ['minio', { ...KEYS, secret_access_key: '' }, 'secret_access_key', /required/],
      ['r2', { ...KEYS, region: 'evil.example/' }, 'region', /small letters/],
    ];
    for (const [kind, fields, field, text] of cases) {
      const { status, html } = await browser.submit(`${CREATE}/${kind}`, { ...fields });
      assert.equal(status, 422, JSON.stringify(fields));
      assert.match(html, new RegExp(`<a href="#${field}">`), field);
      assert.match(/<a href="#\w+">([^<]*)/.exec(html)?.[1] ?? '', text);
      assert.match(html, new RegExp(`id="${field}-error"`));
      assert.ok(!html.includes(SECRET), 'the secret is typed again');
      assert.match(html, /value="layers"|value="a\/\.\.\/b"/);
    }
    const { html } = await browser.submit(`${CREATE}/minio`, { ...KEYS, bucket_name: '', region: '' });
    const errors = [...html.matchAll(/<a href="#\w+">([^<]*)/g)].map(([, text]) => text);
    assert.deepEqual(errors, ['Bucket is required.', 'Region is required.'], 'all together');
  });

  test('attack: no field of any form runs a script', async () => {
    const { browser } = await person();
    for (const name of [...Object.keys(KEYS), 'role_arn', 'key_prefix']) {
      for (const kind of ['s3', 'minio']) {
        const { html } = await browser.submit(`${CREATE}/${kind}`, { ...ROLE, ...KEYS, [name]: HOSTILE });
        assert.ok(!html.includes('<script>alert'), `${kind} ${name}`);
      }
    }
    const path = await made(browser, 's3', { ...ROLE, name: `${HOSTILE} 2` });
    for (const page of ['/storage-buckets', path, `${path}/edit`, `${path}/delete`, '/storage-buckets/errors']) {
      assert.ok(!(await browser.get(page)).html.includes('<script>alert'), page);
    }
  });

  test('change a bucket and keep its secret unless another is typed, which is never shown', async () => {
    const { browser } = await person();
    const path = await made(browser, 'minio', KEYS);
    await browser.submit(`${path}/verify`, {}, path);
    const form = (await browser.get(`${path}/edit`)).html;
    assert.match(form, /value="AKIA1"/);
    assert.ok(!form.includes('canary'));
    const keep = { ...KEYS, secret_access_key: '', name: 'Renamed' };
    assert.equal((await browser.submit(`${path}/edit`, keep)).location, path);
    assert.match((await browser.get(path)).html, /<span class="mark good">verified/);
    assert.equal((await browser.submit(`${path}/edit`, { ...keep, region: 'eu-west-1' })).location, path);
    assert.match((await browser.get(path)).html, /<span class="mark warn">not verified/);
    await browser.submit(`${path}/verify`, {}, path);
    const { access } = fixture.api.buckets.checked.at(-1) ?? {};
    assert.ok(access?.mode === 'STATIC_KEYS' && access.secretAccessKey === SECRET && access.region === 'eu-west-1');
    const wrong = await browser.submit(`${path}/edit`, { ...keep, bucket_name: 'NO' });
    assert.equal(wrong.status, 422);
    assert.match(wrong.html, /value="NO"/);
  });

  test('offer verified buckets to a new repository, which then names its own', async () => {
    const { browser } = await person();
    assert.ok(!(await browser.get('/new')).html.includes('name="storage"'), 'there is nothing to choose');
    const path = await made(browser, 's3', { ...ROLE, is_default: 'true' });
    const id = path.slice(-36);
    assert.ok(!(await browser.get('/new')).html.includes(id), 'it is not verified');
    await browser.submit(`${path}/verify`, {}, path);
    assert.match((await browser.get('/new')).html, new RegExp(`<option value="${id}" selected>Archive`));
    assert.equal((await browser.submit('/new', { name: 'engine', storage: 'elsewhere' })).status, 422);
    const [, mine] = (await browser.submit('/new', { name: 'engine', storage: 'platform' })).location?.split('/') ?? [];
    assert.match((await browser.get(`/${mine}/engine/settings`)).html, /Stored in<\/dt><dd>the platform’s storage/);
    const taken = await browser.submit('/new', { name: 'engine', storage: id });
    assert.equal(taken.status, 422);
    assert.match(taken.html, new RegExp(`<option value="${id}" selected>`), 'the choice is kept');
    assert.equal((await browser.submit('/new', { name: 'archive', storage: id })).location, `/${mine}/archive`);
    assert.match(
      (await browser.get(`/${mine}/archive/settings`)).html,
      new RegExp(`Stored in</dt><dd><a href="${path}"`),
    );
    assert.match((await browser.get(path)).html, new RegExp(`<li><a href="/${mine}/archive">`));
    await browser.submit(`${path}/edit`, { ...ROLE, role_arn: 'arn:aws:iam::123456789012:role/other' }, `${path}/edit`);
    const pending = await browser.submit('/new', { name: 'late', storage: id });
    assert.match(pending.html, /<a href="#storage">The storage bucket is not verified/);
  });

  test('are in the navigation where the plan allows them, and stay there for who has one', async () => {
    const LINK = /<a [^>]*href="\/storage-buckets"[^>]*>Storage</;
    const { account, browser } = await person();
    assert.match((await browser.get('/usage')).html, LINK);
    await changePlan(fixture.api.context, CAUSE, account, 'FREE');
    assert.doesNotMatch((await browser.get('/usage')).html, LINK);
    const refused = (await browser.get('/storage-buckets/create')).html;
    assert.match(refused, /Your plan, FREE, takes no storage buckets\./);
    assert.doesNotMatch(refused, /storage-buckets\/create\//, 'no form is filled in vain');
    assert.match((await browser.get('/new')).html, /You have 0 of the 50 repositories of your plan, FREE\./);
    await changePlan(fixture.api.context, CAUSE, account, 'PRO');
    assert.doesNotMatch((await browser.get('/new')).html, /of your plan/);
    await made(browser);
    await changePlan(fixture.api.context, CAUSE, account, 'FREE');
    assert.match((await browser.get('/usage')).html, LINK);
  });

  test('ask before a deletion, and delete', async () => {
    const { browser } = await person();
    const path = await made(browser);
    const asked = await browser.get(`${path}/delete`);
    assert.match(asked.html, /What is stored there stays there/);
    assert.match(asked.html, /cannot be restored any more/);
    assert.match(asked.html, /This cannot be undone\./);
    assert.equal((await browser.submit(`${path}/delete`)).location, '/storage-buckets');
    assert.equal((await browser.get(path)).status, 404);
  });

  test('name what purges have still to remove from a bucket that is to be deleted', async () => {
    const { account, browser } = await person();
    const path = await made(browser);
    await browser.submit(`${path}/verify`, {}, path);
    const { api } = fixture;
    const origin = { account, cause: CAUSE };
    const wanted = { description: null, defaultBranch: null, storageBucketId: path.slice(-36) as StorageBucketId };
    const repository = accepted(await createRepository(api.context, origin, { ...wanted, name: 'old' }));
    const tip = api.objects.commit({ tree: api.objects.tree({}), seconds: 1 });
    await api.push(repository, { 'refs/heads/main': tip }, 5_000);
    accepted(await deleteRepository(api.context, origin, repository.id));
    accepted(await letLayersGo(api.context, origin, { id: repository.id, all: true, reason: 'purge' }));
    const refused = await browser.submit(`${path}/delete`);
    assert.equal(refused.status, 422);
    assert.match(refused.html, /when purges have removed 5000 bytes from it: try again in 60 minutes/);
  });

  test('keep their place while a deleted repository can come back, and say why one cannot', async () => {
    const { browser } = await person();
    const path = await made(browser);
    await browser.submit(`${path}/verify`, {}, path);
    const home = (await browser.submit('/new', { name: 'old', storage: path.slice(-36) })).location ?? '';
    const gone = await browser.submit(`${home}/delete`, { confirmation: 'old' }, `${home}/settings`);
    assert.equal(gone.status, 303, gone.html);
    const moved = await browser.submit(`${path}/edit`, { ...ROLE, key_prefix: 'elsewhere' }, `${path}/edit`);
    assert.equal(moved.status, 422);
    assert.match(moved.html, /deleted repositories can come back to them [^:]*: old/);
    assert.match(moved.html, /value="elsewhere"/, 'what was entered stays');
    const DELETED = '/settings/deleted-repositories';
    assert.match((await browser.get(DELETED)).html, /<button class="button main">Undelete</);
    assert.equal((await browser.submit(`${path}/delete`)).location, '/storage-buckets');
    const { html } = await browser.get(DELETED);
    assert.match(html, /It cannot be undeleted\. The storage bucket that held it was deleted\./);
    assert.doesNotMatch(html, /<button[^>]*>Undelete/);
    assert.match(html, />Purge…</);
  });

  test('list errors of repositories in buckets, page by page', async () => {
    const { account, browser } = await person();
    const path = await made(browser);
    const bucket = path.slice(-36) as StorageBucketId;
    const { ids } = fixture.context;
    const fail = async (count: number): Promise<void> => {
      for (let n = 0; n < count; n += 1) {
        const error = { bucket, repository: ids.next<never>(), operation: 'push', code: 'timed-out' } as const;
        await recordBucketError(fixture.context, { account, cause: CAUSE }, error);
      }
    };
    const shown = async () => {
      const { html } = await browser.get(path);
      return [html.match(/did not answer in time/g)?.length, html.includes('All errors')];
    };
    await fail(ERRORS_SHOWN_MAX);
    assert.deepEqual(await shown(), [ERRORS_SHOWN_MAX, false]);
    await fail(1);
    assert.deepEqual(await shown(), [ERRORS_SHOWN_MAX, true]);
    await fail(51 - ERRORS_SHOWN_MAX - 1);
    const first = (await browser.get('/storage-buckets/errors')).html;
    assert.equal(first.match(/did not answer in time/g)?.length, 50);
    assert.match(first, /href="\/storage-buckets\/errors\?page&#61;1">Older/);
    const second = (await browser.get('/storage-buckets/errors?page=1')).html;
    assert.equal(second.match(/did not answer in time/g)?.length, 1);
    for (const odd of ['-1', 'x', '1e9', '99999999999']) {
      assert.equal((await browser.get(`/storage-buckets/errors?page=${odd}`)).status, 200, odd);
    }
  });

  test('name the repositories in a bucket up to the limit, and say that there are more', async () => {
    const { account, browser } = await person();
    const path = await made(browser);
    await browser.submit(`${path}/verify`, {}, path);
    const storageBucketId = path.slice(-36) as StorageBucketId;
    const make = async (name: string): Promise<void> => {
      const wanted = { name, description: null, defaultBranch: null, storageBucketId };
      accepted(await createRepository(fixture.context, { account, cause: CAUSE }, wanted));
    };
    const named = async () => {
      const { html } = await browser.get(path);
      return [html.match(/<li><a href="\/person-/g)?.length, html.includes(`The first ${REPOSITORIES_SHOWN_MAX}.`)];
    };
    for (let n = 0; n < REPOSITORIES_SHOWN_MAX; n += 1) await make(`r${n}`);
    assert.deepEqual(await named(), [REPOSITORIES_SHOWN_MAX, false]);
    await make('more');
    assert.deepEqual(await named(), [REPOSITORIES_SHOWN_MAX, true]);
  });

  test('show nothing of them to strangers and to other people', async () => {
    const { browser } = await person();
    const path = await made(browser);
    const other = (await person()).browser;
    for (const below of ['', '/edit', '/delete']) {
      assert.equal((await other.get(`${path}${below}`)).status, 404, below);
      assert.match((await fixture.browser().get(`${path}${below}`)).location ?? '', /^\/sign-in/);
    }
    for (const action of ['/verify', '/edit', '/delete']) {
      assert.equal((await other.submit(`${path}${action}`, ROLE, '/storage-buckets/create/s3')).status, 404, action);
    }
    assert.equal((await browser.get(path)).status, 200);
  });
});
