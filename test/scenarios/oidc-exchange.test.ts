/**
 * A job of a CI system pushes with the token that it got for its identity token, on two servers. The issuers are the
 * npm packages oauth2-mock-server and oidc-provider.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { exportJWK, generateKeyPair } from 'jose';
import { OAuth2Issuer, OAuth2Service } from 'oauth2-mock-server';
import { Provider } from 'oidc-provider';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { createIssuerNetwork } from '../support/identity-issuer.ts';
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
  tryGit,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

const WEB_URL = 'https://strata.example';
const AUDIENCE = `${WEB_URL}/ada`;

interface Exchanged {
  readonly id: string;
  readonly token: string;
}

describe('A job of a CI system', () => {
  const ending = suiteEnding();
  const network = createIssuerNetwork();
  const issuer = new OAuth2Issuer();
  let env: Readonly<Record<string, string>>;
  let shared: SharedParts;
  let one: Strata;
  let two: Strata;
  let ada: Account;

  beforeAll(async () => {
    shared = await sharedParts(ending);
    const authority = path.join(await tempDir(ending), 'authority.pem');
    await writeFile(authority, network.authority);
    env = { NODE_EXTRA_CA_CERTS: authority, STRATA_ALLOW_PRIVATE_TARGETS: 'true', STRATA_WEB_URL: WEB_URL };
    [one, two] = await Promise.all([startNode(ending, shared, env), startNode(ending, shared, env)]);
    ada = await createAccount(one, 'ada');
    await issuer.keys.generate('RS256');
    issuer.url = await network.serve(ending, new OAuth2Service(issuer).requestHandler);
  });

  const identityToken = (sub: string): Promise<string> =>
    issuer.buildToken({
      expiresIn: 300,
      scopesOrTransform: (_header, payload) => Object.assign(payload, { aud: AUDIENCE, sub, jti: randomUUID() }),
    });
  const exchange = (strata: Strata, token: string) => api(strata, '', 'POST', '/v1/oidc/token', { id_token: token });
  const newRule = async (subject: string, from = issuer.url): Promise<string> => {
    const rule = { name: subject, issuer: from, subject, grants: ['GIT_HTTP_WRITE'], scope: 'ALL_REPO' };
    const made = await api(one, ada.token, 'POST', '/v1/oidc/trust-rules', rule);
    assert.equal(made.status, 201, made.text);
    return (made.body as { id: string }).id;
  };

  test('pushes with real git by the token that it got, until the rule is deleted', async (context) => {
    const rule = await newRule('repo:acme/*');
    await createRepository(one, ada, 'site');
    const exchanged = await exchange(one, await identityToken('repo:acme/site'));
    assert.equal(exchanged.status, 200, exchanged.text);
    const { token } = exchanged.body as Exchanged;
    const urls = [gitUrl(two, { username: 'ada', token }, 'site'), gitUrl(one, { username: 'ada', token }, 'site')];
    const work = await newWorkTree(context);
    for (const [n, url] of urls.entries()) {
      await commitFile(work, 'file', `by ${n}`);
      await git(work, ['push', '--quiet', url, 'main']);
    }
    const pushes = (await shared.log.since()).filter(({ type }) => type === 'RefsUpdated');
    assert.deepEqual(
      pushes.map(({ actor }) => actor),
      [rule, rule].map((id) => ({ kind: 'trust_rule', id })),
    );
    assert.equal((await api(two, ada.token, 'DELETE', `/v1/oidc/trust-rules/${rule}`)).status, 204);
    await commitFile(work, 'file', 'too late');
    for (const url of urls) {
      assert.match((await tryGit(work, ['push', url, 'main'])).stderr, /Authentication failed/);
    }
    assert.equal((await exchange(two, await identityToken('repo:acme/site'))).status, 401);
  });

  // The attack: a token that leaked from a job is exchanged on several servers at the same moment.
  test('exchanges its token once, also when it races on two servers', async () => {
    await newRule('repo:raced/x');
    const token = await identityToken('repo:raced/x');
    const raced = await Promise.all(Array.from({ length: 6 }, (_, n) => exchange(n % 2 === 0 ? one : two, token)));
    assert.deepEqual(
      raced.map(({ status }) => status).toSorted((a, b) => a - b),
      [200, 401, 401, 401, 401, 401],
    );
    assert.ok(!one.log().includes(token) && !two.log().includes(token));
  });

  test('tries again after a server died before the append, and has lost its token after one that died behind it', async () => {
    await newRule('repo:killed/x');
    for (const [point, status] of [
      ['exchange-verified', 200],
      ['exchange-appended', 401],
    ] as const) {
      const dying = await startNode(ending, shared, { ...env, STRATA_FAILPOINT: point });
      const token = await identityToken('repo:killed/x');
      await assert.rejects(exchange(dying, token), point);
      assert.equal((await exchange(one, token)).status, status, point);
    }
  });

  test('is let in by the tokens of oidc-provider as well', async () => {
    const keys = await generateKeyPair('ES256', { extractable: true });
    const jwk = { ...(await exportJWK(keys.privateKey)), kid: 'one', alg: 'ES256', use: 'sig' };
    const providers: Provider[] = [];
    const url = await network.serve(ending, (request, response) => {
      provider
        ?.callback()(request, response)
        .catch(() => response.destroy());
    });
    const provider = new Provider(url, {
      clients: [
        {
          ...{
            client_id: 'ci',
            client_secret: 'a secret of the test',
            token_endpoint_auth_method: 'client_secret_post',
          },
          ...{ grant_types: ['client_credentials'], redirect_uris: [], response_types: [] },
          id_token_signed_response_alg: 'ES256',
        },
      ],
      jwks: { keys: [jwk] },
      features: {
        clientCredentials: { enabled: true },
        devInteractions: { enabled: false },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: async (_ctx, resource) => ({
            ...{ scope: 'push', audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: 300 },
            jwt: { sign: { alg: 'ES256' } },
          }),
        },
      },
    });
    providers.push(provider);
    const asked = await network.outgoing.send({
      ...{ url: `${url}/token`, method: 'POST', spanMs: 5_000, answerBytesMax: 16_384 },
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new TextEncoder().encode(
        new URLSearchParams({
          ...{ grant_type: 'client_credentials', client_id: 'ci', client_secret: 'a secret of the test' },
          resource: AUDIENCE,
        }).toString(),
      ),
    });
    assert.ok(asked.outcome === 'answered', JSON.stringify(asked));
    const answer = JSON.parse(new TextDecoder().decode(asked.body)) as { readonly access_token: string };
    await newRule('ci', url);
    const exchanged = await exchange(two, answer.access_token);
    assert.equal(exchanged.status, 200, `${exchanged.text} ${JSON.stringify(answer)}`);
  });
});
