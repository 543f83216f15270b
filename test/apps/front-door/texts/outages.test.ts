/** Every outage that a part may report, as REST and Git clients see it. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import type { LightMyRequestResponse } from 'fastify';
import { afterAll, beforeAll, describe, test, vi } from 'vitest';
import { newTokenSecret } from '../../../../adapters/node/token-secret.ts';
import { NodeBehind } from '../../../../apps/front-door/admission.ts';
import { OUTAGE_ERRORS, OUTAGES, type OutageCode, outageOf } from '../../../../apps/front-door/texts/outages.ts';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import { READ_WAIT_MS } from '../../../../core/kernel/limits.ts';
import { CheckpointError } from '../../../../core/ports/account-log.ts';
import { BucketFindingsError } from '../../../../core/ports/bucket-findings.ts';
import { RoleRefused } from '../../../../core/ports/buckets.ts';
import { DeliveryStoreError } from '../../../../core/ports/delivery-store.ts';
import { DeviceLoginRequestsError } from '../../../../core/ports/device-login-requests.ts';
import { EventStoreError } from '../../../../core/ports/event-store.ts';
import { LayerCompactionsError } from '../../../../core/ports/layer-compactions.ts';
import { LayerStoreError } from '../../../../core/ports/layer-store.ts';
import { LogKeysError } from '../../../../core/ports/log-keys.ts';
import { ManifestWritesError } from '../../../../core/ports/manifest-writes.ts';
import { ObjectDatabaseError } from '../../../../core/ports/object-database.ts';
import { PasskeyChallengesError } from '../../../../core/ports/passkey-challenges.ts';
import { PasswordHasherError } from '../../../../core/ports/password-hasher.ts';
import { RateLimitsError } from '../../../../core/ports/rate-limits.ts';
import { ReadModelError } from '../../../../core/ports/read-models.ts';
import { RefusedExchangesError } from '../../../../core/ports/refused-exchanges.ts';
import { SessionStoreError } from '../../../../core/ports/session-store.ts';
import { SigningKeysError } from '../../../../core/ports/signing-keys.ts';
import { VaultError } from '../../../../core/ports/vault.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../../support/api-fixture.ts';
import { type GitAnswer, type GitFixture, startGit } from '../../../support/git-fixture.ts';
import { commandList, packet } from '../../../support/git-wire.ts';
import { rawRequest } from '../../../support/raw-http.ts';

const WORDS = 'secret message';
const REFS = '/r/ada/engine.git/info/refs?service=git-upload-pack';

/** One error for each code: a new code does not compile until it has one here. */
const ERRORS: { readonly [Code in OutageCode]: Error } = {
  'node-behind': new NodeBehind(WORDS),
  'delivery-store-unavailable': new DeliveryStoreError('delivery-store-unavailable', WORDS),
  'device-logins-unavailable': new DeviceLoginRequestsError('device-logins-unavailable', WORDS),
  'layer-compactions-unavailable': new LayerCompactionsError('layer-compactions-unavailable', WORDS),
  'manifest-writes-unavailable': new ManifestWritesError('manifest-writes-unavailable', WORDS),
  'log-unavailable': new EventStoreError('log-unavailable', WORDS),
  'append-outcome-unknown': new EventStoreError('append-outcome-unknown', WORDS),
  'clock-differs': new EventStoreError('clock-differs', WORDS),
  'append-too-late': new EventStoreError('append-too-late', WORDS),
  'append-too-large': new EventStoreError('append-too-large', WORDS),
  'invalid-event': new EventStoreError('invalid-event', WORDS),
  'log-contradicts-checkpoint': new CheckpointError('log-contradicts-checkpoint', WORDS),
  'log-keys-tampered': new LogKeysError('log-keys-tampered', WORDS),
  'log-keys-unavailable': new LogKeysError('log-keys-unavailable', WORDS),
  'event-unreadable': new EventStoreError('event-unreadable', WORDS),
  'log-diverged': new EventStoreError('log-diverged', WORDS),
  'read-model-behind': new ReadModelError('read-model-behind', WORDS),
  'read-model-parked': new ReadModelError('read-model-parked', WORDS),
  'read-model-unavailable': new ReadModelError('read-model-unavailable', WORDS),
  'layer-corrupt': new ObjectDatabaseError('layer-corrupt', WORDS),
  'layer-missing': new ObjectDatabaseError('layer-missing', WORDS),
  'object-database-unavailable': new ObjectDatabaseError('object-database-unavailable', WORDS),
  'passkey-challenges-unavailable': new PasskeyChallengesError('passkey-challenges-unavailable', WORDS),
  'object-too-large': new ObjectDatabaseError('object-too-large', WORDS),
  'reading-too-costly': new ObjectDatabaseError('reading-too-costly', WORDS),
  'password-hasher-busy': new PasswordHasherError('password-hasher-busy', WORDS),
  'rate-limits-unavailable': new RateLimitsError('rate-limits-unavailable', WORDS),
  'bucket-findings-unavailable': new BucketFindingsError('bucket-findings-unavailable', WORDS),
  'refused-exchanges-unavailable': new RefusedExchangesError('refused-exchanges-unavailable', WORDS),
  'layer-not-found': new LayerStoreError('layer-not-found', WORDS),
  'layer-store-full': new LayerStoreError('layer-store-full', WORDS),
  'layer-store-refused': new LayerStoreError('layer-store-refused', WORDS),
  'layer-store-unavailable': new LayerStoreError('layer-store-unavailable', WORDS),
  'range-not-satisfiable': new LayerStoreError('range-not-satisfiable', WORDS),
  'bucket-missing': new LayerStoreError('bucket-missing', WORDS),
  'access-denied': new LayerStoreError('access-denied', WORDS),
  'get-denied': new LayerStoreError('get-denied', WORDS),
  'head-denied': new LayerStoreError('head-denied', WORDS),
  'put-denied': new LayerStoreError('put-denied', WORDS),
  'delete-denied': new LayerStoreError('delete-denied', WORDS),
  'list-denied': new LayerStoreError('list-denied', WORDS),
  'credentials-invalid': new LayerStoreError('credentials-invalid', WORDS),
  'credentials-refused': new LayerStoreError('credentials-refused', WORDS),
  'wrong-region': new LayerStoreError('wrong-region', WORDS),
  'clock-skewed': new LayerStoreError('clock-skewed', WORDS),
  throttled: new LayerStoreError('throttled', WORDS),
  'timed-out': new LayerStoreError('timed-out', WORDS),
  'certificate-invalid': new LayerStoreError('certificate-invalid', WORDS),
  'target-refused': new LayerStoreError('target-refused', WORDS),
  unreachable: new LayerStoreError('unreachable', WORDS),
  'not-s3': new LayerStoreError('not-s3', WORDS),
  'object-missing': new RoleRefused('object-missing', WORDS),
  'object-altered': new RoleRefused('object-altered', WORDS),
  'multipart-missing': new RoleRefused('multipart-missing', WORDS),
  failed: new RoleRefused('failed', WORDS),
  'session-store-unavailable': new SessionStoreError('session-store-unavailable', WORDS),
  'signing-keys-tampered': new SigningKeysError('signing-keys-tampered', WORDS),
  'signing-keys-unavailable': new SigningKeysError('signing-keys-unavailable', WORDS),
  'account-erased': new VaultError('account-erased', WORDS),
  'record-tampered': new VaultError('record-tampered', WORDS),
  'vault-unavailable': new VaultError('vault-unavailable', WORDS),
  'disk-full': Object.assign(new Error(WORDS), { code: 'ENOSPC' }),
};

const CASES = Object.entries(ERRORS).map(([code, error]) => ({ error, code, outage: OUTAGES[code as OutageCode] }));

describe('An outage', () => {
  let fixture: ApiFixture;
  let git: GitFixture;
  let token: TestToken;
  let tip: ObjectId;
  /** The errors that the parts throw: on reading objects, and on storing an address. */
  let openFault: Error | null = null;
  let addressFault: Error | null = null;
  let headFault: Error | null = null;

  beforeAll(async () => {
    fixture = await createApiFixture({
      objects: (objects) => ({
        ...objects.database,
        open: async (committed) => {
          if (openFault !== null) throw openFault;
          return objects.database.open(committed);
        },
      }),
      wrapEvents: (events) => ({
        ...events,
        head: async () => {
          if (headFault !== null) throw headFault;
          return events.head();
        },
      }),
      sourceAddressRef: async () => {
        if (addressFault !== null) throw addressFault;
        return null;
      },
    });
    const ada = await fixture.account('ada');
    token = await fixture.token(ada);
    const repository = await fixture.repository(ada, 'engine');
    const { objects } = fixture;
    const tree = objects.tree({ file: ['100644', objects.blob('text')] });
    tip = objects.commit({ tree, seconds: 1 });
    await fixture.push(repository, { 'refs/heads/master': tip });
    git = await startGit(fixture);
  });
  afterAll(async () => {
    await git.close();
    await fixture.close();
  });

  const advertised = (by: TestToken): Promise<GitAnswer> => git.request('GET', REFS, by);

  const exchange = (service: string, body: Buffer): Promise<GitAnswer> =>
    git.request('POST', `/r/ada/engine.git/${service}`, token, {
      body,
      headers: { 'content-type': `application/x-${service}-request`, 'git-protocol': 'version=2' },
    });

  const fetched = (): Promise<GitAnswer> =>
    exchange(
      'git-upload-pack',
      Buffer.concat([
        packet('command=fetch\n'),
        Buffer.from('0001'),
        packet(`want ${tip}\n`),
        packet('done\n'),
        Buffer.from('0000'),
      ]),
    );

  function isTold(code: string, { status, retryAfter, text }: Told): void {
    const outage = OUTAGES[code as OutageCode];
    assert.equal(status, outage.status, `${code}: ${text}`);
    assert.equal(retryAfter, outage.status === 503 ? String(outage.retryAfterSeconds) : null, code);
    assert.equal(text, outage.message, code);
    const line = fixture.logged.pop() ?? '';
    assert.ok(line.includes(WORDS) && line.includes('requestId'), 'the log line reports the error');
  }

  test('has the same status, message and Retry-After over REST and over Git, for every part', async () => {
    for (const { code, error } of CASES) {
      openFault = error;
      isTold(code, toldByRest(await fixture.request('GET', '/v1/repos/ada/engine/contents/file', token)));
      const answer = await fetched();
      isTold(code, toldByGit(answer));
      assert.equal(fixture.diverged.count, code === 'log-diverged' ? 2 : 0, code);
      fixture.diverged.count = 0;
      assert.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8', 'git shows it after `remote:`');
      openFault = null;
    }
  });

  test('that only the operator can end is no outage to wait for: the log diverged, or contradicts what was signed', () => {
    assert.deepEqual(OUTAGES['log-diverged'], {
      status: 500,
      message: 'The log lacks or has changed what this service had read of it: the operator of the service must act',
    });
    assert.deepEqual(OUTAGES['log-contradicts-checkpoint'], {
      status: 500,
      message: 'The log does not continue what was signed before: the operator of the service must accept the loss',
    });
  });

  test('of the vault fails only writes, over REST and over Git', async () => {
    addressFault = ERRORS['vault-unavailable'];
    const created = await fixture.request('POST', '/v1/repositories', token, { body: { name: 'other' } });
    isTold('vault-unavailable', toldByRest(created));
    const pushed = await exchange('git-receive-pack', commandList([{ ref: 'refs/heads/master', before: tip }]));
    assert.match(pushed.text, /unpack The service cannot reach its storage, try again: nothing was changed/);
    assert.match(fixture.logged.pop() ?? '', /vault-unavailable.*"status":503|"status":503.*vault-unavailable/s);
    assert.equal((await advertised(token)).status, 200);
    addressFault = null;
    assert.equal((await fixture.request('GET', '/v1/repos/ada/engine/branches', token)).json().branches.length, 1);
  });

  test('of the log fails every request before it is authenticated', async () => {
    headFault = ERRORS['log-unavailable'];
    for (const by of [token, { ...token, secret: newTokenSecret() }]) {
      isTold('log-unavailable', toldByGit(await advertised(by)));
      isTold('log-unavailable', toldByRest(await fixture.request('GET', '/v1/account/usage', by)));
    }
    headFault = null;
  });

  test('that a full disk caused is reported as such, however deep the cause, unless the log failed', () => {
    const full = ERRORS['disk-full'];
    const caused = new ObjectDatabaseError('object-database-unavailable', WORDS, {
      cause: new Error('x', { cause: full }),
    });
    assert.equal(outageOf(caused), OUTAGES['disk-full']);
    assert.equal(outageOf(Object.assign(new Error('quota'), { code: 'EDQUOT' })), OUTAGES['disk-full']);
    assert.equal(outageOf(new EventStoreError('log-unavailable', WORDS, { cause: full })), OUTAGES['log-unavailable']);
  });

  test('of the layer store is told by its own code where the objects could not be had', () => {
    const caused = new ObjectDatabaseError('object-database-unavailable', WORDS, { cause: ERRORS['access-denied'] });
    assert.equal(outageOf(caused), OUTAGES['access-denied']);
  });

  test('is no bug: a bug is answered with 500', async () => {
    for (const bug of [
      new Error(WORDS),
      new TypeError(WORDS),
      Object.assign(new Error(WORDS), { code: 'ENOENT' }),
      WORDS,
    ]) {
      assert.equal(outageOf(bug), null);
    }
    openFault = new Error(WORDS);
    const rest = await fixture.request('GET', '/v1/repos/ada/engine/contents/file', token);
    const fetch = await fetched();
    assert.deepEqual([rest.statusCode, fetch.status], [500, 500]);
    for (const text of [rest.body, fetch.text]) assert.doesNotMatch(text, new RegExp(WORDS));
    assert.match(fetch.text, new RegExp(fetch.headers.get('x-request-id') ?? 'none'));
    openFault = null;
  });
});

test('a node that stays behind the log answers 503 after 10 s, over REST and over Git, never an older state', async () => {
  let hangs = false;
  const stuck = await createApiFixture({
    wrapEvents: (events) => ({ ...events, head: () => (hangs ? new Promise(() => {}) : events.head()) }),
  });
  const ada = await stuck.account('ada');
  const token = await stuck.token(ada);
  await stuck.repository(ada, 'engine');
  const git = await startGit(stuck);
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  try {
    hangs = true;
    const authorization = `Authorization: Basic ${Buffer.from(`ada:${token.secret}`).toString('base64')}`;
    const requests = [
      rawRequest(git.port, { target: REFS, headers: [authorization] }),
      stuck.request('GET', '/v1/repos/ada/engine', token),
    ] as const;
    // The fake clock does not advance until the requests have reached the barrier.
    for (let turn = 0; turn < 1_000; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(git.finished.length, 0);
    vi.advanceTimersByTime(READ_WAIT_MS);
    const [answer, rest] = await Promise.all(requests);
    const { message } = OUTAGES['node-behind'];
    assert.deepEqual([answer.status, answer.headers['retry-after'], answer.body], [503, '1', `${message}\n`]);
    assert.deepEqual([rest.statusCode, rest.headers['retry-after'], rest.json().detail], [503, '1', message]);
  } finally {
    vi.useRealTimers();
    await git.close();
    await stuck.close();
  }
});

test('every error class that a port declares is in the table', async () => {
  const folder = new URL('../../../../core/ports/', import.meta.url);
  const declared: string[] = [];
  for (const file of readdirSync(folder)) {
    const port = (await import(new URL(file, folder).href)) as Readonly<Record<string, unknown>>;
    for (const [name, value] of Object.entries(port)) {
      if (typeof value === 'function' && value.prototype instanceof Error) declared.push(name);
    }
  }
  assert.ok(declared.length > 0);
  const known = OUTAGE_ERRORS.map(({ name }) => name);
  assert.deepEqual(declared.toSorted(), known.filter((name) => name !== NodeBehind.name).toSorted());
});

test('every message says what to do, and names no machine', () => {
  for (const [code, { message }] of Object.entries(OUTAGES)) {
    assert.match(message, /^[A-Z][^\n]{5,120}[a-z]$/, code);
    // The name of a permission has a digit, and is no machine.
    const told = message.replace(/ \(s3:[A-Za-z]+( and s3:[A-Za-z]+)?\)/, '');
    assert.doesNotMatch(told, /postgres|eventstore|\/|:\/\/|\d/i, code);
  }
});

interface Told {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly text: string;
}

function toldByRest({ statusCode: status, headers, body }: LightMyRequestResponse): Told {
  const { detail } = JSON.parse(body) as { readonly detail: string };
  const retryAfter = headers['retry-after'];
  return { status, retryAfter: retryAfter === undefined ? null : String(retryAfter), text: detail };
}

function toldByGit({ status, headers, text }: GitAnswer): Told {
  return { status, retryAfter: headers.get('retry-after'), text: text.replace(/\n$/, '') };
}
