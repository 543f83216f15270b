/** Attacks on the exchange of identity tokens (SECURITY.md, What holds), against a real issuer over TLS. */
import assert from 'node:assert/strict';
import { createHash, createHmac, randomBytes, sign } from 'node:crypto';
import { CompactSign, decodeJwt, exportJWK, exportPKCS8, exportSPKI, generateKeyPair, SignJWT } from 'jose';
import { beforeAll, beforeEach, describe, test } from 'vitest';
import { createJoseIdentityTokens, IDENTITY_TOKEN_DEPTH_MAX } from '../../adapters/jose/identity-tokens.ts';
import {
  ISSUER_DOCUMENT_BYTES_MAX,
  ISSUER_FAILURE_KEPT_MS,
  ISSUER_KEYS_KEPT_LEAST_MS,
  ISSUER_KEYS_KEPT_MS,
  ISSUER_KEYS_MAX,
} from '../../adapters/jose/issuer-keys.ts';
import { uuids } from '../../adapters/node/ids.ts';
import { newExchangedSecret, newTokenSecret } from '../../adapters/node/token-secret.ts';
import { EXCHANGES_PER_MINUTE_MAX } from '../../apps/api/handlers/trust-rules.ts';
import { FAILED_TOKENS_PER_MINUTE_MAX } from '../../apps/front-door/failed-tokens.ts';
import { type AccountId, type TrustRuleId, uuid } from '../../core/kernel/ids.ts';
import { IDENTITY_TOKEN_ID_LENGTH_MAX, IDENTITY_TOKEN_LENGTH_MAX } from '../../core/kernel/limits.ts';
import { guardedBy } from '../../core/use-cases/callers/authenticate.ts';
import { createRepository } from '../../core/use-cases/repositories/repositories.ts';
import { REFUSED_EXCHANGE_TEXT_LENGTH_MAX } from '../../core/use-cases/tokens/judge-identity-token.ts';
import type { NewTrustRule } from '../../core/use-cases/tokens/trust-rules.ts';
import { authenticate } from '../support/accounts.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../support/api-fixture.ts';
import { cleanUp, suiteEnding } from '../support/cleanup.ts';
import {
  type Claims,
  CONFIGURATION,
  createIssuerNetwork,
  json,
  KEYS,
  startIssuer,
  type TestIssuer,
} from '../support/identity-issuer.ts';
import { CAUSE } from '../support/node.ts';

const AUDIENCE = 'http://localhost:8080/ada';
const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('The exchange of an identity token', () => {
  const ending = suiteEnding();
  const network = createIssuerNetwork();
  let fixture: ApiFixture;
  let ada: AccountId;
  let owner: TestToken;
  let issuer: TestIssuer;
  let rule: TrustRuleId;
  let atFailpoint: (point: string) => Promise<void> = async () => undefined;

  beforeAll(async () => {
    fixture = await createApiFixture({ outgoing: network.outgoing, failpoint: (point) => atFailpoint(point) });
    cleanUp(ending, () => fixture.close());
    ada = await fixture.account('ada');
    await fixture.account('bob');
    owner = await fixture.token(ada);
  });
  beforeEach(async (context) => {
    fixture.clock.advance(60_000);
    issuer = await startIssuer(context, network, { clock: fixture.clock, audience: AUDIENCE });
    rule = await newRule();
  });

  const newRule = (wanted: Partial<NewTrustRule> = {}) =>
    fixture.trustRule(ada, { issuer: issuer.url, subject: 'repo:acme/*', ...wanted });
  const exchange = (token: string) => fixture.request('POST', '/v1/oidc/token', null, { body: { id_token: token } });
  const seconds = (): number => Math.floor(Date.parse(fixture.clock.now()) / 1_000);

  async function refusals(id: TrustRuleId = rule) {
    const answer = await fixture.request('GET', `/v1/oidc/trust-rules/${id}/refusals`, owner);
    assert.equal(answer.statusCode, 200, answer.body);
    return answer.json().refusals as readonly {
      reason: string;
      claim: string | null;
      found: string | null;
      times: number;
    }[];
  }

  /** The caller learns nothing, and the owner of the rule learns this reason. Null: nobody does. */
  async function assertRefused(token: string, reason: string | null, what = reason ?? ''): Promise<void> {
    // So that the list of refusals is in the order of this test.
    fixture.clock.advance(1);
    const answer = await exchange(token);
    assert.equal(answer.statusCode, 401, `${what}: ${answer.body}`);
    assert.deepEqual(answer.json(), { detail: 'The exchange failed' }, what);
    const [newest] = await refusals();
    assert.equal(newest?.reason ?? null, reason, what);
  }

  test('gives a token of 15 minutes with the permissions of the rule, and no other', async () => {
    const answer = await exchange(await issuer.token());
    assert.equal(answer.statusCode, 200, answer.body);
    const { id, token, ...others } = answer.json();
    assert.match(token, /^strata_[0-9A-Za-z]{46}$/);
    assert.deepEqual(others, {
      ...{ token_type: 'Bearer', grants: ['API_OIDC_TRUST'], scope: 'ALL_REPO', repository_ids: [] },
      expires_at: new Date(Date.parse(fixture.clock.now()) + 900_000).toISOString(),
    });
    const job = { id, secret: token };
    assert.equal((await fixture.request('GET', '/v1/oidc/trust-rules', job)).statusCode, 200);
    assert.equal((await fixture.request('GET', '/v1/repositories', job)).statusCode, 403);
    const listed = (await fixture.request('GET', '/v1/access-tokens', owner)).json().access_tokens;
    assert.ok(!listed.some((one: { id: string }) => one.id === id), 'it is not listed');
    for (const method of ['GET', 'PUT'] as const) {
      const asked = await fixture.request(
        method,
        `/v1/access-tokens/${id}`,
        owner,
        method === 'PUT' ? { body: {} } : {},
      );
      assert.equal(asked.statusCode, 404, method);
    }
    const { last_used_at: used } = (await fixture.request('GET', `/v1/oidc/trust-rules/${rule}`, owner)).json();
    assert.equal(used, `${fixture.clock.now().slice(0, 16)}:00.000Z`);
    assert.deepEqual(await refusals(), []);
    fixture.clock.advance(899_999);
    assert.equal((await fixture.request('GET', '/v1/oidc/trust-rules', job)).statusCode, 200);
    fixture.clock.advance(1);
    assert.equal((await fixture.request('GET', '/v1/oidc/trust-rules', job)).statusCode, 401);
  });

  // The attack: a job's token leaks after the job. The job ends its own token, and nobody else's.
  test('gives a token that may revoke itself', async () => {
    const [one, two] = [(await exchange(await issuer.token())).json(), (await exchange(await issuer.token())).json()];
    const as = ({ id, token }: { id: string; token: string }) => ({ id, secret: token }) as TestToken;
    assert.equal((await fixture.request('DELETE', `/v1/access-tokens/${two.id}`, as(one))).statusCode, 403);
    assert.equal((await fixture.request('DELETE', `/v1/access-tokens/${one.id}`, as(one))).statusCode, 204);
    assert.equal((await fixture.request('GET', '/v1/oidc/trust-rules', as(one))).statusCode, 401);
    assert.equal(
      (await fixture.request('DELETE', `/v1/access-tokens/${two.id}`, owner)).statusCode,
      204,
      'by the owner',
    );
    assert.equal((await fixture.request('GET', '/v1/oidc/trust-rules', as(two))).statusCode, 401);
  });

  // The attack: somebody on the machines of the CI system, which share one address, tries token after token.
  test('gives a token that passes however many from its address failed, while a secret that only names it fails', async () => {
    const { id, token } = (await exchange(await issuer.token())).json();
    const use = (secret: string) => fixture.request('GET', '/v1/oidc/trust-rules', { id, secret });
    for (let n = 0; n < FAILED_TOKENS_PER_MINUTE_MAX; n += 1) await use(newTokenSecret());
    assert.equal((await use(newTokenSecret())).statusCode, 429);
    assert.equal((await use(newExchangedSecret(id))).statusCode, 401);
    assert.equal((await use(token)).statusCode, 200);
  });

  // The attack: a leaked job token goes on working after its owner has corrected or deleted the rule.
  test('gives a token that ends when its rule is changed or deleted', async () => {
    const jobs = async () => {
      const { id, token } = (await exchange(await issuer.token())).json();
      return { id, secret: token } as TestToken;
    };
    const first = await jobs();
    const unchanged = await fixture.request('PUT', `/v1/oidc/trust-rules/${rule}`, owner, { body: { name: 'test' } });
    assert.equal(unchanged.statusCode, 200);
    assert.equal((await fixture.request('GET', '/v1/oidc/trust-rules', first)).statusCode, 200, 'nothing was changed');
    await fixture.request('PUT', `/v1/oidc/trust-rules/${rule}`, owner, { body: { name: 'another' } });
    assert.equal((await fixture.request('GET', '/v1/oidc/trust-rules', first)).statusCode, 401);
    const second = await jobs();
    await fixture.request('DELETE', `/v1/oidc/trust-rules/${rule}`, owner);
    assert.equal((await fixture.request('GET', '/v1/oidc/trust-rules', second)).statusCode, 401);
  });

  // The attack: a token without a signature (alg none).
  test('refuses a token that is not signed', async () => {
    const [, payload] = (await issuer.token()).split('.');
    await assertRefused(`${encoded({ alg: 'none', kid: 'key-1' })}.${payload}.`, 'algorithm-not-allowed');
  });

  // The attack: the public key, which everybody knows, used as the secret of a MAC (HS256).
  test('refuses a token whose MAC is made with the public key', async () => {
    const [, payload] = (await issuer.token()).split('.');
    const signed = `${encoded({ alg: 'HS256', kid: 'key-1', typ: 'JWT' })}.${payload}`;
    for (const secret of [await exportSPKI(issuer.keys.publicKey), JSON.stringify(issuer.publicJwk)]) {
      const mac = createHmac('sha256', secret).update(signed).digest('base64url');
      await assertRefused(`${signed}.${mac}`, 'algorithm-not-allowed');
    }
  });

  // The attack: the issuer's list holds a shared secret, or the token names another algorithm than its key is for.
  test('refuses a token whose key is not for its algorithm', async () => {
    const secret = randomBytes(32);
    issuer.answers.set(KEYS, (response) =>
      json(response, { keys: [{ kty: 'oct', kid: 'key-1', k: secret.toString('base64url') }] }),
    );
    await assertRefused(await issuer.token(), 'key-unknown', 'an RSA token and a shared secret');
    issuer.answers.set(KEYS, (response) => json(response, { keys: [{ ...issuer.publicJwk, alg: 'RS512' }] }));
    fixture.clock.advance(ISSUER_KEYS_KEPT_LEAST_MS);
    await assertRefused(await issuer.token(), 'key-unknown', 'a key for RS512');
    issuer.answers.set(KEYS, (response) => json(response, { keys: [{ ...issuer.publicJwk, use: 'enc' }] }));
    fixture.clock.advance(ISSUER_KEYS_KEPT_MS);
    await assertRefused(await issuer.token(), 'key-unknown', 'a key for encryption');
  });

  // The attack: a token that is signed with the key of another id, or with a key that the issuer does not have.
  test('refuses a token whose key id does not name the key that signed it', async () => {
    const other = await generateKeyPair('RS256', { extractable: true });
    const second = { ...(await exportJWK(other.publicKey)), kid: 'key-2', alg: 'RS256' };
    issuer.answers.set(KEYS, (response) => json(response, { keys: [issuer.publicJwk, second] }));
    await assertRefused(await issuer.token({}, { kid: 'key-2' }), 'signature-invalid');
    await assertRefused(await issuer.token({}, { kid: 'key-3' }), 'key-unknown');
    await assertRefused(await issuer.token({}, { kid: undefined }), 'key-unknown', 'no key id, and two keys');
    const [header, payload, signature] = (await issuer.token()).split('.');
    const altered = { ...JSON.parse(Buffer.from(payload ?? '', 'base64url').toString()), sub: 'repo:acme/other' };
    await assertRefused(`${header}.${encoded(altered)}.${signature}`, 'signature-invalid', 'altered claims');
  });

  // The attack: the token brings its own key, or says where to find one (jwk, jku, x5c, x5u).
  test('takes no key from the token, and asks no address in it', async () => {
    const mine = await generateKeyPair('RS256', { extractable: true });
    const jwk = { ...(await exportJWK(mine.publicKey)), kid: 'mine', alg: 'RS256' };
    const pem = await exportSPKI(mine.publicKey);
    const now = seconds();
    const claims = { iss: issuer.url, aud: AUDIENCE, sub: 'repo:acme/site', iat: now, exp: now + 300 };
    for (const [n, header] of [
      { jwk },
      { jku: `${issuer.url}/evil` },
      { x5u: `${issuer.url}/evil` },
      { x5c: [pem.replaceAll(/-----.*-----|\n/g, '')] },
      { jwk, kid: 'key-1' },
    ].entries()) {
      const token = await new SignJWT({ ...claims, jti: String(n) })
        .setProtectedHeader({ alg: 'RS256', kid: 'mine', ...header })
        .sign(mine.privateKey);
      const isKnownId = 'kid' in header;
      await assertRefused(token, isKnownId ? 'signature-invalid' : 'key-unknown', Object.keys(header).join());
    }
    assert.ok(!issuer.requests.includes('/evil'));
  });

  // The attack: a header that changes what is signed, or that the service would have to understand.
  test('refuses a token that marks a header as critical', async () => {
    const claims = JSON.parse(Buffer.from((await issuer.token()).split('.')[1] ?? '', 'base64url').toString());
    const header = { alg: 'RS256', kid: 'key-1' };
    await assertRefused(await signedByHand({ ...header, crit: ['b64'], b64: false }, claims), null);
    await assertRefused(await signedByHand({ ...header, crit: [] }, claims), null);
    assert.equal((await exchange(await signedByHand(header, claims))).statusCode, 200);
  });

  // The attack: a token that was meant for somebody else, or for several, is sent here.
  test('takes only the audience of the account, alone', async () => {
    for (const [aud, reason] of [
      ['https://elsewhere.example', null],
      ['http://localhost:8080/', null],
      ['http://localhost:8080/ada/', null],
      ['http://localhost:8080/Ada', null],
      ['http://localhost:8080/nobody', null],
      ['http://localhost:8080/bob', null],
      ['http://localhost:8080', null],
      [undefined, null],
      [{}, null],
      [[AUDIENCE, 'https://elsewhere.example'], 'audience-not-alone'],
      [['https://elsewhere.example', AUDIENCE], 'audience-not-alone'],
      [[AUDIENCE, AUDIENCE], 'audience-not-alone'],
    ] as const) {
      await assertRefused(await issuer.token({ aud }), reason, JSON.stringify(aud));
    }
    assert.deepEqual(issuer.requests, [], 'the issuer was not asked for any of them');
    assert.equal((await exchange(await issuer.token({ aud: [AUDIENCE] }))).statusCode, 200, 'a list of one');
  });

  // The attack: an issuer whose name only looks like the trusted one, or a token that names several.
  test('trusts the issuer that a rule names to the letter, and asks no other', async () => {
    const { port } = new URL(issuer.url);
    for (const iss of [
      ...[`${issuer.url}/`, ` ${issuer.url}`, issuer.url.replace('https', 'HTTPS'), `${issuer.url}#`],
      ...[`https://me@127.0.0.1:${port}`, `https://localhost:${port}`, [issuer.url], undefined, 5],
    ]) {
      await assertRefused(await issuer.token({ iss }), null, JSON.stringify(iss));
    }
    assert.deepEqual(issuer.requests, []);
    assert.equal((await exchange(await issuer.token())).statusCode, 200);
  });

  // The attack: of two issuers that an account trusts, one signs in the name of the other, or uses up the ids of its
  // tokens.
  test('takes keys and ids of an issuer for its own tokens only', async (context) => {
    const second = await startIssuer(context, network, { clock: fixture.clock, audience: AUDIENCE });
    const body = { name: 'second', issuer: second.url, subject: 'repo:acme/*', grants: ['ALL'], scope: 'ALL_REPO' };
    const made = await fixture.request('POST', '/v1/oidc/trust-rules', owner, { body });
    assert.equal(made.statusCode, 201, made.body);
    const { privateKey, publicKey } = await generateKeyPair('RS256');
    for (const kid of ['key-1', 'key-2']) {
      const key = { ...(await exportJWK(publicKey)), kid, alg: 'RS256', use: 'sig' };
      second.answers.set(KEYS, (response) => json(response, { keys: [key] }));
      const signed = (iss: string, jti: string): Promise<string> =>
        new SignJWT({ iss, aud: AUDIENCE, sub: 'repo:acme/site', jti, iat: seconds(), exp: seconds() + 300 })
          .setProtectedHeader({ alg: 'RS256', kid })
          .sign(privateKey);
      fixture.clock.advance(ISSUER_KEYS_KEPT_MS);
      assert.equal((await exchange(await signed(second.url, kid))).statusCode, 200, kid);
      await assertRefused(
        await signed(issuer.url, `${kid} again`),
        kid === 'key-1' ? 'signature-invalid' : 'key-unknown',
      );
      assert.equal((await exchange(await issuer.token({ jti: kid }))).statusCode, 200, 'the id is another one');
      assert.deepEqual(await refusals(made.json().id), []);
    }
  });

  // The attack: a token that has expired, or is not valid yet, or has no end.
  test('takes a token only in its time, give or take 60 seconds', async () => {
    const now = seconds();
    for (const [claims, reason] of [
      [{ iat: now - 600, exp: now - 60 }, 'expired'],
      [{ nbf: now + 61 }, 'not-yet-valid'],
      [{ iat: now + 61, exp: now + 300 }, 'issued-in-the-future'],
      [{ iat: now, exp: now + 86_401 }, 'lifetime-too-long'],
      [{ exp: undefined }, 'claims-malformed'],
      [{ iat: undefined }, 'claims-malformed'],
      [{ exp: 'tomorrow' }, 'claims-malformed'],
      [{ exp: 1e300 }, 'claims-malformed'],
      [{ nbf: null }, 'claims-malformed'],
      [{ sub: undefined }, 'claims-malformed'],
    ] as const) {
      await assertRefused(await issuer.token(claims), reason, JSON.stringify(claims));
    }
    assert.deepEqual(issuer.requests, [], 'the issuer was not asked for any of them');
    for (const claims of [
      { iat: now - 600, exp: now - 59 },
      { nbf: now + 60 },
      { iat: now + 60, exp: now + 300 },
      { exp: now + 86_400 },
    ]) {
      assert.equal((await exchange(await issuer.token(claims))).statusCode, 200, JSON.stringify(claims));
    }
  });

  test('refuses a token whose id is empty, very long or no text', async () => {
    for (const jti of ['', 5, null, ['x'], 'x'.repeat(IDENTITY_TOKEN_ID_LENGTH_MAX + 1)]) {
      await assertRefused(await issuer.token({ jti }), 'id-missing', String(jti));
    }
    const jti = 'x'.repeat(IDENTITY_TOKEN_ID_LENGTH_MAX);
    assert.equal((await exchange(await issuer.token({ jti }))).statusCode, 200);
  });

  // The attack: a token is read from a log and exchanged a second time.
  test('takes a token once, also when ten requests race', async () => {
    const token = await issuer.token();
    const raced = await Promise.all(Array.from({ length: 10 }, () => exchange(token)));
    assert.deepEqual(
      raced.map(({ statusCode }) => statusCode).toSorted((a, b) => a - b),
      [200, ...Array(9).fill(401)],
    );
    await assertRefused(token, 'used-before');
    await newRule({ name: 'of the same issuer' });
    assert.equal((await exchange(token)).statusCode, 401, 'another rule makes it no new token');
  });

  // Another version of the service must find the same stream, or a token works a second time after an upgrade.
  test('gives ids that follow from issuer and id, or from issuer and what was signed', async () => {
    const [withId, without] = [await issuer.token({ jti: 'job-1' }), await issuer.token({ jti: undefined })];
    const signed = createHash('sha256')
      .update(without.slice(0, without.lastIndexOf('.')))
      .digest('hex');
    for (const [token, namespace, name] of [
      [withId, '0d0f9c4e-2f5a-5b6e-8a41-7c2d9e6b3f18', 'job-1'],
      [without, 'b3a86f0e-51d7-5c2b-93e4-6d0c7f2a9e54', signed],
    ] as const) {
      const { id } = (await exchange(token)).json();
      assert.equal(id, uuids.derive(uuid(namespace), `${issuer.url} ${name}`));
    }
  });

  // The attack: a token without an id is read from a log, and sent again in other forms of which each is valid.
  test('takes a token without an id once, however its signature is written', async () => {
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    // The 256 bytes of the signature leave four bits of its last digit unused, which no reader of base64url looks at.
    const formsOf = (token: string): readonly string[] => {
      const last = digits.indexOf(token.slice(-1));
      return Array.from({ length: 10 }, (_, n) => token.slice(0, -1) + digits.charAt((last & ~15) | ((last + n) & 15)));
    };
    const forms = formsOf(await issuer.token({ jti: undefined }));
    assert.equal(new Set(forms).size, 10);
    const raced = await Promise.all(forms.map((form) => exchange(form)));
    assert.deepEqual(
      raced.map(({ statusCode }) => statusCode).toSorted((a, b) => a - b),
      [200, ...Array(9).fill(401)],
    );
    assert.deepEqual(
      (await refusals()).map(({ reason, times }) => [reason, times]),
      [['used-before', 9]],
    );
    fixture.clock.advance(60_000);
    const [, other = ''] = formsOf(await issuer.token({ jti: undefined }));
    assert.equal((await exchange(other)).statusCode, 200, 'the next token of the issuer, in another form');
  });

  // The attack: for each signature (r, s) with an elliptic curve, anybody can make the valid one (r, n - s).
  test('takes a token without an id once, also with the other signature of an elliptic curve', async () => {
    const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
    const jwk = { ...(await exportJWK(publicKey)), kid: 'curve', alg: 'ES256', use: 'sig' };
    issuer.answers.set(KEYS, (response) => json(response, { keys: [jwk] }));
    const claims = decodeJwt(await issuer.token());
    delete claims.jti;
    const token = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'curve' }).sign(privateKey);
    const [header, payload, signature = ''] = token.split('.');
    const bytes = Buffer.from(signature, 'base64url');
    const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
    const other = order - BigInt(`0x${bytes.toString('hex', 32)}`);
    bytes.write(other.toString(16).padStart(64, '0'), 32, 'hex');
    assert.equal((await exchange(`${header}.${payload}.${bytes.toString('base64url')}`)).statusCode, 200);
    await assertRefused(token, 'used-before');
  });

  // The attack: a repository with a similar name, or a path below one that is trusted.
  test('lets no wildcard match beyond its segment', async () => {
    for (const sub of [
      'repo:acme-evil/x',
      'repo:acme/x/y',
      'repo:acme/x:ref',
      'repo:acme:x',
      'xrepo:acme/x',
      'repo:acme/',
      'repo:acme/x\n',
      'repo:acme',
    ]) {
      await assertRefused(await issuer.token({ sub }), 'claim-mismatch', sub);
    }
    const [newest] = await refusals();
    assert.deepEqual([newest?.claim, newest?.found], ['sub', 'repo:acme']);
    assert.equal((await exchange(await issuer.token({ sub: 'repo:acme/x' }))).statusCode, 200);
  });

  test('compares claims as texts, and tells the owner of the rule which one did not match', async () => {
    const id = await newRule({ claims: { ref: 'refs/heads/release-*', run_attempt: '1', protected: 'true' } });
    const good = { ref: 'refs/heads/release-7', run_attempt: 1, protected: true };
    for (const [claims, claim, found] of [
      [{ ...good, ref: 'refs/heads/main' }, 'ref', 'refs/heads/main'],
      [{ ...good, run_attempt: 2 }, 'run_attempt', '2'],
      [{ ...good, protected: ['true'] }, 'protected', null],
      [{ ref: good.ref, run_attempt: 1 }, 'protected', null],
      [{ ...good, ref: `refs/heads/\u0007${'x'.repeat(500)}` }, 'ref', `refs/heads/\u{FFFD}${'x'.repeat(187)}…`],
    ] as const) {
      const answer = await exchange(await issuer.token(claims));
      assert.equal(answer.statusCode, 401);
      assert.ok(!answer.body.includes('ref'), 'the caller learns nothing');
      const [newest] = await refusals(id);
      assert.deepEqual([newest?.reason, newest?.claim, newest?.found], ['claim-mismatch', claim, found]);
      fixture.clock.advance(1);
    }
    assert.equal((await exchange(await issuer.token(good))).statusCode, 200);
  });

  // The attack: a repository whose number is the neighbour of one that is trusted, beyond what JavaScript tells apart.
  test('matches no claim whose number is rounded or beyond 2^53, and one that is a text whole', async () => {
    const numbers = async (text: string) => {
      const claims = { ...decodeJwt(await issuer.token()), repository_id: 'NUMBER' };
      const payload = Buffer.from(JSON.stringify(claims).replace('"NUMBER"', text));
      return new CompactSign(payload).setProtectedHeader({ alg: 'RS256', kid: 'key-1' }).sign(issuer.keys.privateKey);
    };
    const refusedFor = async (pattern: string, texts: readonly string[]): Promise<void> => {
      const id = await newRule({ claims: { repository_id: pattern } });
      for (const text of texts) {
        assert.equal((await exchange(await numbers(text))).statusCode, 401, `${text} for ${pattern}`);
        const [newest] = await refusals(id);
        assert.deepEqual([newest?.reason, newest?.claim, newest?.found], ['claim-mismatch', 'repository_id', null]);
        fixture.clock.advance(10_000);
      }
    };
    await refusedFor('9007199254740992', ['9007199254740993', '9007199254740992', '9007199254740993.0']);
    await refusedFor('Infinity', ['1e400']);
    await refusedFor('0', ['-0', '1e-400']);
    await refusedFor('0.1', ['0.1000000000000000055']);
    await refusedFor('*', ['9007199254740993', '-9007199254740993', '1e400', '-0']);
    for (const [pattern, text] of [
      ['9007199254740991', '9007199254740991'],
      ['9007199254740993', '"9007199254740993"'],
      ['0.1', '0.10'],
    ] as const) {
      await newRule({ claims: { repository_id: pattern } });
      assert.equal((await exchange(await numbers(text))).statusCode, 200, text);
    }
  });

  // The attack: a text of claims that one reader takes and another does not.
  test('reads the claims behind a byte order mark as the library does', async () => {
    const [header = '', payload = '', signature = ''] = (await issuer.token()).split('.');
    const marked = Buffer.concat([Buffer.from('\ufeff'), Buffer.from(payload, 'base64url')]).toString('base64url');
    await assertRefused([header, marked, signature].join('.'), 'signature-invalid');
  });

  test('shows the owner a claim of the greatest length whole, and cuts a longer one', async () => {
    const whole = 'x'.repeat(REFUSED_EXCHANGE_TEXT_LENGTH_MAX);
    for (const [sub, found] of [
      [whole, whole],
      [`${whole}x`, `${whole.slice(1)}…`],
    ] as const) {
      await assertRefused(await issuer.token({ sub }), 'claim-mismatch');
      assert.equal((await refusals())[0]?.found, found);
    }
  });

  // The attack: a stranger fills the list with refusals that bear endless different texts.
  test('keeps at most 20 refusals of a rule, and counts equal ones', async () => {
    for (let n = 0; n < 25; n += 1) {
      if (n % EXCHANGES_PER_MINUTE_MAX === EXCHANGES_PER_MINUTE_MAX - 1) fixture.clock.advance(60_000);
      fixture.clock.advance(1);
      assert.equal((await exchange(await issuer.token({ sub: `job-${n}` }))).statusCode, 401);
    }
    assert.equal((await exchange(await issuer.token({ sub: 'job-24' }))).statusCode, 401);
    const kept = await refusals();
    assert.deepEqual([kept.length, kept[0]?.found, kept[0]?.times, kept.at(-1)?.found], [20, 'job-24', 2, 'job-5']);
  });

  // The attack: an issuer that answers with gigabytes, or with thousands of keys.
  test('reads no more of an issuer than the limits', async () => {
    const filler = (bytes: number) => ({ keys: [issuer.publicJwk], filler: 'x'.repeat(bytes) });
    const frame = JSON.stringify(filler(0)).length;
    issuer.answers.set(KEYS, (response) => json(response, filler(ISSUER_DOCUMENT_BYTES_MAX - frame + 1)));
    await assertRefused(await issuer.token(), 'issuer-answer-invalid');
    assert.equal((await refusals())[0]?.found, 'too large');
    fixture.clock.advance(ISSUER_FAILURE_KEPT_MS);
    const keys = Array.from({ length: ISSUER_KEYS_MAX + 1 }, (_, n) => ({ kty: 'EC', kid: String(n) }));
    issuer.answers.set(KEYS, (response) => json(response, { keys }));
    await assertRefused(await issuer.token(), 'issuer-answer-invalid');
    fixture.clock.advance(ISSUER_FAILURE_KEPT_MS);
    issuer.answers.set(KEYS, (response) => json(response, { keys: [...keys.slice(2), issuer.publicJwk] }));
    assert.equal((await exchange(await issuer.token())).statusCode, 200, 'as many keys as the limit');
    fixture.clock.advance(ISSUER_KEYS_KEPT_MS);
    issuer.answers.set(KEYS, (response) => json(response, filler(ISSUER_DOCUMENT_BYTES_MAX - frame)));
    assert.equal((await exchange(await issuer.token())).statusCode, 200, 'as many bytes as the limit');
  });

  // The attack: the issuer sends the service on to an address inside of its network.
  test('follows no redirect of an issuer, neither for its configuration nor for its keys', async () => {
    for (const path of [KEYS, CONFIGURATION]) {
      issuer.answers.set(path, (response) => response.writeHead(302, { location: `${issuer.url}/inside` }).end());
      fixture.clock.advance(ISSUER_KEYS_KEPT_MS);
      await assertRefused(await issuer.token(), 'issuer-answer-invalid', path);
      assert.equal((await refusals())[0]?.found, 'status 302');
    }
    assert.ok(!issuer.requests.includes('/inside'));
  });

  // The attack: the configuration of a trusted host speaks for another issuer.
  test('takes the configuration only of the issuer that it names', async () => {
    for (const named of [`${issuer.url}/`, 'https://token.actions.githubusercontent.com', 5]) {
      issuer.answers.set(CONFIGURATION, (response) =>
        json(response, { issuer: named, jwks_uri: `${issuer.url}${KEYS}` }),
      );
      await assertRefused(await issuer.token(), 'issuer-mismatch', String(named));
      fixture.clock.advance(ISSUER_FAILURE_KEPT_MS);
    }
    assert.ok(!issuer.requests.includes(KEYS));
    for (const address of ['http://127.0.0.1/keys', 'file:///etc/passwd', 'https://user:pass@127.0.0.1/']) {
      issuer.answers.set(CONFIGURATION, (response) => json(response, { issuer: issuer.url, jwks_uri: address }));
      await assertRefused(await issuer.token(), 'issuer-unreachable', address);
      fixture.clock.advance(ISSUER_FAILURE_KEPT_MS);
    }
  });

  // The attack: tokens with random key ids, or of a broken issuer, make the service flood somebody.
  test('asks an issuer for its keys once, and again for an unknown key only after a while', async () => {
    await Promise.all(Array.from({ length: 5 }, async () => exchange(await issuer.token())));
    assert.deepEqual(issuer.requests, [CONFIGURATION, KEYS]);
    for (let n = 0; n < 5; n += 1) await exchange(await issuer.token({}, { kid: `unknown ${n}` }));
    assert.equal(issuer.requests.length, 2);
    fixture.clock.advance(ISSUER_KEYS_KEPT_LEAST_MS);
    for (let n = 0; n < 5; n += 1) await exchange(await issuer.token({}, { kid: `unknown ${n}` }));
    assert.equal(issuer.requests.length, 4, 'it may have got new keys');
    issuer.answers.set(CONFIGURATION, (response) => response.writeHead(500).end());
    fixture.clock.advance(ISSUER_KEYS_KEPT_MS);
    for (let n = 0; n < 5; n += 1) await exchange(await issuer.token());
    assert.equal(issuer.requests.length, 5, 'a broken issuer is left alone');
    issuer.answers.clear();
    fixture.clock.advance(ISSUER_FAILURE_KEPT_MS);
    assert.equal((await exchange(await issuer.token())).statusCode, 200);
  });

  // The attack: issuers of one account hang, to hold up the exchanges of all others.
  test('waits for issuers that hang in the turns of their own account only', async (context) => {
    const { clock } = fixture;
    const tokens = createJoseIdentityTokens({ outgoing: network.outgoing, clock });
    const bob = await fixture.account('hanging');
    const now = clock.now();
    const hanging = await Promise.all(
      Array.from({ length: 4 }, () => startIssuer(context, network, { clock, audience: AUDIENCE })),
    );
    const waiting: (() => void)[] = [];
    const held = hanging.map(async (one) => {
      one.answers.set(CONFIGURATION, (response) => void waiting.push(() => response.writeHead(500).end()));
      return tokens.verify(await one.token(), { account: bob, issuer: one.url, audience: AUDIENCE, now });
    });
    const known = { account: bob, issuer: issuer.url, audience: AUDIENCE, now };
    const queued = tokens.verify(await issuer.token(), known);
    const begun = performance.now();
    assert.equal(await tokens.verify(await issuer.token(), { ...known, account: ada }), null);
    assert.ok(performance.now() - begun < 2_000, 'the same issuer, asked by another account');
    for (let ended = 0; ended < 2; ended += 1) {
      while (waiting.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
      assert.equal(waiting.length, 2, 'two at the same time');
      for (const end of waiting.splice(0)) end();
    }
    const faults = (await Promise.all(held)).map((fault) => fault?.fault);
    assert.deepEqual([...new Set(faults)], ['issuer-answer-invalid']);
    assert.equal(await queued, null);
  });

  // The attack: an identity token as large as the body may be, or nested so deep that reading it takes the stack.
  test('bounds the size and the depth of a token before it reads it', async () => {
    const sized = async (length: number): Promise<string> => {
      const bare = (await issuer.token({ filler: '' })).length;
      let token = await issuer.token({ filler: 'x'.repeat(Math.floor(((length - bare) * 3) / 4) - 3) });
      while (token.length < length)
        token = await issuer.token({ filler: 'x'.repeat(Math.floor(((length - bare) * 3) / 4)) });
      return token;
    };
    const nested = (depth: number): Claims => {
      let value: unknown = 1;
      for (let n = 0; n < depth - 1; n += 1) value = [value];
      return { nested: value };
    };
    assert.equal((await exchange(await issuer.token(nested(IDENTITY_TOKEN_DEPTH_MAX)))).statusCode, 200);
    await assertRefused(await issuer.token(nested(IDENTITY_TOKEN_DEPTH_MAX + 1)), null, 'too deep');
    assert.equal((await exchange('x'.repeat(IDENTITY_TOKEN_LENGTH_MAX))).statusCode, 401);
    assert.equal((await exchange('x'.repeat(IDENTITY_TOKEN_LENGTH_MAX + 1))).statusCode, 422);
    assert.equal((await exchange(await sized(IDENTITY_TOKEN_LENGTH_MAX - 8))).statusCode, 200);
    for (const text of ['', '.', '..', 'a.b', 'a.b.c.d.e', 'é.é.é', `${encoded({ alg: 'RS256' })}.bm90.x`]) {
      await assertRefused(text, null, text);
    }
  });

  // The attack: guessing, or an expensive verification, as often as the network allows.
  test('is tried at most 20 times a minute from an address', async () => {
    const statuses: number[] = [];
    for (let n = 0; n <= EXCHANGES_PER_MINUTE_MAX; n += 1) statuses.push((await exchange('x')).statusCode);
    assert.deepEqual(statuses, [...Array(EXCHANGES_PER_MINUTE_MAX).fill(401), 429]);
    const answer = await exchange('x');
    assert.match(String(answer.headers['retry-after']), /^\d+$/);
    fixture.clock.advance(60_000);
    assert.equal((await exchange(await issuer.token())).statusCode, 200);
  });

  test('lets the oldest rule that matches decide, and adds none up', async () => {
    const body = (name: string, grants: string[], subject = 'repo:acme/*') => ({
      body: { name, issuer: issuer.url, subject, grants, scope: 'ALL_REPO' },
    });
    await fixture.request('POST', '/v1/oidc/trust-rules', owner, body('second', ['GIT_HTTP_WRITE']));
    await fixture.request('POST', '/v1/oidc/trust-rules', owner, body('third', ['ALL']));
    assert.deepEqual((await exchange(await issuer.token())).json().grants, ['API_OIDC_TRUST']);
    await fixture.request('PUT', `/v1/oidc/trust-rules/${rule}`, owner, { body: { subject: 'repo:other/*' } });
    assert.deepEqual((await exchange(await issuer.token())).json().grants, ['GIT_HTTP_WRITE']);
    assert.deepEqual(await refusals(), [], 'a rule before the one that matched has refused nothing');
  });

  // The attack: an exchange that is under way when its rule is deleted, or its account closed.
  test('gives out nothing if the rule goes while the token is being verified', async () => {
    let release: (() => void) | undefined;
    const arrived = new Promise<void>((resolve) => {
      issuer.answers.set(CONFIGURATION, (response) => {
        release = () => json(response, { issuer: issuer.url, jwks_uri: `${issuer.url}${KEYS}` });
        resolve();
      });
    });
    const answer = exchange(await issuer.token());
    await arrived;
    await fixture.request('DELETE', `/v1/oidc/trust-rules/${rule}`, owner);
    release?.();
    assert.equal((await answer).statusCode, 401);
  });

  // The attack: the rule is deleted after the token was found good, and before the exchange is appended.
  test('gives out nothing if the rule goes between the verdict and the append', async () => {
    for (const end of [
      async () => fixture.request('PUT', `/v1/oidc/trust-rules/${rule}`, owner, { body: { name: 'changed' } }),
      async () => fixture.request('DELETE', `/v1/oidc/trust-rules/${rule}`, owner),
    ]) {
      const token = await issuer.token();
      atFailpoint = async (point) => {
        if (point === 'exchange-verified') await end();
      };
      assert.equal((await exchange(token)).statusCode, 401);
      atFailpoint = async () => undefined;
    }
  });

  // The attack: a change that a leaked job token has under way when the owner deletes the rule, or revokes the token.
  test('gives a token whose changes under way do not commit after its rule or the token is gone', async () => {
    const { context } = fixture;
    for (const [n, end] of [
      async () => fixture.request('PUT', `/v1/oidc/trust-rules/${rule}`, owner, { body: { name: 'changed' } }),
      async (id: string) => fixture.request('DELETE', `/v1/access-tokens/${id}`, owner),
      async () => fixture.request('DELETE', `/v1/oidc/trust-rules/${rule}`, owner),
    ].entries()) {
      const { id, token } = (await exchange(await issuer.token())).json();
      const principal = await authenticate(context, token);
      assert.ok(principal?.kind === 'exchanged-token');
      const guarding = guardedBy(context, principal, () => true);
      const create = (name: string) => {
        const wanted = { name, description: null, defaultBranch: null, storageBucketId: null };
        return createRepository(context, { account: ada, cause: CAUSE, guarding }, wanted);
      };
      assert.ok(!('refused' in (await create(`before-${n}`))));
      // The guard as it stood right before the end: the append must lose, and the next look must find the end.
      const latest = await authenticate(context, token);
      assert.ok(latest !== null);
      const stale = guardedBy(context, latest, () => true);
      await end(id);
      const wanted = { name: `after-${n}`, description: null, defaultBranch: null, storageBucketId: null };
      const after = await createRepository(context, { account: ada, cause: CAUSE, guarding: stale }, wanted);
      assert.deepEqual(after, { refused: { code: 'token-no-longer-valid' } });
    }
  });

  // The attack: a canary in a token appears in a log line.
  test('logs nothing of a token', async () => {
    const canary = `canary-${randomBytes(8).toString('hex')}`;
    await exchange(await signedByHand({ alg: 'RS256', kid: canary }, { aud: AUDIENCE, iss: canary }));
    await exchange(await issuer.token({ sub: canary, jti: canary }));
    await exchange(canary);
    assert.ok(!fixture.logged.join().includes(canary));
    assert.ok(!JSON.stringify(fixture.finished).includes(canary));
  });

  /** Signs what the library would refuse to sign. */
  async function signedByHand(header: object, claims: object): Promise<string> {
    const text = `${encoded(header)}.${encoded(claims)}`;
    const signature = sign('sha256', Buffer.from(text), await exportPKCS8(issuer.keys.privateKey));
    return `${text}.${signature.toString('base64url')}`;
  }
});
