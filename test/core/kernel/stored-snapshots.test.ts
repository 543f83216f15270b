/**
 * The bytes of snapshots that databases hold: a state of every form is written as its golden file, and read from it.
 *
 * Invariants: a golden file is kept as long as its version is the current one. A change of what is stored raises the
 * version of the snapshot, and has a new file.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'vitest';
import type { ActiveAccessToken } from '../../../core/access-token/state.ts';
import type { AccountEvent } from '../../../core/account/events.ts';
import { accounts } from '../../../core/account/evolve.ts';
import type { AccountStateFold } from '../../../core/audit/account-fold.ts';
import {
  ACCOUNT_FOLD_SNAPSHOT_VERSION,
  readAccountFold,
  writeAccountFold,
} from '../../../core/audit/account-fold-snapshot.ts';
import type { FoldedRepository } from '../../../core/audit/folded-repository.ts';
import type { SnapshotCodec } from '../../../core/kernel/decider.ts';
import { type AccessTokenId, type EventId, timestamp, uuid } from '../../../core/kernel/ids.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../../../core/kernel/json.ts';
import type { RepositoryEvent } from '../../../core/repository/events.ts';
import { repositories } from '../../../core/repository/evolve.ts';
import {
  accountCreated,
  bucketCreated,
  bucketId,
  bucketVerified,
  defaultBucket,
  emailChanged,
  mfaTokenDeleted,
  mfaTokenId,
  passkeyActivated,
  passkeyBegun,
  repositoryCreated,
  repositoryDeleted,
  repositoryDescribed,
  repositoryId,
  repositoryRenamed,
  totpActivated,
  totpBegun,
  webhookCreated,
  webhookDeleted,
  webhookId,
} from '../../support/account-history.ts';
import { FIRST_AT, given } from '../../support/fold.ts';
import { branch, layer, moved, oid, pushed, tag } from '../../support/repository-history.ts';

const ref = (digit: string): string => digit.repeat(64);
const ruleId = (n: number): string => `0190f3e2-7c1a-7b4e-9a35-00000000400${n}`;

const repositoryEvents: readonly AccountEvent[] = [
  repositoryCreated(2, 'second', { default_branch: 'trunk', storage_bucket_id: bucketId(1) }),
  repositoryCreated(1, 'First', { description: 'Ünï “quoted”\n\u{1f600}' }),
  repositoryCreated(3, 'gone'),
  repositoryDeleted(3, 'gone'),
  repositoryDescribed(2, 'described'),
  {
    type: 'RepositoryRestored',
    data: {
      ...{ repository_id: repositoryId(4), name: 'restored', description: null, default_branch: null },
      ...{ storage_bucket_id: null, created_at: '2025-01-02T03:04:05.678Z' },
    },
  },
];

const webhookEvents: readonly AccountEvent[] = [
  webhookCreated(2, {
    ...{ events: ['push', 'create', 'delete'], active: false },
    ...{ scope: 'SELECTED_REPO', repository_ids: [repositoryId(1), repositoryId(3)] },
  }),
  webhookCreated(1),
  webhookCreated(3),
  webhookDeleted(3),
  {
    type: 'WebhookSecretRotated',
    data: { webhook_id: webhookId(1), secret_ref: ref('3'), previous_valid_until: '2026-11-22T10:00:00.000Z' },
  },
];

const mfaEvents: readonly AccountEvent[] = [
  totpBegun(3),
  totpBegun(1),
  totpActivated(1, 7),
  passkeyBegun(5),
  passkeyBegun(2),
  passkeyActivated(2, 0),
  passkeyBegun(4),
  passkeyActivated(4, 12),
  totpBegun(6),
  mfaTokenDeleted(6, null),
  { type: 'TotpCodeUsed', data: { token_id: mfaTokenId(1), step: 8 } },
  { type: 'PasskeyUsed', data: { token_id: mfaTokenId(4), sign_count: 13 } },
  {
    type: 'PasskeyCounterRegressed',
    data: { token_id: mfaTokenId(4), sign_count: 6, recorded_sign_count: 13 },
  },
  { type: 'MfaTokenRenamed', data: { token_id: mfaTokenId(5), name: 'renamed' } },
];

const bucketEvents: readonly AccountEvent[] = [
  bucketCreated(3),
  bucketCreated(1),
  bucketCreated(2),
  bucketVerified(1),
  { type: 'StorageBucketVerificationFailed', data: { bucket_id: bucketId(1), step: 'put', code: 'access-denied' } },
  bucketVerified(2),
  {
    type: 'StorageBucketPlaceChanged',
    data: { bucket_id: bucketId(3), provider: 'R2', place_ref: ref('9'), removed_ref: ref('7') },
  },
  {
    type: 'StorageBucketAccessChanged',
    data: { bucket_id: bucketId(3), auth_mode: 'STATIC_KEYS', access_ref: ref('b'), removed_ref: ref('8') },
  },
  defaultBucket(2),
];

const ruleEvents: readonly AccountEvent[] = [
  {
    type: 'TrustRuleCreated',
    data: {
      ...{ rule_id: ruleId(2), name: 'CI', issuer: 'https://issuer.example', conditions_ref: ref('c') },
      ...{ scope: 'SELECTED_REPO', repository_ids: [repositoryId(2)] },
      grants: ['GIT_HTTP_READ', 'API_WEBHOOKS'],
    },
  },
  {
    type: 'TrustRuleCreated',
    data: {
      ...{ rule_id: ruleId(1), name: 'all', issuer: 'https://other.example', conditions_ref: ref('d') },
      ...{ scope: 'ALL_REPO', repository_ids: [], grants: ['ALL'] },
    },
  },
  { type: 'TrustRuleChanged', data: { rule_id: ruleId(2), conditions_ref: ref('f'), removed_ref: ref('c') } },
];

const richAccount = given(
  accounts,
  ...[accountCreated, emailChanged('1', 'ada@example.org'), ...repositoryEvents, ...webhookEvents, ...mfaEvents],
  ...[...bucketEvents, ...ruleEvents],
  { type: 'PlanChanged', data: { plan: 'PRO' } },
  { type: 'PasswordChanged', data: { password_hash_ref: ref('4') } },
  ...[repositoryRenamed(2, 'second', 'Other'), repositoryRenamed(2, 'Other', 'renamed')],
  ...[repositoryCreated(5, 'fifth'), repositoryRenamed(5, 'fifth', 'last'), repositoryDeleted(5, 'last')],
);

const richRepository = given<ReturnType<typeof repositories.evolve>, RepositoryEvent>(
  repositories,
  pushed(
    [
      moved(branch('main'), null, oid('a1')),
      moved(branch('Ünï-\u{1f600}'), null, oid('a2')),
      moved(tag('v1'), null, oid('a3'), { type: 'tag', peeled: oid('a1') }),
      moved(tag('a-tree'), null, oid('a4'), { type: 'tree' }),
      moved(branch('gone'), null, oid('a5')),
      ...Array.from({ length: 600 }, (_, n) => moved(branch(`many/${n}`), null, oid(`b${n}`))),
    ],
    { layer: layer(1) },
  ),
  { type: 'DefaultBranchChanged', data: { default_branch: 'main' } },
  pushed([moved(branch('gone'), oid('a5'), null), moved(branch('main'), oid('a1'), oid('a6'))], { layer: layer(2) }),
  pushed([moved(branch('main'), oid('a6'), oid('a7'))], { layer: layer(3, 5_000) }),
  {
    type: 'LayersCompacted',
    data: {
      ...{ revision: 2, removed: [{ id: layer(1).id, size_bytes: 1_000 }], shrink_epoch: 1 },
      ...{ clean: false, once_reached: true },
      added: [{ ...layer(4, 900), holds: 'refs' }],
    },
  },
  {
    type: 'LayersExpired',
    data: {
      layers: [{ id: layer(1).id, size_bytes: 1_000, current: false }],
      ...{ reason: 'retention', compacted_at: 4, shrink_epoch: 1 },
    },
  },
);

const foldedRepository: FoldedRepository = {
  ...{ revision: 7, defaultBranch: 'main', pushedAt: FIRST_AT, sizeBytes: 1_234, isOnPlatform: true, isClosed: false },
  refs: new Map([
    [tag('v1'), { target: oid('a3'), peeled: oid('a1') }],
    [branch('main'), { target: oid('a1'), peeled: null }],
  ]),
};

const token: ActiveAccessToken = {
  ...{ status: 'active', account: uuid('0190f3e2-7c1a-7b4e-9a35-0000000000aa'), name: 'laptop' },
  ...{ scope: 'SELECTED_REPO', repositoryIds: [repositoryId(1)], grants: ['GIT_HTTP_WRITE', 'API_REPOS_READ'] },
  ...{ expiresAt: timestamp('2027-01-01T00:00:00.000Z'), secretHash: ref('5'), tokenPrefix: 'strata_abcd' },
  createdAt: FIRST_AT,
};

const richFold: AccountStateFold = {
  ...{ sequence: 12_345, logTime: FIRST_AT, lastEventId: uuid('0190f3e2-7c1a-7b4e-9a35-0000000000bb') },
  ...{ accountId: token.account, account: richAccount },
  repositories: new Map([
    [repositoryId(2), foldedRepository],
    [repositoryId(1), { ...foldedRepository, defaultBranch: null, pushedAt: null, isClosed: true, refs: new Map() }],
    [repositoryId(4), { ...foldedRepository, isOnPlatform: false, refs: null }],
  ]),
  accessTokens: new Map<AccessTokenId, ActiveAccessToken>([
    [uuid('0190f3e2-7c1a-7b4e-9a35-0000000000c2'), token],
    [
      uuid('0190f3e2-7c1a-7b4e-9a35-0000000000c1'),
      { ...token, name: 'CI', scope: 'ALL_REPO', repositoryIds: [], grants: ['ALL'], expiresAt: null },
    ],
  ]),
  givenBy: new Map<string, EventId>([
    [token.account, uuid('0190f3e2-7c1a-7b4e-9a35-0000000000b1')],
    ['0190f3e2-7c1a-7b4e-9a35-0000000000c2', uuid('0190f3e2-7c1a-7b4e-9a35-0000000000b2')],
  ]),
  traffic: { month: '2026-11', ingressBytes: 100, transferBytes: 2_000 },
};

/** The lines of a snapshot as a database keeps them: the state, then each part. */
function written<State>(codec: SnapshotCodec<State> | null, state: State): string {
  const lines = [codec?.write(state) ?? null, ...(codec?.parts?.write(state) ?? [])];
  return lines.map((line) => `${canonicalJson(line)}\n`).join('');
}

function golden(name: string, version: number | undefined): string {
  return readFileSync(path.join(import.meta.dirname, `../../golden/snapshots/${name}-${version}.ndjson`), 'utf8');
}

function linesOf(text: string): JsonValue[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line): JsonValue => JSON.parse(line));
}

async function read<State>(codec: SnapshotCodec<State> | null, text: string): Promise<State> {
  const [state, ...parts] = linesOf(text);
  assert.ok(codec !== null);
  const whole = codec.read(state as JsonObject);
  return codec.parts === undefined ? whole : codec.parts.read(whole, parts);
}

describe('The stored snapshot', () => {
  test('of an account has the bytes of the golden file, and gives the account', async () => {
    const { snapshots } = accounts;
    const text = golden('account', snapshots?.version);
    assert.equal(written(snapshots, richAccount), text);
    const again = await read(snapshots, text);
    assert.ok(again.status === 'open' && richAccount.status === 'open');
    const { repositories: list, repositoryNames, formerNames, ...others } = again;
    const {
      repositories: givenList,
      repositoryNames: givenNames,
      formerNames: givenFormer,
      ...givenOthers
    } = richAccount;
    assert.deepEqual(others, givenOthers);
    assert.deepEqual(new Map(list.entries()), new Map(givenList.entries()));
    assert.deepEqual(new Map(repositoryNames.entries()), new Map(givenNames.entries()));
    assert.deepEqual(new Map(formerNames.entries()), new Map(givenFormer.entries()));
  });

  test('of a repository has the bytes of the golden file, and gives the repository', async () => {
    const { snapshots } = repositories;
    const text = golden('repository', snapshots?.version);
    assert.equal(written(snapshots, richRepository), text);
    const again = await read(snapshots, text);
    assert.ok(again.status === 'open' && richRepository.status === 'open');
    const { refs, layers, ...others } = again;
    const { refs: givenRefs, layers: givenLayers, ...givenOthers } = richRepository;
    assert.deepEqual(others, givenOthers);
    assert.deepEqual(new Map(refs.entries()), new Map(givenRefs.entries()));
    assert.deepEqual([...layers], [...givenLayers]);
  });

  test('of the fold of an account has the bytes of the golden file, and gives the fold', () => {
    const text = golden('account-fold', ACCOUNT_FOLD_SNAPSHOT_VERSION);
    assert.equal(`${canonicalJson(writeAccountFold(richFold))}\n`, text);
    const { account, ...others } = readAccountFold(JSON.parse(text));
    const { account: givenAccount, ...givenOthers } = richFold;
    assert.deepEqual(others, givenOthers);
    assert.equal(written(accounts.snapshots, account), written(accounts.snapshots, givenAccount));
  });
});
