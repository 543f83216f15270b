/** The OpenAPI document: every route in it is called, and the answer must fit its schema. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { ROUTES } from '../../../apps/api/routes.ts';
import { type AccountId, EMPTY_TREE_ID } from '../../../core/kernel/ids.ts';
import type { IdentityTokens } from '../../../core/ports/identity-tokens.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { withoutChanges } from '../../support/no-history.ts';

interface Media {
  readonly schema: { readonly $ref?: string; readonly description?: string };
}

interface Operation {
  readonly operationId: string;
  readonly security: readonly object[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly schema: object;
    readonly required: boolean;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>>; readonly required?: boolean };
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content?: Readonly<Record<string, Media>> }>
  >;
}

interface Document {
  readonly openapi: string;
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>;
    readonly securitySchemes: Readonly<Record<string, object>>;
  };
}

/** Closes every object, since an answer has no member that the document does not show. */
function withClosedObjects(schema: object): object {
  return JSON.parse(JSON.stringify(schema), (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null || !('properties' in value) || !('type' in value)) return value;
    return 'additionalProperties' in value ? value : { ...value, additionalProperties: false };
  });
}

/** Every combination of one value for each name; undefined leaves the name out. */
function combined(choices: Readonly<Record<string, readonly unknown[]>>): readonly object[] {
  return Object.entries(choices).reduce<readonly object[]>(
    (all, [name, values]) =>
      all.flatMap((one) => values.map((value) => (value === undefined ? one : { ...one, [name]: value }))),
    [{}],
  );
}

const WRONG_BUCKETS = {
  bucket_name: ['layers', 'a.b-c', 'La', 'a..b', '127.0.0.1', '-ab', 'ab-'],
  key_prefix: ['', 'a/b', 'a/b/', '/a', 'a//b', '../a', 'a/.', 'a b'],
};
const WRONG_RULES = {
  subject: ['a', '*'.repeat(10), '*'.repeat(11), 'a\nb', ''],
  claims: [{}, { ref: 'x' }, { sub: 'x' }, { ref: '' }, { '': 'x' }, { 'a\u0007': 'x' }],
  issuer: ['https://issuer.example', 'https://issuer.example/a?b', 'issuer.example', 'https://a.example#'],
};
const BRANCHES = [
  ...[
    'main',
    'a/b',
    'a.b',
    'HEAD2',
    'a@b',
    'ä',
    'HEAD',
    'a'.repeat(40),
    'a b',
    'a..b',
    '/a',
    'a/',
    'a//b',
    '.a',
    'a/.b',
  ],
  ...[
    'a.',
    'a.lock',
    'a.lock/b',
    '-a',
    'a/-b',
    'a~1',
    'a^',
    'a:b',
    'a?',
    'a*',
    'a[',
    'a\\b',
    'a@{b',
    '',
    'a\u0001',
    '@',
  ],
];

describe('the OpenAPI document', () => {
  let fixture: ApiFixture;
  let owner: AccountId;
  let token: TestToken;
  let document: Document;
  let document30: Document;
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
  const ajv30 = new Ajv({ strict: false, validateFormats: false, allErrors: true });

  beforeAll(async () => {
    fixture = await createApiFixture({
      identityTokens: ANY_TOKEN,
      objects: ({ database }) => withoutChanges(database),
    });
    owner = await fixture.account('ada');
    token = await fixture.token(owner);
    document = (await fixture.request('GET', '/v1/openapi.json', null)).json();
    document30 = (await fixture.request('GET', '/v1/openapi-3.0.json', null)).json();
    ajv.addSchema({ $id: 'openapi', ...withClosedObjects(document) });
    ajv30.addSchema({ $id: 'openapi', ...withClosedObjects(document30) });
  });
  afterAll(() => fixture.close());

  function operations(): readonly { method: string; path: string; operation: Operation }[] {
    return Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
    );
  }

  /** Checks an answer against the document's schema for its status and content type. */
  function assertFits(operation: Operation, answer: Awaited<ReturnType<ApiFixture['request']>>): void {
    const what = `${operation.operationId} ${answer.statusCode}`;
    const response = operation.responses[String(answer.statusCode)];
    assert.ok(response !== undefined, `${what} is not in the document: ${answer.body}`);
    assert.ok(response.description !== 'Default Response', `${what} says nothing`);
    if (answer.body === '') return;
    const type = String(answer.headers['content-type']).split(';', 1)[0] ?? '';
    const media = response.content?.[type];
    assert.ok(media !== undefined, `${what} as ${type} is not in the document`);
    if (type !== 'application/json') return;
    const validate = ajv.compile(withClosedObjects(absolute(media.schema)));
    assert.ok(validate(answer.json()), `${what}: ${ajv.errorsText(validate.errors)} in ${answer.body}`);
    const old = in30(operation).responses[String(answer.statusCode)]?.content?.[type];
    assert.ok(old !== undefined, `${what} is not in the document of version 3.0`);
    const validate30 = ajv30.compile(withClosedObjects(absolute(old.schema)));
    assert.ok(validate30(answer.json()), `${what} in 3.0: ${ajv30.errorsText(validate30.errors)} in ${answer.body}`);
  }

  function in30({ operationId }: Operation): Operation {
    const found = Object.values(document30.paths)
      .flatMap((methods) => Object.values(methods))
      .find((operation) => operation.operationId === operationId);
    assert.ok(found !== undefined, operationId);
    return found;
  }

  /** Rewrites the document's references, so that they resolve outside of it. */
  function absolute(schema: object): object {
    return JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"openapi#/components'));
  }

  async function preparedUrl(operationId: string, path: string): Promise<string> {
    const name = `for-${operationId.toLowerCase()}`;
    const repository = await fixture.repository(owner, name);
    const { objects } = fixture;
    const blob = objects.blob('int main;');
    const folder = objects.tree({ 'main.c': ['100644', blob] });
    const tree = objects.tree({ src: ['040000', folder], link: ['120000', objects.blob('src')] });
    const tip = objects.commit({ tree, seconds: 1 });
    await fixture.push(repository, { 'refs/heads/master': tip, 'refs/tags/v1': objects.tag(tip, 'v1') });
    const other = await fixture.token(owner);
    const webhook = path.startsWith('/v1/webhooks') ? await fixture.webhook(owner) : null;
    const rule = path.startsWith('/v1/oidc/') ? await fixture.trustRule(owner) : null;
    const delivery = webhook !== null && path.includes('{delivery_id}') ? await fixture.delivery(owner, webhook) : '';
    const deleted = path.startsWith('/v1/repositories/{id}') ? await fixture.deletedRepository(owner) : null;
    const bucket = path.startsWith('/v1/storage-buckets/{id}') ? await fixture.bucket(owner) : null;
    const log = await fixture.request('GET', '/v1/account/events?limit=1', token);
    const [first] = log.json<{ readonly events: readonly { readonly entry: { readonly id: string } }[] }>().events;
    const event = path.startsWith('/v1/account/events/{id}') ? (first?.entry.id ?? assert.fail('no event')) : null;
    return path
      .replace('{username}', 'ada')
      .replace('{name}', name)
      .replace('{path}', 'src/main.c')
      .replace('{id}', rule ?? webhook ?? bucket ?? deleted ?? event ?? other.id)
      .replace('{delivery_id}', delivery)
      .replace('{branch}', 'master')
      .replace('{archive}', 'master.tar.gz')
      .replace('{comparison}', 'master...master')
      .replace('{blob}', blob)
      .replace('{tree}', tree)
      .replace('{hexsha}', tip);
  }

  /** The parameters of routes that require some. */
  const QUERIES: Readonly<Record<string, string>> = {
    getInclusionProof: '?sequence=0&tree_size=1',
    getConsistencyProof: '?from=1&to=1',
    searchCode: '?q=text',
  };

  const BODIES: Readonly<Record<string, object>> = {
    createDeviceSession: { hostname: 'laptop' },
    createRepository: { name: 'new', description: 'x' },
    updateRepository: { description: 'y', default_branch: 'trunk' },
    createAccessToken: { name: 'x', scope: 'ALL_REPO', grants: ['ALL'], expires_at: '2030-01-01T00:00:00Z' },
    updateAccessToken: { name: 'y', expires_at: null },
    undeleteRepository: {},
    purgeRepository: { dry_run: true },
    restoreRefs: { at: '2026-11-21T10:00:00Z', dry_run: true },
    writeCommit: {
      ...{ branch: 'master', expected: 'any', message: 'The same' },
      changes: [{ action: 'put', path: 'src/main.c', content: 'int main;' }],
    },
    createTag: { name: 'made', target: EMPTY_TREE_ID, expected: 'any' },
    updateRefs: { updates: [{ ref: 'refs/heads/gone', expected: 'any', after: null }] },
    createWebhook: { url: 'https://receiver.example/', events: ['push'] },
    createStorageBucket: {
      ...{ name: 'x', provider: 'MINIO', auth_mode: 'STATIC_KEYS', bucket_name: 'layers', region: 'us-east-1' },
      ...{ endpoint_url: 'https://minio.example', access_key_id: 'AKIA1', secret_access_key: 'secret' },
    },
    updateStorageBucket: { name: 'z', is_default: true },
    exchangeIdentityToken: { id_token: 'a token' },
    createTrustRule: {
      ...{ name: 'main', issuer: 'https://issuer.example', subject: 'repo:acme/*' },
      ...{ claims: { ref: 'refs/heads/main' }, grants: ['GIT_HTTP_READ'], scope: 'ALL_REPO' },
    },
    updateTrustRule: { subject: 'repo:acme/site', grants: ['ALL'] },
    updateWebhook: { url: 'https://another.example/', active: false },
  };

  test('is version 3.1, names the server, and needs no token', () => {
    assert.equal(document.openapi, '3.1.0');
    assert.deepEqual(document.servers, [{ url: 'http://localhost:8080' }]);
    assert.deepEqual(Object.keys(document.components.securitySchemes), ['token']);
  });

  test('is valid in both versions, by a validator that knows nothing of this service', async () => {
    assert.equal(document30.openapi, '3.0.3');
    for (const one of [document, document30]) {
      const { valid, errors } = await new Validator().validate({ ...one });
      assert.ok(valid, JSON.stringify(errors));
    }
    assert.ok(
      !(await new Validator().validate({ ...document, openapi: '3.0.3' })).valid,
      '3.0 does not have the forms of 3.1',
    );
  });

  test('names every route of the table but the poll of a device login, and no other', () => {
    const named = operations().map(({ method, path, operation }) => `${method} ${path} ${operation.operationId}`);
    const listed = ROUTES.filter(({ unlisted }) => unlisted !== true);
    const table = listed.map(({ method, path, operationId }) => `${method} ${path} ${operationId}`);
    assert.deepEqual(named.toSorted(), table.toSorted());
    assert.deepEqual(
      ROUTES.filter(({ unlisted }) => unlisted).map(({ operationId }) => operationId),
      ['pollDeviceSession'],
    );
    assert.ok(!JSON.stringify(document).includes('/poll'), 'the poll is nowhere in it');
  });

  test('lists every parameter that a query may have, and each operation refuses others by naming its own', async () => {
    for (const { path, operation } of operations()) {
      const what = operation.operationId;
      const url = await preparedUrl(`${what}-query`, path);
      const known = (operation.parameters ?? []).filter((parameter) => parameter.in === 'query');
      const answer = await fixture.request(
        ROUTES.find(({ operationId }) => operationId === what)?.method ?? 'GET',
        `${url}?colour=red`,
        token,
        { body: BODIES[what] },
      );
      assert.equal(answer.statusCode, 422, what);
      const [fault] = answer.json().detail;
      assert.deepEqual(fault.loc, ['query', 'colour'], what);
      assert.equal(fault.type, 'unrecognized_keys');
      for (const { name } of known) assert.ok(fault.msg.includes(`\`${name}\``), `${what} names ${name}: ${fault.msg}`);
    }
    const many = Array.from({ length: 1_000 }, (_, index) => `x${index}`).join('&');
    const { detail } = (await fixture.request('GET', `/v1/repositories?${many}`, token)).json();
    assert.equal(detail.length, 10, 'a short query makes no long answer');
    const long = (await fixture.request('GET', `/v1/repositories?${'x'.repeat(8_000)}`, token)).json();
    assert.equal(long.detail[0].loc[1].length, 100);
  });

  test('lets no body have a member that its operation does not know, and each operation refuses one by name', async () => {
    for (const { method, operationId, path } of ROUTES) {
      if (method === 'GET') continue;
      const url = await preparedUrl(`${operationId}-members`, path);
      const send = (members: object) =>
        fixture.request(method, url, token, { body: { ...BODIES[operationId], ...members } });
      for (const name of ['colour', '__proto__', 'constructor']) {
        const answer = await send({ [name]: { name: 'red' } });
        assert.equal(answer.statusCode, 422, `${operationId} ${answer.body}`);
        const [fault, ...others] = answer.json().detail;
        assert.deepEqual([fault.loc, fault.type, others], [['body', name], 'unrecognized_keys', []], operationId);
      }
      const { detail } = (await send({ ['y'.repeat(50_000)]: 1 })).json();
      assert.equal(detail[0].loc[1].length, 100, operationId);
    }
  });

  test('closes the objects of requests, and leaves those of answers open for members that they get later', () => {
    const closed = (value: unknown): unknown[] => {
      if (typeof value !== 'object' || value === null) return [];
      const own =
        'properties' in value ? ['additionalProperties' in value && value.additionalProperties === false] : [];
      return [...own, ...Object.values(value).flatMap(closed)];
    };
    const resolved = (value: unknown): unknown =>
      JSON.parse(JSON.stringify(value), (_key, part: unknown) => {
        if (typeof part !== 'object' || part === null || !('$ref' in part) || typeof part.$ref !== 'string')
          return part;
        return resolved(document.components.schemas[part.$ref.replace('#/components/schemas/', '')]);
      });
    for (const { operation } of operations()) {
      const json = operation.requestBody?.content['application/json'] ?? {};
      // A condition that holds for no body is no object of its own.
      const body = JSON.parse(JSON.stringify(json), (key, value) => (key === 'not' ? 0 : value));
      assert.ok(
        closed(resolved(body)).every((one) => one === true),
        operation.operationId,
      );
      assert.ok(
        closed(resolved(operation.responses)).every((one) => one === false),
        operation.operationId,
      );
    }
  });

  test('lists every parameter of a path, and no unused schema', () => {
    const text = JSON.stringify(document);
    for (const { path, operation } of operations()) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const given = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path');
      assert.deepEqual(
        given.map(({ name }) => name),
        named,
        path,
      );
      assert.ok(given.every(({ required }) => required));
    }
    for (const name of Object.keys(document.components.schemas)) {
      assert.ok(text.includes(`"#/components/schemas/${name}"`), name);
    }
    assert.ok(!text.includes('"wire"'));
  });

  test('states the bounds of pages', () => {
    const list = document.paths['/v1/repositories']?.['get'];
    const limit = list?.parameters?.find(({ name }) => name === 'limit');
    assert.equal(limit?.required, false);
    assert.deepEqual(limit?.schema, { type: 'integer', minimum: 1, maximum: 100, default: 50 });
  });

  test('states the pattern of a name so that it takes exactly the names that the service takes', async () => {
    const body = document.paths['/v1/repositories']?.['post']?.requestBody?.content['application/json']?.schema;
    const { pattern } = (body as { readonly properties: { readonly name: { readonly pattern: string } } }).properties
      .name;
    const namer = await fixture.token(await fixture.account('namer'));
    const names = [
      'a',
      'A.b_c-9',
      '_',
      'a.git.b',
      'x.locked',
      'git',
      '.a',
      '-a',
      'a..b',
      'a.',
      'a.GIT',
      'a.lock',
      'a b',
      'ä',
      '',
    ];
    for (const name of names) {
      const answer = await fixture.request('POST', '/v1/repositories', namer, { body: { name } });
      assert.equal(answer.statusCode, new RegExp(pattern, 'u').test(name) ? 201 : 422, name);
    }
  });

  test('uses no class of Unicode properties in a pattern, which the engines of other languages do not have', () => {
    const patterns: string[] = [];
    JSON.stringify([document, document30], (name, value: unknown) => {
      if (name === 'pattern' && typeof value === 'string') patterns.push(value);
      return value;
    });
    assert.ok(patterns.length > 0);
    assert.deepEqual(
      patterns.filter((pattern) => /\\p\{/iu.test(pattern)),
      [],
    );
  });

  /** Returns whether the document offers this body. */
  function offers(path: string, method: string, body: object): boolean {
    const schema = document.paths[path]?.[method]?.requestBody?.content['application/json']?.schema;
    const old = document30.paths[path]?.[method]?.requestBody?.content['application/json']?.schema;
    assert.ok(schema !== undefined && old !== undefined);
    const offered = ajv.compile(absolute(schema))(body);
    const offered30 = ajv30.compile(absolute(old))(body);
    // Version 3.0 has no keyword for the names of claims.
    assert.ok(offered30 === offered || (offered30 && 'claims' in body), `${path} ${JSON.stringify(body)} in 3.0`);
    return offered;
  }

  test('offers exactly the bodies that the service does not always refuse', async () => {
    const id = (await fixture.repository(owner, 'offered')).id;
    let count = 0;
    let stranger = token;
    const cases: readonly (readonly [path: string, base: object, Readonly<Record<string, readonly unknown[]>>])[] = [
      [
        '/v1/access-tokens',
        { name: 'x', grants: ['GIT_HTTP_READ'] },
        { scope: ['ALL_REPO', 'SELECTED_REPO'], repository_ids: [undefined, [], [id]] },
      ],
      [
        '/v1/oidc/trust-rules',
        { ...BODIES['createTrustRule'] },
        { scope: ['ALL_REPO', 'SELECTED_REPO'], repository_ids: [undefined, [], [id]] },
      ],
      [
        '/v1/storage-buckets',
        { bucket_name: 'layers', region: 'eu-1', access_key_id: 'AKIA1' },
        {
          provider: ['S3', 'R2', 'MINIO'],
          auth_mode: ['OIDC', 'STATIC_KEYS'],
          role_arn: [undefined, 'arn:aws:iam::123456789012:role/strata'],
          secret_access_key: [undefined, 'secret'],
          endpoint_url: [undefined, 'https://minio.example'],
        },
      ],
      ['/v1/storage-buckets', BODIES['createStorageBucket'] ?? {}, WRONG_BUCKETS],
      ['/v1/oidc/trust-rules', BODIES['createTrustRule'] ?? {}, WRONG_RULES],
      [
        '/v1/webhooks',
        { events: ['push'] },
        { url: ['https://receiver.example/', 'ftp://a.example', 'x', 'https://a b'] },
      ],
      ['/v1/repositories', {}, { default_branch: BRANCHES }],
    ];
    for (const [path, base, choices] of cases) {
      for (const chosen of combined(choices)) {
        count += 1;
        // A new account for some, so that no limit of an account decides.
        if (count % 15 === 1) stranger = await fixture.token(await fixture.account(`offered-${count}`));
        const isListed = JSON.stringify(chosen).includes(id);
        const caller = isListed ? token : stranger;
        const label = path === '/v1/webhooks' ? {} : { name: `n-${count}` };
        const body = { ...base, ...label, ...chosen };
        const answer = await fixture.request('POST', path, caller, { body });
        const what = `${path} ${JSON.stringify(body)}: ${answer.body}`;
        assert.equal(answer.statusCode, offers(path, 'post', body) ? 201 : 422, what);
      }
    }
  });

  test('offers no change that the service always refuses', async () => {
    const bucket = await fixture.bucket(owner);
    const rule = await fixture.trustRule(owner);
    const { id: repository } = await fixture.repository(owner, 'unfit');
    const selections = [
      { scope: 'ALL_REPO', repository_ids: [repository] },
      { scope: 'SELECTED_REPO', repository_ids: [] },
    ];
    const cases = [
      ...selections.map((body) => ['/v1/access-tokens/{id}', token.id, body] as const),
      ...selections.map((body) => ['/v1/oidc/trust-rules/{id}', rule, body] as const),
      ...['R2', 'MINIO'].map(
        (provider) => ['/v1/storage-buckets/{id}', bucket, { provider, auth_mode: 'OIDC' }] as const,
      ),
    ];
    const caller = await fixture.token(owner);
    const changed = (await fixture.token(owner)).id;
    for (const [path, id, body] of cases) {
      const url = path.replace('{id}', path.startsWith('/v1/access-tokens') ? changed : id);
      const answer = await fixture.request('PUT', url, caller, { body });
      assert.equal(answer.statusCode, 422, `${path} ${JSON.stringify(body)}`);
      assert.equal(offers(path, 'put', body), false, path);
      const [[name, value] = ['', '']] = Object.entries(body);
      assert.equal(offers(path, 'put', { [name]: value }), true, 'one of the two may fit what is there');
    }
  });

  test('describes the answers of every route, of success and of errors, and where a body may be left out', async () => {
    const powerless = await fixture.token(owner, { grants: ['GIT_HTTP_READ'] });
    for (const { method, path, operation } of operations()) {
      const url = `${await preparedUrl(operation.operationId, path)}${QUERIES[operation.operationId] ?? ''}`;
      const body = BODIES[operation.operationId];
      const verb = ROUTES.find(({ operationId }) => operationId === operation.operationId)?.method;
      assert.ok(verb !== undefined && verb === method);
      assert.equal(operation.requestBody !== undefined, body !== undefined, operation.operationId);
      const sent = body === undefined ? {} : { body };
      const isPublic = operation.security.length === 0;
      if (!isPublic) {
        assertFits(operation, await fixture.request(verb, url, null, sent));
        assertFits(operation, await fixture.request(verb, url, powerless, sent));
      }
      if (path.includes('{name}'))
        assertFits(operation, await fixture.request(verb, url.replace('for-', 'no-'), token, sent));
      if (path.includes('{id}')) assertFits(operation, await fixture.request(verb, `${url}0`, token, sent));
      if (body !== undefined) {
        assertFits(operation, await fixture.request(verb, url, token, { body: { name: 5, description: 5 } }));
        assertFits(operation, await fixture.app.inject({ method: verb, url, headers: jsonBy(token), payload: '{' }));
        const large = `{"x": "${'x'.repeat(1024 * 1024)}"}`;
        assertFits(operation, await fixture.app.inject({ method: verb, url, headers: jsonBy(token), payload: large }));
      }
      const required = operation.requestBody?.required === true;
      if (required) assert.equal((await fixture.request(verb, url, token)).statusCode, 422, operation.operationId);
      const answer = await fixture.request(verb, url, isPublic ? null : token, required ? sent : {});
      assert.ok(answer.statusCode < 300, `${operation.operationId}: ${answer.body}`);
      assertFits(operation, answer);
      const { etag } = answer.headers;
      if (etag !== undefined) {
        const headers = { 'if-none-match': String(etag) };
        const again = await fixture.request(verb, url, isPublic ? null : token, { headers });
        assert.equal(again.statusCode, 304);
        assertFits(operation, again);
      }
    }
  });

  test('describes why a commit was not written', async () => {
    const url = await preparedUrl('not-written', '/v1/repos/{username}/{name}/commits');
    const operation = document.paths['/v1/repos/{username}/{name}/commits']?.['post'];
    assert.ok(operation !== undefined);
    const change = { action: 'put', path: 'src/main.c', content: 'int main;', expected_blob: EMPTY_TREE_ID };
    const wanted = { branch: 'master', message: 'A change', changes: [change] };
    for (const expected of ['any', EMPTY_TREE_ID]) {
      const answer = await fixture.request('POST', url, token, { body: { ...wanted, expected } });
      assert.equal(answer.statusCode, 409, answer.body);
      assertFits(operation, answer);
    }
  });

  test('says that a commit may come in parts, and puts its JSON first', () => {
    const operation = document.paths['/v1/repos/{username}/{name}/commits']?.['post'];
    const { content } = operation?.requestBody ?? assert.fail('It takes no body');
    assert.deepEqual(Object.keys(content), ['application/json', 'multipart/form-data']);
    const { schema } = content['multipart/form-data'] ?? {};
    const additionalProperties = { type: 'string', format: 'binary' };
    assert.deepEqual(
      { ...schema, description: '' },
      {
        ...{ type: 'object', description: '', required: ['commit'], additionalProperties },
      },
    );
    const in30 = document30.paths['/v1/repos/{username}/{name}/commits']?.['post']?.requestBody;
    assert.deepEqual(Object.keys(in30?.content ?? {}), ['application/json']);
  });

  test('describes why a tag was not made', async () => {
    const url = await preparedUrl('not-made', '/v1/repos/{username}/{name}/tags');
    const operation = document.paths['/v1/repos/{username}/{name}/tags']?.['post'];
    assert.ok(operation !== undefined);
    const body = { name: 'v1', target: EMPTY_TREE_ID, expected: '0'.repeat(40) };
    const answer = await fixture.request('POST', url, token, { body });
    assert.equal(answer.statusCode, 409, answer.body);
    assertFits(operation, answer);
  });

  test('describes why refs were not changed', async () => {
    const url = await preparedUrl('not-changed', '/v1/repos/{username}/{name}/refs');
    const operation = document.paths['/v1/repos/{username}/{name}/refs']?.['post'];
    assert.ok(operation !== undefined);
    for (const [ref, expected, status] of [
      ['refs/heads/master', '0'.repeat(40), 409],
      ['master', 'any', 422],
    ] as const) {
      const body = { updates: [{ ref, expected, after: 'e'.repeat(40) }] };
      const answer = await fixture.request('POST', url, token, { body });
      assert.equal(answer.statusCode, status, answer.body);
      assertFits(operation, answer);
    }
  });

  test('describes the other shapes of contents, and their bytes', async () => {
    const url = await preparedUrl('shapes', '/v1/repos/{username}/{name}/contents/{path}');
    const operation = document.paths['/v1/repos/{username}/{name}/contents/{path}']?.['get'];
    const bytes = document.paths['/v1/repos/{username}/{name}/raw/{path}']?.['get'];
    assert.ok(operation !== undefined && bytes !== undefined);
    const below = document.paths['/v1/repos/{username}/{name}/trees/{tree}']?.['get'];
    assert.ok(below !== undefined);
    const trees = await preparedUrl('recursive', '/v1/repos/{username}/{name}/trees/{tree}');
    assertFits(below, await fixture.request('GET', `${trees}?recursive=true`, token));
    for (const path of ['src', 'link']) {
      assertFits(operation, await fixture.request('GET', url.replace('src/main.c', path), token));
    }
    for (const path of ['/contents/src/main.c?raw=true', '/raw/src/main.c', '/contents/src?raw=true', '/raw/src']) {
      assertFits(bytes, await fixture.request('GET', url.replace('/contents/src/main.c', path), token));
    }
    const raw = url.replace('/contents/', '/raw/');
    assertFits(bytes, await fixture.request('GET', raw, token, { headers: { range: 'bytes=0-1' } }));
    assertFits(bytes, await fixture.request('GET', raw, token, { headers: { range: 'bytes=99-' } }));
  });
});

/** Takes every text for a new token of the rule that the fixture makes. */
const ANY_TOKEN: IdentityTokens = {
  read: () => ({
    claims: {
      ...{ iss: 'https://issuer.example', aud: 'http://localhost:8080/ada', sub: 'job', jti: randomUUID() },
      ...{ iat: Date.parse('2026-11-21T10:00:00.000Z') / 1_000, exp: Date.parse('2026-11-21T10:05:00.000Z') / 1_000 },
    },
    inexact: new Set(),
    isAlgorithmAllowed: true,
  }),
  verify: async () => null,
};

function jsonBy(token: TestToken): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${token.secret}`, 'content-type': 'application/json' };
}
