/** Identity tokens of this service end to end: a cloud that checks them gives credentials, which store an object. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import {
  CreateOpenIDConnectProviderCommand,
  CreateRoleCommand,
  PutRolePolicyCommand,
  UpdateAssumeRolePolicyCommand,
} from '@aws-sdk/client-iam';
import { CreateBucketCommand, GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { beforeAll, describe, test } from 'vitest';
import { createTokenSigning } from '../../adapters/jose/token-signing.ts';
import { systemClock } from '../../adapters/node/clock.ts';
import { uuids } from '../../adapters/node/ids.ts';
import { createS3Buckets } from '../../adapters/s3/buckets.ts';
import { createTokenService } from '../../adapters/sts/assume-role.ts';
import { createStsRoles } from '../../adapters/sts/roles.ts';
import { roleSetup } from '../../core/account/role-trust.ts';
import { plusMs } from '../../core/kernel/ids.ts';
import type { RoleAccess, RoleCredentials } from '../../core/ports/buckets.ts';
import type { Clock } from '../../core/ports/clock.ts';
import { layerKey } from '../../core/repository/layer.ts';
import { createIdentityIssuer } from '../../core/use-cases/issuing/identity-issuer.ts';
import { rotateSigningKeys } from '../../core/use-cases/issuing/rotate-signing-keys.ts';
import { createKeyRing } from '../../core/use-cases/issuing/signing-key-ring.ts';
import { type ApiFixture, createApiFixture } from '../support/api-fixture.ts';
import { cleanUp, suiteEnding } from '../support/cleanup.ts';
import { type Cloud, startCloud } from '../support/cloud/cloud.ts';
import { PUBLIC_ADDRESS } from '../support/cloud/network.ts';
import { newAccount } from '../support/events.ts';
import { createMemorySigningKeys } from '../support/memory/signing-keys.ts';
import { isThere, needs } from '../support/optional-suites.ts';

const BUCKET = 'layers-of-ada';
const ISSUER = `https://${PUBLIC_ADDRESS}/strata`;
const ROTATING = `https://${PUBLIC_ADDRESS}/rotating`;
const ROLE = 'arn:aws:iam::000000000000:role/strata';

describe('A role in a cloud', isThere('versitygw') ? needs('network-namespace') : needs('versitygw'), () => {
  const ending = suiteEnding();
  const access: RoleAccess = { mode: 'OIDC', account: newAccount(), roleArn: ROLE };
  const setup = roleSetup(ISSUER, access.account, ROLE);
  const store = createMemorySigningKeys();
  const signing = createTokenSigning();
  let shiftMs = 0;
  /** The clock of the service, which a test moves. */
  const clock: Clock = { ...systemClock, now: () => plusMs(systemClock.now(), shiftMs) };
  const newIdentity = (issuer = ISSUER) => {
    const onFault = (what: string, cause: unknown) => assert.fail(`${what}: ${String(cause)}`);
    // A ring of its own, as on another node.
    const keys = createKeyRing({ store, signing, clock, onFault });
    return createIdentityIssuer({ issuer: () => issuer, keys, signing, clock, ids: uuids });
  };
  let cloud: Cloud;

  beforeAll(async () => {
    const issuers = new Map<string, ApiFixture>();
    for (const baseUrl of [ISSUER, ROTATING]) {
      const publicKeys = () => newIdentity(baseUrl).publicKeys();
      const api = await createApiFixture({ identity: { publicKeys }, baseUrl });
      cleanUp(ending, () => api.close());
      issuers.set(new URL(baseUrl).pathname, api);
    }
    cloud = await startCloud(ending, (request, response) => {
      // A proxy that serves each service below a path.
      const [, folder = '', target = '/'] = /^(\/[^/]*)(.*)$/.exec(request.url ?? '') ?? [];
      request.url = target;
      issuers.get(folder)?.app.routing(request, response);
    });
    await trust('strata', setup);
    await cloud.s3(null).send(new CreateBucketCommand({ Bucket: BUCKET }));
  });

  /** What the owner of a cloud does once: trusts the issuer, and makes a role for one account of it. */
  async function trust(RoleName: string, { issuer, audience, trustPolicy }: typeof setup): Promise<void> {
    const { iam, thumbprint } = cloud;
    const provider = { Url: issuer, ClientIDList: [audience], ThumbprintList: [thumbprint] };
    await iam.send(new CreateOpenIDConnectProviderCommand(provider));
    await iam.send(new CreateRoleCommand({ RoleName, AssumeRolePolicyDocument: JSON.stringify(trustPolicy) }));
    const bucket = `arn:aws:s3:::${BUCKET}`;
    const Statement = [
      { Effect: 'Allow', Action: ['s3:PutObject', 's3:GetObject', 's3:DeleteObject'], Resource: `${bucket}/strata/*` },
      { Effect: 'Allow', Action: ['s3:ListBucket'], Resource: bucket },
    ];
    const PolicyDocument = JSON.stringify({ Version: '2012-10-17', Statement });
    await iam.send(new PutRolePolicyCommand({ RoleName, PolicyName: 'layers', PolicyDocument }));
  }

  const newRoles = (context: Parameters<typeof cleanUp>[0]) => {
    const roles = createStsRoles({ identity: newIdentity(), endpoint: cloud.stsUrl, clock: systemClock });
    cleanUp(context, async () => roles.close());
    return roles;
  };
  const put = (credentials: RoleCredentials, Key: string) =>
    cloud.s3(credentials).send(new PutObjectCommand({ Bucket: BUCKET, Key, Body: 'a layer' }));
  /** Asks for the role with a token that the test makes. */
  const asking = (context: Parameters<typeof cleanUp>[0], issue: () => Promise<string>, roleArn = ROLE) => {
    const service = createTokenService({ identity: { issue }, endpoint: cloud.stsUrl });
    cleanUp(context, async () => service.close());
    return service.assumeRole({ ...access, roleArn });
  };

  test('gives credentials to whom its trust policy names, and they store and read what its rights allow', async (context) => {
    const credentials = await newRoles(context).credentials(access);
    await put(credentials, 'strata/one.tar');
    const read = await cloud.s3(null).send(new GetObjectCommand({ Bucket: BUCKET, Key: 'strata/one.tar' }));
    assert.equal(await read.Body?.transformToString(), 'a layer');
    await assert.rejects(put(credentials, 'other/one.tar'), { name: 'AccessDenied' });
    const leftMs = Date.parse(credentials.expiresAt) - Date.now();
    assert.ok(leftMs > 3_500_000 && leftMs < 3_700_000);
  });

  test('is given for a token of either algorithm', async (context) => {
    const identity = newIdentity();
    const { audience, subject } = setup;
    for (const algorithm of ['RS256', 'ES256'] as const) {
      await put(await asking(context, () => identity.issue({ audience, subject, algorithm })), `strata/${algorithm}`);
    }
  });

  // The attack: an account of the same service names the role of another one.
  test('is refused to every other account, and for another audience', async (context) => {
    const refusal = { name: 'RoleRefused', code: 'credentials-refused' };
    await assert.rejects(newRoles(context).credentials({ ...access, account: newAccount() }), refusal);
    const identity = newIdentity();
    const { audience, subject } = setup;
    for (const request of [
      { audience: 'https://elsewhere.example', subject },
      { audience, subject: `${subject}0` },
      { audience, subject: 'account:*' },
    ]) {
      await assert.rejects(
        asking(context, () => identity.issue(request)),
        refusal,
        JSON.stringify(request),
      );
    }
  });

  // The attack: a token that somebody else has signed, or nobody, or with the public key as if it were a secret.
  test('is refused for a signature that is not of a published key', async (context) => {
    const identity = newIdentity();
    const token = await identity.issue(setup);
    const [head = '', claims = '', signature = ''] = token.split('.');
    const encoded = (json: object) => Buffer.from(JSON.stringify(json)).toString('base64url');
    const { kid } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string };
    const read = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, string | number>;
    const [forger] = await signing.newKeys();
    assert.ok(forger);
    const hs256 = `${encoded({ alg: 'HS256', kid, typ: 'JWT' })}.${claims}`;
    const publicKey = JSON.stringify((await identity.publicKeys())[0]);
    for (const forged of [
      await signing.sign({ ...forger, id: kid }, read),
      await signing.sign(forger, read),
      `${encoded({ alg: 'none', kid, typ: 'JWT' })}.${claims}.`,
      `${hs256}.${createHmac('sha256', publicKey).update(hs256).digest('base64url')}`,
      `${head}.${encoded({ ...read, exp: Number(read['exp']) + 3_600 })}.${signature}`,
    ]) {
      await assert.rejects(
        asking(context, async () => forged),
        { name: 'RoleRefused', code: 'credentials-refused' },
      );
    }
    await put(await asking(context, async () => token), 'strata/true.tar');
  });

  // The attack: a token that leaked is used later.
  test('is refused for a token that has expired, which tells of a wrong clock', async (context) => {
    shiftMs = -3_600_000;
    try {
      await assert.rejects(newRoles(context).credentials(access), { name: 'RoleRefused', code: 'clock-skewed' });
    } finally {
      shiftMs = 0;
    }
  });

  test('is refused where there is none of that name', async (context) => {
    const missing = newRoles(context).credentials({ ...access, roleArn: `${ROLE}-missing` });
    await assert.rejects(missing, { name: 'RoleRefused', code: 'credentials-refused' });
  });

  test('whose sessions have ended early is given again once its user drops the refused credentials', async (context) => {
    const roles = newRoles(context);
    const old = await roles.credentials(access);
    await cloud.endSessions();
    await assert.rejects(put(old, 'strata/late.tar'), { name: /^(InvalidAccessKeyId|ExpiredToken)$/ });
    assert.equal(await roles.credentials(access), old);
    roles.drop(access, old);
    await put(await roles.credentials(access), 'strata/late.tar');
  });

  test('is all that the bucket of a user needs: its check passes, and its store goes on after its sessions ended', async (context) => {
    const checkedAgents = () => assert.fail('The operator chose the address');
    const buckets = createS3Buckets({ roles: newRoles(context), roleEndpointUrl: cloud.s3Url, checkedAgents });
    const connection = { bucketName: BUCKET, keyPrefix: 'strata/', access };
    assert.ok(!('fault' in (await buckets.check(connection))));
    const layers = buckets.store(connection, null);
    const store = async (name: string) => {
      const bytes = Buffer.from(`layer ${name}`);
      const key = layerKey(`repositories/${name}.tar`);
      assert.equal(await layers.put(key, Readable.from([bytes]), bytes.length), 'stored');
      assert.equal(await text(await layers.get(key)), `layer ${name}`);
    };
    await store('early');
    await cloud.endSessions();
    await store('late');
    const other = { ...connection, access: { ...access, account: newAccount() } };
    const checked = await buckets.check(other);
    const fault = 'fault' in checked ? checked.fault : null;
    assert.deepEqual([fault?.step, fault?.code], ['credentials', 'credentials-refused']);
  });

  test('that no longer trusts the service refuses its next request, though credentials may hold on', async (context) => {
    const roles = newRoles(context);
    const kept = await roles.credentials(access);
    const other = roleSetup(ISSUER, newAccount(), ROLE);
    const PolicyDocument = JSON.stringify(other.trustPolicy);
    await cloud.iam.send(new UpdateAssumeRolePolicyCommand({ RoleName: 'strata', PolicyDocument }));
    assert.equal(await roles.credentials(access), kept);
    roles.drop(access);
    await assert.rejects(roles.credentials(access), { name: 'RoleRefused', code: 'credentials-refused' });
  });

  // The attack: somebody has copied a private key.
  test('is given for a token of new keys, and no longer for one of keys that were revoked', async (context) => {
    // An issuer of its own: the cloud reads the keys of one again for an unknown key once a minute at most.
    const role = `${ROLE}-rotating`;
    const rotating = roleSetup(ROTATING, access.account, role);
    await trust('strata-rotating', rotating);
    const ask = (issue: () => Promise<string>) => asking(context, issue, role);
    const old = await newIdentity(ROTATING).issue(rotating);
    await put(await ask(async () => old), 'strata/old-keys.tar');
    await rotateSigningKeys({ store, signing, clock }, { revoke: true });
    await put(await ask(() => newIdentity(ROTATING).issue(rotating)), 'strata/new-keys.tar');
    await assert.rejects(
      ask(async () => old),
      { name: 'RoleRefused', code: 'credentials-refused' },
    );
  });
});
