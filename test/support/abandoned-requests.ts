/** One request of each kind that the server answers, as bytes, for tests whose clients disconnect before the answer. */
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import {
  basicAuthorization,
  blob,
  commandList,
  commit,
  DELIMITER,
  FLUSH,
  pack,
  packet,
  tree,
  type WireObject,
  wirePush,
  wireRefs,
} from './git-wire.ts';
import type { HeldServer } from './held-server.ts';

export interface RequestBytes {
  readonly bytes: Buffer;
  /** The status of the answer when the client stays connected. */
  readonly status: number;
}

export interface RequestKind {
  readonly name: string;
  /** The operation's id in the table of routes; null for Git's endpoints. */
  readonly operationId: string | null;
  readonly hasBody: boolean;
  /** Makes a new request of this kind, and first whatever the request needs. */
  readonly make: () => Promise<RequestBytes>;
}

function request(method: string, target: string, headers: readonly string[], body: Buffer | null): Buffer {
  const lines = [`${method} ${target} HTTP/1.1`, 'Host: localhost', 'Connection: close', ...headers];
  if (body !== null) lines.push(`Content-Length: ${body.length}`);
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body ?? Buffer.alloc(0)]);
}

/** Git's requests: ref advertisements, fetches and pushes. */
export async function gitKinds({ target }: HeldServer): Promise<readonly RequestKind[]> {
  const { account, name } = target;
  // Too large for the server to send in one chunk.
  const large = blob(randomBytes(1_200_000));
  const small = blob('small\n');
  const folder = tree([
    { mode: '100644', name: 'large', id: large.id },
    { mode: '100644', name: 'small', id: small.id },
  ]);
  const first = commit('first', folder.id);
  const tip = commit('tip', folder.id, [first.id]);
  const refs = [
    { ref: 'refs/heads/main', after: tip.id },
    { ref: 'refs/heads/old', after: first.id },
  ];
  const pushed = await wirePush(target, refs, [first, tip, folder, large, small]);
  if (pushed.refs.get('refs/heads/main') !== 'ok') throw new Error(`The first push was refused: ${pushed.remote}`);
  let count = 0;
  const gitRequest = (service: string, more: readonly string[], body: Buffer): RequestBytes => {
    const type = `Content-Type: application/x-${service}-request`;
    const headers = [`Authorization: ${basicAuthorization(account)}`, type, ...more];
    return { bytes: request('POST', `/r/${account.username}/${name}.git/${service}`, headers, body), status: 200 };
  };
  const advertisement = (service: string, more: readonly string[]): RequestBytes => {
    const place = `/r/${account.username}/${name}.git/info/refs?service=${service}`;
    return {
      bytes: request('GET', place, [`Authorization: ${basicAuthorization(account)}`, ...more], null),
      status: 200,
    };
  };
  const V2 = ['Git-Protocol: version=2'];
  const fetchV2 = (lines: readonly string[]): RequestBytes => {
    const body = [
      packet('command=fetch\n'),
      DELIMITER,
      ...[...lines, 'done'].map((line) => packet(`${line}\n`)),
      FLUSH,
    ];
    return gitRequest('git-upload-pack', V2, Buffer.concat(body));
  };
  const fetchV0 = (): RequestBytes => {
    const want = packet(`want ${tip.id} side-band-64k no-progress ofs-delta\n`);
    const have = packet(`have ${first.id}\n`);
    return gitRequest('git-upload-pack', [], Buffer.concat([want, FLUSH, have, packet('done\n')]));
  };
  const push = (objects: readonly WireObject[], after: string): RequestBytes => {
    const list = commandList([{ ref: `refs/heads/branch-${++count}`, after }]);
    return gitRequest('git-receive-pack', [], Buffer.concat([list, pack(objects)]));
  };
  const pushNew = (): RequestBytes => {
    const next = commit(`new ${count}`, folder.id, [tip.id]);
    return push([next], next.id);
  };
  const pushUnusual = (): RequestBytes => {
    const file = blob(`unusual ${count}`);
    const root = tree([{ mode: '100644', name: 'ü', id: file.id }]);
    const next = commit(`new ${count}`, root.id, [tip.id]);
    return push([next, root, file], next.id);
  };
  const deletion = async (): Promise<RequestBytes> => {
    const ref = `refs/heads/gone-${++count}`;
    await wirePush(target, [{ ref, after: tip.id }], []);
    return gitRequest('git-receive-pack', [], commandList([{ ref, before: tip.id }]));
  };
  const kinds: Readonly<Record<string, () => Promise<RequestBytes> | RequestBytes>> = {
    'the advertisement of a fetch': () => advertisement('git-upload-pack', []),
    'the advertisement of a fetch in version 2': () => advertisement('git-upload-pack', V2),
    'the advertisement of a push': () => advertisement('git-receive-pack', []),
    'ls-refs': () => gitRequest('git-upload-pack', V2, Buffer.concat([packet('command=ls-refs\n'), FLUSH])),
    // A filter with a new limit each time makes an answer that the server has not cached yet.
    'a clone': () => fetchV2([`want ${tip.id}`, 'no-progress', `filter blob:limit=${1_000_000 + ++count}`]),
    'a fetch in version 2': () => fetchV2([`want ${tip.id}`, `have ${first.id}`, 'no-progress']),
    'a fetch in version 0': fetchV0,
    'a fetch of an object that no ref names': () => fetchV2([`want ${folder.id}`, 'no-progress', 'filter blob:none']),
    'a push': pushNew,
    'a push that git checks': pushUnusual,
    'a push of existing objects': () => push([], tip.id),
    'a deletion': deletion,
  };
  return Object.entries(kinds).map(([kind, make]) => ({
    ...{ name: kind, operationId: null, hasBody: !kind.startsWith('the advertisement') },
    make: async () => make(),
  }));
}

const WITH_BODY = new Set([
  'undeleteRepository',
  'purgeRepository',
  'restoreRefs',
  'updateRefs',
  'createTag',
  'writeCommit',
  'createRepository',
  'updateRepository',
  'createAccessToken',
  'createWebhook',
  'createStorageBucket',
  'createTrustRule',
  'exchangeIdentityToken',
]);

/** At least one request for each operation of the REST API. */
export async function restKinds({ fixture, account, token, target }: HeldServer): Promise<readonly RequestKind[]> {
  const { objects } = fixture;
  const files = await fixture.repository(account, 'files', 'main');
  const refs = await wireRefs(target);
  const [main = '', old = ''] = [refs.get('refs/heads/main'), refs.get('refs/heads/old')];
  // Too large for the server to send in one chunk.
  const file = blob(randomBytes(1_200_000));
  const folder = tree([{ mode: '100644', name: 'file', id: file.id }]);
  const holder = commit('objects', folder.id);
  await wirePush(target, [{ ref: 'refs/heads/objects', after: holder.id }], [holder, folder, file]);
  const seconds = 1;
  const head = objects.commit({ tree: objects.tree({ 'README.md': ['100644', objects.blob('hello')] }), seconds });
  await fixture.push(files, { 'refs/heads/main': head });
  let count = 0;
  const call = (method: string, target: string, status: number, body?: object, by = token): RequestBytes => {
    const headers = [`Authorization: Bearer ${by.secret}`];
    if (body !== undefined) headers.push('Content-Type: application/json');
    const json = body === undefined ? null : Buffer.from(JSON.stringify(body));
    return { bytes: request(method, target, headers, json), status };
  };
  // The account of the other requests grows with them, and what reads a whole account would make more calls each time.
  const quiet = await fixture.account('quiet');
  const quietToken = await fixture.token(quiet);
  await fixture.deletedRepository(quiet);
  await fixture.repository(quiet, 'quiet');
  const [quietEntry] = await fixture.context.readModels.entryPlaces(quiet, null, { from: 0, to: 1, limit: 1 });
  const quietEvent = String(quietEntry?.eventId);
  const ofAccount = (target: string): RequestBytes => call('GET', target, 200, undefined, quietToken);
  const newRepository = async (): Promise<string> => {
    const name = `made-${++count}`;
    await fixture.repository(account, name);
    return `/v1/repos/ada/${name}`;
  };
  const deletedRepository = async (): Promise<string> => `/v1/repositories/${await fixture.deletedRepository(account)}`;
  const newToken = async (): Promise<string> => `/v1/access-tokens/${(await fixture.token(account)).id}`;
  const newWebhook = async (): Promise<string> => `/v1/webhooks/${await fixture.webhook(account)}`;
  const newBucket = async (): Promise<string> => `/v1/storage-buckets/${await fixture.bucket(account)}`;
  const newRule = async (): Promise<string> => `/v1/oidc/trust-rules/${await fixture.trustRule(account)}`;
  const newIdentity = () => {
    const now = Math.floor(Date.parse(fixture.clock.now()) / 1_000);
    const aud = `${fixture.context.addresses().webUrl}/ada`;
    const claims = { iss: rule.issuer, sub: 'job', aud, jti: `job-${++count}`, iat: now, exp: now + 600 };
    return { id_token: JSON.stringify(claims) };
  };
  const newDelivery = async (): Promise<string> => {
    const webhook = await fixture.webhook(account);
    return `/v1/webhooks/${webhook}/deliveries/${await fixture.delivery(account, webhook)}`;
  };
  const newSession = async (): Promise<string> => {
    const begun = await fixture.request('POST', '/v1/auth/sessions', null, { body: { hostname: 'laptop' } });
    fixture.clock.advance(60_000);
    const { id, secret_token } = begun.json();
    return `/v1/auth/sessions/${id}/poll?secret_token=${secret_token}`;
  };
  // The server caches what it read at a revision, so each of these requests reads at a new revision.
  const ofFiles = async (rest: string): Promise<RequestBytes> => {
    await fixture.push(files, { [`refs/heads/branch-${++count}`]: head });
    return call('GET', `/v1/repos/ada/files/${rest}`, 200);
  };
  const ofCode = async (rest: string): Promise<RequestBytes> => {
    await wirePush(target, [{ ref: `refs/heads/read-${++count}`, after: main }], []);
    return call('GET', `/v1/repos/ada/code/${rest}`, 200);
  };
  // What was found is kept by what was searched, so each of these requests searches other files.
  const ofNewFiles = async (rest: string): Promise<RequestBytes> => {
    const named = blob(`named ${++count}\n`);
    const root = tree([{ mode: '100644', name: `file-${count}`, id: named.id }]);
    const next = commit(`files ${count}`, root.id);
    await wirePush(target, [{ ref: `refs/heads/files-${count}`, after: next.id }], [next, root, named]);
    return call('GET', `/v1/repos/ada/code/${rest}&ref=files-${count}`, 200);
  };
  const ofNewCommit = async (rest: string): Promise<RequestBytes> => {
    const small = blob(`small ${++count}\n`);
    const root = tree([{ mode: '100644', name: 'small', id: small.id }]);
    const next = commit(`blamed ${count}`, root.id, [main]);
    const ref = `blamed-${count}`;
    await wirePush(target, [{ ref: `refs/heads/${ref}`, after: next.id }], [next, root, small]);
    return call('GET', `/v1/repos/ada/code/${rest}?ref=${ref}`, 200);
  };
  const newBranch = () => ({ updates: [{ ref: `refs/heads/made-${++count}`, expected: 'any', after: main }] });
  const newCommit = () => ({
    ...{ branch: 'commits', expected: 'any', message: 'A change' },
    changes: [{ action: 'put', path: `file-${++count}`, content: 'text' }],
  });
  const newTag = () => ({ name: `made-${++count}`, target: main, expected: 'any' });
  const rename = { name: 'renamed' };
  const hook = { url: 'https://receiver.example/other', events: ['push'], active: true };
  const rule = {
    name: 'other',
    issuer: 'https://issuer.example',
    subject: 'other',
    grants: ['GIT_HTTP_READ'],
    scope: 'ALL_REPO',
  };
  const bucket = {
    ...{ name: 'other', provider: 'S3', auth_mode: 'OIDC', bucket_name: 'layers' },
    role_arn: 'arn:aws:iam::123456789012:role/strata',
  };
  const settings = { name: 'test', scope: 'ALL_REPO', grants: ['ALL'] };
  const watchedToken = await newToken();
  const code = '/v1/repos/ada/code';
  const kinds: readonly (readonly [operationId: string, make: () => Promise<RequestBytes> | RequestBytes])[] = [
    ['getOpenApi', () => call('GET', '/v1/openapi.json', 200)],
    ['getOpenApi30', () => call('GET', '/v1/openapi-3.0.json', 200)],
    ['getIssuer', () => call('GET', '/.well-known/openid-configuration', 200)],
    ['getPublicKeys', () => call('GET', '/.well-known/jwks.json', 200)],
    ['getLogKeys', () => call('GET', '/.well-known/strata-log-keys', 200)],
    ['listLogKeys', () => call('GET', '/v1/log-keys', 200)],
    ['getLatestCheckpoint', () => call('GET', '/v1/account/checkpoints/latest', 200)],
    ['getInclusionProof', () => call('GET', '/v1/account/proofs/inclusion?sequence=0&tree_size=2', 200)],
    ['getConsistencyProof', () => call('GET', '/v1/account/proofs/consistency?from=1&to=2', 200)],
    ['getAccountState', () => ofAccount('/v1/account/state')],
    ['listRefs', () => ofFiles(`refs?at=${encodeURIComponent(fixture.clock.now())}`)],
    ['createDeviceSession', () => call('POST', '/v1/auth/sessions', 201, { hostname: 'laptop' })],
    ['pollDeviceSession', async () => call('GET', await newSession(), 202)],
    ['getUsage', () => call('GET', '/v1/account/usage', 200)],
    ['listUsageLedger', () => call('GET', '/v1/account/usage/ledger', 200)],
    ['exportAccountLog', () => ofAccount('/v1/account/events/export')],
    ['listAccountEvents', () => call('GET', '/v1/account/events', 200)],
    ['getAccountEvent', () => ofAccount(`/v1/account/events/${quietEvent}`)],
    ['listSignIns', () => ofAccount('/v1/account/sign-ins')],
    ['getRepositoryAccess', () => call('GET', '/v1/repos/quiet/quiet/access', 200, undefined, quietToken)],
    ['listRepositoryAccesses', () => call('GET', '/v1/repos/quiet/quiet/accesses', 200, undefined, quietToken)],
    ['listRepositories', () => call('GET', '/v1/repositories', 200)],
    ['createRepository', () => call('POST', '/v1/repositories', 201, { name: `new-${++count}` })],
    ['getRepository', () => call('GET', code, 200)],
    ['updateRepository', () => call('PATCH', code, 200, { description: `${++count}` })],
    ['deleteRepository', async () => call('DELETE', await newRepository(), 204)],
    ['listBranches', () => ofFiles('branches')],
    ['listActivity', () => ofFiles('activity')],
    ['listDeletedRepositories', () => ofAccount('/v1/repositories/deleted')],
    ['undeleteRepository', async () => call('POST', `${await deletedRepository()}/restore`, 200, {})],
    ['purgeRepository', async () => call('POST', `${await deletedRepository()}/purge`, 202, {})],
    ['restoreRefs', () => call('POST', `${code}/restore`, 200, { at: fixture.clock.now(), dry_run: true })],
    ['updateRefs', () => call('POST', `${code}/refs`, 200, newBranch())],
    ['writeCommit', () => call('POST', `${code}/commits`, 201, newCommit())],
    ['createTag', () => call('POST', `${code}/tags`, 201, newTag())],
    ['listCommits', () => ofFiles('commits')],
    ['listCommits', () => ofCode('commits?ref=old')],
    ['listCommits', () => ofCode('commits?path=large')],
    ['listCommits', () => ofNewFiles('commits?author=a')],
    ['getCommit', () => ofCode(`commits/${main}`)],
    ['getBranch', () => ofCode('branches/main')],
    ['listTags', () => ofCode('tags')],
    ['getCommitDiff', () => ofCode(`commits/${old}.diff`)],
    ['getCommitPatch', () => ofCode(`commits/${old}.patch`)],
    ['compareRefs', () => ofCode('compare/old...main')],
    ['getArchive', () => ofCode('archive/main.tar.gz')],
    ['getArchive', () => ofCode('archive/old.zip')],
    ['getBlob', () => ofCode(`blobs/${file.id}`)],
    ['getBlob', () => ofCode(`blobs/${file.id}?raw=true`)],
    ['getTree', () => ofCode(`trees/${folder.id}`)],
    ['getTree', () => ofCode(`trees/${folder.id}?recursive=true`)],
    ['findFiles', () => ofNewFiles('files?q=file')],
    ['searchCode', () => ofNewFiles('search?q=named')],
    ['searchCode', () => ofNewFiles('search?q=nam.d&regex=true')],
    ['getRootContents', () => ofCode('contents')],
    ['getContents', () => ofCode('contents/large')],
    ['getContents', () => ofCode('contents/large?raw=true')],
    ['getContents', () => ofCode('contents/small?raw=true')],
    ['getRawContents', () => ofCode('raw/large')],
    // What was found is kept by commit, so each asks at a new one.
    ['getBlame', () => ofNewCommit('blame/small')],
    ['createAccessToken', () => call('POST', '/v1/access-tokens', 201, settings)],
    ['listAccessTokens', () => call('GET', '/v1/access-tokens', 200)],
    ['getAccessToken', async () => call('GET', await newToken(), 200)],
    // Each token lengthens the log that is exported above, so this one is made once.
    ['getAccessTokenActivity', () => call('GET', `${watchedToken}/activity`, 200)],
    ['updateAccessToken', async () => call('PUT', await newToken(), 200, rename)],
    ['deleteAccessToken', async () => call('DELETE', await newToken(), 204)],
    ['listWebhookDeliveries', async () => call('GET', path.dirname(await newDelivery()), 200)],
    ['redeliverWebhookDelivery', async () => call('POST', `${await newDelivery()}/redeliver`, 202)],
    ['pingWebhook', async () => call('POST', `${await newWebhook()}/ping`, 202)],
    ['getOidcSetup', () => call('GET', '/v1/storage-buckets/oidc-setup', 200)],
    ['listStorageBucketErrors', () => call('GET', '/v1/storage-buckets/errors', 200)],
    ['listStorageBuckets', () => call('GET', '/v1/storage-buckets', 200)],
    ['createStorageBucket', async () => (await newBucket(), call('POST', '/v1/storage-buckets', 201, bucket))],
    ['getStorageBucket', async () => call('GET', await newBucket(), 200)],
    ['updateStorageBucket', async () => call('PUT', await newBucket(), 200, rename)],
    ['verifyStorageBucket', async () => call('POST', `${await newBucket()}/verify`, 200)],
    ['deleteStorageBucket', async () => call('DELETE', await newBucket(), 204)],
    ['exchangeIdentityToken', async () => (await newRule(), call('POST', '/v1/oidc/token', 200, newIdentity()))],
    ['listTrustRules', () => call('GET', '/v1/oidc/trust-rules', 200)],
    ['createTrustRule', async () => (await newRule(), call('POST', '/v1/oidc/trust-rules', 201, rule))],
    ['getTrustRule', async () => call('GET', await newRule(), 200)],
    ['updateTrustRule', async () => call('PUT', await newRule(), 200, rename)],
    ['deleteTrustRule', async () => call('DELETE', await newRule(), 204)],
    ['listRefusedExchanges', async () => call('GET', `${await newRule()}/refusals`, 200)],
    ['listWebhooks', () => call('GET', '/v1/webhooks', 200)],
    ['getWebhook', async () => call('GET', await newWebhook(), 200)],
    ['createWebhook', async () => (await newWebhook(), call('POST', '/v1/webhooks', 201, hook))],
    ['updateWebhook', async () => call('PUT', await newWebhook(), 200, hook)],
    ['rotateWebhookSecret', async () => call('POST', `${await newWebhook()}/secret`, 200)],
    ['deleteWebhook', async () => call('DELETE', await newWebhook(), 204)],
  ];
  return kinds.map(([operationId, make], index) => ({
    name: `${index + 1}. ${operationId}`,
    operationId,
    hasBody: WITH_BODY.has(operationId),
    make: async () => make(),
  }));
}
