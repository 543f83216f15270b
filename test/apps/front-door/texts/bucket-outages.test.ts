/**
 * What git clients are told when the bucket of a repository fails: its name and what is wrong, and never where it is.
 */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { bucketErrorText } from '../../../../apps/front-door/texts/bucket-errors.ts';
import { BUCKET_OUTAGES, bucketOutageLine } from '../../../../apps/front-door/texts/bucket-outages.ts';
import { EventStoreError } from '../../../../core/ports/event-store.ts';
import { LayerStoreError, type LayerStoreErrorCode } from '../../../../core/ports/layer-store.ts';
import { ObjectDatabaseError } from '../../../../core/ports/object-database.ts';
import { newAccount, newRepository } from '../../../support/accounts.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../../support/api-fixture.ts';
import { type GitFixture, startGit } from '../../../support/git-fixture.ts';
import { commandList } from '../../../support/git-wire.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { startNode } from '../../../support/node.ts';
import { newBucket, newRepositoryIn } from '../../../support/stored-buckets.ts';

const SECRETS = 'https://10.0.0.7:9000/place AKIA0 secret-key';

describe('The line about a bucket', () => {
  test('names the bucket and what is wrong for every code, and nothing of the error', async () => {
    const node = await startNode(createMemoryEventStore());
    const account = await newAccount(node, 'ada');
    const own = await newRepositoryIn(node, account, await newBucket(node, account, 'Own "one"'), 'own');
    const codes = Object.keys(BUCKET_OUTAGES) as LayerStoreErrorCode[];
    const lines = codes.flatMap((code) => {
      const cause = new LayerStoreError(code, SECRETS);
      const fetched = new ObjectDatabaseError('object-database-unavailable', SECRETS, { cause });
      assert.equal(bucketOutageLine(own, fetched), bucketOutageLine(own, cause));
      return [bucketOutageLine(own, cause) ?? assert.fail(code)];
    });
    for (const code of ['layer-missing', 'layer-corrupt'] as const) {
      lines.push(bucketOutageLine(own, new ObjectDatabaseError(code, SECRETS)) ?? assert.fail(code));
    }
    for (const line of lines) {
      assert.match(
        line,
        /^the storage bucket "Own "one"" [a-zA-Z' 3:()]+: (try again; its owner|its owner must act, and) finds /,
      );
      for (const secret of SECRETS.split(' ')) assert.ok(!line.includes(secret), line);
    }
  });

  test('names the operation that the bucket denies', async () => {
    const node = await startNode(createMemoryEventStore());
    const account = await newAccount(node, 'ada');
    const own = await newRepositoryIn(node, account, await newBucket(node, account, 'own'), 'own');
    for (const [code, permission] of [
      ['get-denied', 'reading objects (s3:GetObject)'],
      ['put-denied', 'storing objects (s3:PutObject)'],
      ['delete-denied', 'deleting objects (s3:DeleteObject)'],
      ['list-denied', 'listing objects (s3:ListBucket)'],
    ] as const) {
      const line = `the storage bucket "own" denies ${permission}: its owner must act, and finds the errors on its page`;
      assert.equal(bucketOutageLine(own, new LayerStoreError(code, SECRETS)), line);
      assert.ok(bucketErrorText({ step: null, code }).endsWith(/[(].*[)]/.exec(permission)?.[0] ?? '?'));
    }
  });

  test('is only for errors of the bucket, and of a repository that is in one', async () => {
    const node = await startNode(createMemoryEventStore());
    const account = await newAccount(node, 'ada');
    const plain = await newRepository(node, account, 'plain');
    const own = await newRepositoryIn(node, account, await newBucket(node, account, 'own'), 'own');
    assert.equal(bucketOutageLine(plain, new LayerStoreError('unreachable', '')), null);
    for (const other of [
      new EventStoreError('log-unavailable', ''),
      new ObjectDatabaseError('object-database-unavailable', '', { cause: new Error('no room') }),
      new ObjectDatabaseError('object-too-large', ''),
      new Error('a bug'),
    ]) {
      assert.equal(bucketOutageLine(own, other), null);
    }
  });
});

describe('A client of git', () => {
  let fixture: ApiFixture;
  let git: GitFixture;
  let token: TestToken;

  beforeAll(async () => {
    fixture = await createApiFixture();
    const account = await fixture.account('ada');
    token = await fixture.token(account);
    const bucket = await newBucket(fixture.context, account, 'Home');
    await newRepositoryIn(fixture.context, account, bucket, 'engine');
    const fail = async (): Promise<never> => {
      throw new LayerStoreError('timed-out', SECRETS);
    };
    git = await startGit(fixture, {
      objects: { receive: fail, open: fail, heldAnswer: () => null, drop: async () => undefined },
    });
  });
  afterAll(async () => {
    await git.close();
    await fixture.close();
  });

  const push = async (capabilities: string): Promise<string> => {
    const created = [{ ref: 'refs/heads/main', after: '1'.repeat(40) }];
    const answer = await git.request('POST', '/r/ada/engine.git/git-receive-pack', token, {
      headers: { 'content-type': 'application/x-git-receive-pack-request' },
      body: commandList(created, capabilities),
    });
    assert.equal(answer.status, 200);
    assert.ok(!answer.text.includes('secret-key'));
    return answer.text;
  };

  test('is told in the report, in the side band, or in an error packet, whichever it can read', async () => {
    const says = 'the storage bucket "Home" takes too long to answer: try again';
    const reported = await push('report-status');
    assert.ok(reported.includes(`unpack ${says}`), reported);
    assert.ok(reported.includes('ng refs/heads/main the storage bucket failed'));
    assert.ok((await push('side-band-64k')).includes(`\u0002${says}`));
    assert.ok((await push('')).slice(4).startsWith(`ERR ${says}`));
  });
});
