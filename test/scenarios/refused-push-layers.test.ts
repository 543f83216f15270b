/**
 * What a refused push leaves in the store of layers: nothing, wherever it was refused. The attack: a small account
 * sends pushes up to their last byte, takes away what they need, sends the byte, and so fills the disk with layers that
 * no event names and no quota counts.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { createS3LayerStore } from '../../adapters/s3/layer-store.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { filesBelow } from '../support/files-below.ts';
import {
  basicAuthorization,
  blob,
  commandList,
  commit,
  pack,
  reportOf,
  tree,
  type WireObject,
  type WireReport,
  type WireTarget,
  wirePush,
} from '../support/git-wire.ts';
import { needs } from '../support/optional-suites.ts';
import { type Account, api, createAccount, createRepository, type Strata } from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { startS3Server } from '../support/versitygw.ts';

const MAIN = 'refs/heads/main';
const LARGE_BYTES = 20 * 1024 * 1024;
/** Above it the objects of a pack are checked by git, below in the process. */
const SMALL_BYTES = 20_000;

function objectsOf(sizeBytes: number): readonly WireObject[] {
  const file = blob(randomBytes(sizeBytes));
  const root = tree([{ mode: '100644', name: 'file', id: file.id }]);
  return [commit('held', root.id), root, file];
}

interface HeldPush {
  /** Sends the last byte and returns the answer. */
  finish(): Promise<WireReport>;
}

/** Sends a push that creates `ref`, but for its last byte. */
async function hold(target: WireTarget, sizeBytes: number, ref = MAIN): Promise<HeldPush> {
  const [tip, ...rest] = objectsOf(sizeBytes);
  assert.ok(tip !== undefined);
  const body = Buffer.concat([commandList([{ ref, after: tip.id }]), pack([tip, ...rest])]);
  const { strata, account, name } = target;
  const socket = connect(Number(new URL(strata.url).port), '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  // The server may answer and close before it has read everything.
  socket.on('error', () => undefined);
  const head = [
    `POST /r/${account.username}/${name}.git/git-receive-pack HTTP/1.1`,
    `Host: ${new URL(strata.url).host}`,
    `Authorization: ${basicAuthorization(account)}`,
    'Content-Type: application/x-git-receive-pack-request',
    `Content-Length: ${body.length}`,
    'Connection: close',
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  await new Promise<void>((resolve) => socket.write(body.subarray(0, -1), () => resolve()));
  return {
    finish: async () => {
      socket.write(body.subarray(-1));
      await closed;
      const answer = Buffer.concat(chunks);
      const end = answer.indexOf('\r\n\r\n');
      const headers = answer.subarray(0, end).toString('latin1');
      const isChunked = /transfer-encoding: chunked/i.test(headers);
      const bytes = isChunked ? unchunked(answer.subarray(end + 4)) : answer.subarray(end + 4);
      return reportOf({ status: Number(headers.split(' ')[1]), headers: new Headers(), bytes });
    },
  };
}

function unchunked(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const end = body.indexOf('\r\n', at);
    const size = Number.parseInt(body.toString('latin1', at, end), 16);
    if (!(size > 0)) break;
    parts.push(body.subarray(end + 2, end + 2 + size));
    at = end + 2 + size + 2;
  }
  return Buffer.concat(parts);
}

/** What is taken away while a push is held, and what it is then told. */
const TAKEN: readonly {
  readonly what: string;
  readonly take: (held: { readonly strata: Strata; readonly ada: Account; readonly target: Target }) => Promise<void>;
  readonly told: RegExp;
  /** The layers that others stored in its repository in between. */
  readonly others: number;
}[] = [
  {
    what: 'its repository is deleted',
    take: async ({ strata, ada, target }) => {
      const { status } = await api(strata, ada.token, 'DELETE', `/v1/repos/ada/${target.name}`);
      assert.equal(status, 204);
    },
    told: /repository/i,
    others: 0,
  },
  {
    what: 'its token is revoked',
    take: async ({ strata, ada, target }) => {
      const { status } = await api(strata, ada.token, 'DELETE', `/v1/access-tokens/${target.tokenId}`);
      assert.equal(status, 204);
    },
    told: /token/i,
    others: 0,
  },
  {
    what: 'its ref is made by another push',
    take: async ({ ada, target }) => {
      const [tip, ...rest] = objectsOf(10);
      assert.ok(tip !== undefined);
      const report = await wirePush({ ...target, account: ada }, [{ ref: MAIN, after: tip.id }], [tip, ...rest]);
      assert.equal(report.refs.get(MAIN), 'ok');
    },
    told: /exists/i,
    others: 1,
  },
];

interface Target extends WireTarget {
  readonly tokenId: string;
  readonly id: string;
}

let targets = 0;

/** Makes a repository, and a token that pushes to it and nothing else. */
async function newTarget(strata: Strata, ada: Account): Promise<Target> {
  const name = `held-${(targets += 1)}`;
  await createRepository(strata, ada, name);
  const { body } = await api(strata, ada.token, 'GET', `/v1/repos/ada/${name}`);
  const made = await api(strata, ada.token, 'POST', '/v1/access-tokens', {
    name,
    scope: 'ALL_REPO',
    grants: ['GIT_HTTP_READ', 'GIT_HTTP_WRITE'],
  });
  assert.equal(made.status, 201, made.text);
  const { id: tokenId, token } = made.body as { id: string; token: string };
  return { strata, account: { username: 'ada', token }, name, tokenId, id: (body as { id: string }).id };
}

function refusesWithoutTrace(
  opened: () => { readonly strata: Strata; readonly ada: Account },
  layersOf: (id: string) => Promise<readonly string[]>,
): void {
  for (const { what, take, told, others } of TAKEN) {
    for (const [size, sizeBytes] of [
      ['small', SMALL_BYTES],
      ['large', LARGE_BYTES],
    ] as const) {
      test(`no layer stays of a ${size} push of which ${what} before its last byte`, async () => {
        const { strata, ada } = opened();
        const target = await newTarget(strata, ada);
        const held = await hold(target, sizeBytes);
        await take({ strata, ada, target });
        const report = await held.finish();
        const said = `${report.status} ${report.unpack} ${[...report.refs.values()].join(' ')} ${report.remote}`;
        assert.ok(![...report.refs.values()].includes('ok'), said);
        assert.match(said, told);
        assert.equal((await layersOf(target.id)).length, others, said);
      });
    }
  }
}

describe('In a folder,', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let strata: Strata;
  let ada: Account;

  beforeAll(async () => {
    shared = await sharedParts(ending);
    strata = await startNode(ending, shared);
    ada = await createAccount(strata, 'ada');
  });

  const layersOf = (id: string) => filesBelow(path.join(shared.layersDir, 'repositories', id, 'layers'));
  refusesWithoutTrace(() => ({ strata, ada }), layersOf);

  test('six pushes of 20 MB that are refused at their last byte leave nothing', async () => {
    for (let n = 0; n < 6; n += 1) {
      const target = await newTarget(strata, ada);
      const held = await hold(target, LARGE_BYTES);
      await api(strata, ada.token, 'DELETE', `/v1/repos/ada/${target.name}`);
      await held.finish();
      assert.deepEqual(await layersOf(target.id), []);
    }
    assert.deepEqual(await filesBelow(path.join(shared.layersDir, '.incoming')), []);
  });
});

describe('In a bucket,', needs('versitygw'), () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let store: ReturnType<typeof createS3LayerStore>;

  beforeAll(async () => {
    const s3 = await startS3Server(ending);
    const { url, region, bucket, accessKeyId, secretAccessKey } = s3;
    strata = await startNode(ending, await sharedParts(ending), {
      STRATA_STORAGE: 's3',
      STRATA_S3_ENDPOINT: url,
      STRATA_S3_REGION: region,
      STRATA_S3_BUCKET: bucket,
      STRATA_S3_PREFIX: 'git',
      STRATA_S3_ACCESS_KEY_ID: accessKeyId,
      STRATA_S3_SECRET_ACCESS_KEY: secretAccessKey,
    });
    ada = await createAccount(strata, 'ada');
    const credentials = { accessKeyId, secretAccessKey };
    store = createS3LayerStore({ endpointUrl: url, region, pathStyle: true, bucket, prefix: 'git/', credentials });
  });

  refusesWithoutTrace(
    () => ({ strata, ada }),
    (id) => Array.fromAsync(store.list(`repositories/${id}/layers/`), ({ key }) => String(key)),
  );
});
