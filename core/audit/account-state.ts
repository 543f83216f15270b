/**
 * The state of an account as the API shows it: canonical JSON (RFC 8785) with its digest.
 *
 * Invariants: the text depends on the entries folded and on nothing else. Erasable values and secrets stand in it by
 * their reference alone. `digest` is the SHA-256 of the canonical text of all other members; it is the last member, so
 * the text before it, with a closing brace, is what it is the digest of. The form never changes under the same
 * `schema`.
 */
import type { RepositorySelection } from '../access-token/repository-selection.ts';
import type { ActiveAccessToken } from '../access-token/state.ts';
import type { StorageBucket } from '../account/buckets/state.ts';
import { type MfaToken, vaultRefOf } from '../account/mfa/state.ts';
import type { OwnedRepository } from '../account/repositories/state.ts';
import type { Account, ClosedAccount, OpenAccount } from '../account/state.ts';
import type { TrustRule } from '../account/trust-rules/state.ts';
import type { Webhook } from '../account/webhooks/state.ts';
import { byRefOrder, type RefName } from '../git/ref-name.ts';
import type { Digest } from '../kernel/digest.ts';
import type { AccessTokenId, AccountId, RepositoryId } from '../kernel/ids.ts';
import { canonicalJson, type JsonObject } from '../kernel/json.ts';
import { type NextTurn, pickInTurns, sortInTurns } from '../kernel/turns.ts';
import { FALLBACK_DEFAULT_BRANCH } from '../repository/state.ts';
import type { AccountStateFold } from './account-fold.ts';
import type { FoldedRef, FoldedRepository } from './folded-repository.ts';

const ACCOUNT_STATE_SCHEMA = 1;

export type NamedRefs = Iterable<readonly [RefName, FoldedRef]>;

export interface StateSources {
  readonly digest: Pick<Digest, 'startSha256'>;
  readonly nextTurn: NextTurn;
  /** Returns the refs of a repository that the fold left out, at this revision of its stream. */
  readonly refsOf: (id: RepositoryId, revision: number) => Promise<NamedRefs>;
}

/** The states of an account that was made. */
type MadeAccount = Exclude<Account, { status: 'absent' | 'abandoned' }>;

/** Returns the account if the entries made one, with its id; null before `AccountCreated`. */
export function madeAccount({ account, accountId }: AccountStateFold): { id: AccountId; account: MadeAccount } | null {
  if (accountId === null || account.status === 'absent' || account.status === 'abandoned') return null;
  return { id: accountId, account };
}

/**
 * Yields the text in pieces, and its digest in the last. The account must be made. The fold must not change before
 * the end. Rejects if the refs of a repository cannot be read.
 */
export async function* accountStateText(fold: AccountStateFold, sources: StateSources): AsyncGenerator<string> {
  const sum = sources.digest.startSha256();
  const encoder = new TextEncoder();
  for await (const piece of membersText(fold, sources)) {
    sum.add(encoder.encode(piece));
    yield piece;
  }
  sum.add(encoder.encode('}'));
  yield `,"digest":"${sum.hex()}"}`;
}

/** Yields all but the digest and the closing brace. */
async function* membersText(fold: AccountStateFold, sources: StateSources): AsyncGenerator<string> {
  const made = madeAccount(fold);
  if (made === null) throw new TypeError('The state of an account that was not made');
  const { id, account } = made;
  const contents = account.status === 'erased' ? null : account;
  yield '{"access_tokens":';
  yield* listText(byKey(fold.accessTokens), ([tokenId, token]) => accessTokenJson(tokenId, token), sources.nextTurn);
  yield `,"account":${canonicalJson(accountJson(id, account))}`;
  yield `,"oidc_trust_rules":${canonicalJson(byKey(contents?.trustRules).map(([, rule]) => trustRuleJson(rule)))}`;
  yield ',"repositories":';
  yield* repositoriesText(fold, account, sources);
  yield `,"schema":${ACCOUNT_STATE_SCHEMA},"sequence":${fold.sequence}`;
  const buckets = byKey(contents?.storageBuckets).map(([, bucket]) => bucketJson(bucket));
  yield `,"storage_buckets":${canonicalJson(buckets)}`;
  yield `,"usage":${canonicalJson(usageJson(fold, account))}`;
  yield `,"webhooks":${canonicalJson(byKey(contents?.webhooks).map(([, webhook]) => webhookJson(webhook)))}`;
}

/** Every list is in the order of ids. */
function byKey<Key extends string, Value>(
  map: ReadonlyMap<Key, Value> | undefined,
): readonly (readonly [Key, Value])[] {
  return [...(map ?? [])].sort(([a], [b]) => byText(a, b));
}

export function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

const ITEMS_OF_PIECE = 500;

async function* listText<Item>(
  items: readonly Item[],
  toJson: (item: Item) => JsonObject,
  nextTurn: NextTurn,
): AsyncGenerator<string> {
  yield '[';
  for (let at = 0; at < items.length; at += ITEMS_OF_PIECE) {
    if (at > 0) await nextTurn();
    const texts = items.slice(at, at + ITEMS_OF_PIECE).map((item) => canonicalJson(toJson(item)));
    yield `${at === 0 ? '' : ','}${texts.join(',')}`;
  }
  yield ']';
}

async function* repositoriesText(
  fold: AccountStateFold,
  account: MadeAccount,
  sources: StateSources,
): AsyncGenerator<string> {
  const owned = [...account.repositories.entries()].sort(([a], [b]) => byText(a, b));
  let isFirst = true;
  yield '[';
  for (const [id, listed] of owned) {
    const repository = fold.repositories.get(id);
    if (repository === undefined) throw new TypeError(`The account lists repository ${id}, which was not made`);
    // Its deletion was interrupted, or is at its second event.
    if (repository.isClosed) continue;
    if (!isFirst) yield ',';
    isFirst = false;
    yield* repositoryText(listed, repository, sources);
  }
  yield ']';
}

/** The members in canonical order: the refs come after `pushed_at`. */
async function* repositoryText(
  owned: OwnedRepository,
  { defaultBranch, pushedAt, refs, revision, sizeBytes }: FoldedRepository,
  { refsOf, nextTurn }: StateSources,
): AsyncGenerator<string> {
  const before = canonicalJson({
    created_at: owned.createdAt,
    default_branch: defaultBranch ?? owned.initialDefaultBranch ?? FALLBACK_DEFAULT_BRANCH,
    description: owned.description,
    id: owned.id,
    name: owned.name,
    pushed_at: pushedAt,
  });
  yield `${before.slice(0, -1)},"refs":`;
  yield* refsText(refs ?? (await refsOf(owned.id, revision)), nextTurn);
  yield `,"size_bytes":${sizeBytes},"storage_bucket_id":${canonicalJson(owned.storageBucketId)}}`;
}

/** Yields the refs as a list, in byte order of their names. */
export async function* refsText(refs: NamedRefs, nextTurn: NextTurn): AsyncGenerator<string> {
  const listed = await pickInTurns(refs, (ref) => ref, nextTurn);
  const sorted = await sortInTurns(listed, ([a], [b]) => byRefOrder(a, b), nextTurn);
  yield* listText(sorted, ([name, { target, peeled }]) => ({ name, target, peeled }), nextTurn);
}

function accountJson(id: AccountId, account: MadeAccount): JsonObject {
  const contents = account.status === 'erased' ? null : account;
  return {
    id,
    username: account.username,
    status: account.status,
    plan: contents?.plan ?? null,
    email_ref: account.emailRef,
    password_hash_ref: contents?.passwordHashRef ?? null,
    created_at: contents?.createdAt ?? null,
    closed_at: account.status === 'closed' ? account.closedAt : null,
    erase_at: account.status === 'closed' ? account.eraseAt : null,
    default_storage_bucket_id: contents?.defaultBucketId ?? null,
    mfa_tokens: mfaTokensJson(contents),
  };
}

function mfaTokensJson(account: OpenAccount | ClosedAccount | null): readonly JsonObject[] {
  return byKey(account?.mfaTokens).map(([, token]) => mfaTokenJson(token));
}

/** Not when it was used last: as for access tokens, the state shows who may enter, and not who did. */
function mfaTokenJson(token: MfaToken): JsonObject {
  const { id, kind, name, status, createdAt } = token;
  const activated_at = token.status === 'active' ? token.activatedAt : null;
  return { id, kind, name, status, secret_ref: vaultRefOf(token), created_at: createdAt, activated_at };
}

function accessTokenJson(id: AccessTokenId, token: ActiveAccessToken): JsonObject {
  return {
    id,
    name: token.name,
    ...selectionJson(token),
    grants: token.grants,
    expires_at: token.expiresAt,
    created_at: token.createdAt,
    token_prefix: token.tokenPrefix,
  };
}

function selectionJson({ scope, repositoryIds }: RepositorySelection): JsonObject {
  return { scope, repository_ids: repositoryIds };
}

function webhookJson(webhook: Webhook): JsonObject {
  const { previousSecret } = webhook;
  return {
    id: webhook.id,
    url_ref: webhook.urlRef,
    secret_ref: webhook.secretRef,
    previous_secret_ref: previousSecret?.ref ?? null,
    previous_secret_valid_until: previousSecret?.validUntil ?? null,
    events: webhook.events,
    active: webhook.active,
    ...selectionJson(webhook.repositories),
    created_at: webhook.createdAt,
    updated_at: webhook.updatedAt,
  };
}

function bucketJson(bucket: StorageBucket): JsonObject {
  const { lastFailure } = bucket;
  return {
    id: bucket.id,
    name: bucket.name,
    provider: bucket.provider,
    auth_mode: bucket.authMode,
    place_ref: bucket.placeRef,
    access_ref: bucket.accessRef,
    status: bucket.status,
    last_validated_at: bucket.lastValidatedAt,
    last_failure: lastFailure === null ? null : { ...lastFailure },
    created_at: bucket.createdAt,
    updated_at: bucket.updatedAt,
  };
}

function trustRuleJson(rule: TrustRule): JsonObject {
  return {
    id: rule.id,
    name: rule.name,
    issuer: rule.issuer,
    conditions_ref: rule.conditionsRef,
    grants: rule.grants,
    ...selectionJson(rule.repositories),
    created_at: rule.createdAt,
  };
}

/** Deleted repositories count as long as their layers are in storage. */
function usageJson({ repositories, traffic }: AccountStateFold, account: MadeAccount): JsonObject {
  let storageBytes = 0;
  for (const { isOnPlatform, sizeBytes } of repositories.values()) if (isOnPlatform) storageBytes += sizeBytes;
  return {
    repos: { used: account.repositories.size },
    storage_bytes: { used: storageBytes },
    transfer_bytes: { used: traffic.transferBytes },
    ingress_bytes: { used: traffic.ingressBytes },
  };
}
