/**
 * Lists, finds, creates, changes and deletes storage buckets. The rules are decided on the account's own stream.
 *
 * Invariants: an endpoint is checked before it is stored. Places, roles and keys are in the vault before the event
 * that names them, and are removed after the event that supersedes them. No result holds the secret key.
 */
import { isSelected, type RepositorySelection } from '../../access-token/repository-selection.ts';
import type { PurgedLayers } from '../../account/buckets/commands.ts';
import { decideBucket, dependentsOf } from '../../account/buckets/decide.ts';
import {
  type BucketSettings,
  parseBucketSettings,
  type WantedBucketSettings,
  wantedOf,
} from '../../account/buckets/settings.ts';
import type { StorageBucket } from '../../account/buckets/state.ts';
import { accounts } from '../../account/evolve.ts';
import type { Plans } from '../../account/plans.ts';
import type { OwnedRepository } from '../../account/repositories/state.ts';
import type { Account, OpenAccount } from '../../account/state.ts';
import { refuse } from '../../kernel/decider.ts';
import type { Cause } from '../../kernel/envelope.ts';
import type { AccountId, StorageBucketId } from '../../kernel/ids.ts';
import { canonicalJson } from '../../kernel/json.ts';
import { STORAGE_BUCKETS_MAX } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { VaultRef } from '../../kernel/vault-ref.ts';
import type { BucketFindingRows, BucketFindings } from '../../ports/bucket-findings.ts';
import type { OutgoingRequests } from '../../ports/outgoing-requests.ts';
import type { PolicyMarks } from '../../ports/policy-marks.ts';
import type { WaitingStorageReader } from '../../ports/usage.ts';
import type { Vault } from '../../ports/vault.ts';
import { type Context, execute, type Guarding } from '../../runtime/execute.ts';
import { removedThrough, secondsUntilRemoved } from '../../usage/waiting-storage.ts';
import { unlessErased } from '../accounts/erased-account-refusal.ts';
import { type DeletionsContext, deletedInBucket } from '../repositories/deletions.ts';
import { readSettings, removeRecords, storeAccess, storePlace } from './bucket-records.ts';

export type BucketContext = Context & {
  readonly vault: Vault;
  readonly bucketFindings: BucketFindingRows;
  readonly outgoing: Pick<OutgoingRequests, 'checkEndpoint'>;
  readonly plans: Plans;
};

/** What tells which layers purges have still to remove. */
type PurgedContext = Context & {
  readonly marks: Pick<PolicyMarks, 'read'>;
  readonly readModels: Pick<WaitingStorageReader, 'purgedInBucket'>;
};

/** A caller that reads an account's storage buckets. */
export interface BucketViewer {
  readonly account: AccountId;
  /** The repositories that the caller may use. It learns of no other. */
  readonly selection: RepositorySelection;
}

export interface BucketCommandOrigin extends BucketViewer {
  readonly cause: Cause;
  readonly guarding?: Guarding;
}

/** The settings of a bucket that its owner may see again. */
export type ShownBucketSettings = Omit<WantedBucketSettings, 'secretAccessKey'>;

export interface FoundBucket {
  readonly bucket: StorageBucket;
  readonly settings: ShownBucketSettings;
  readonly isDefault: boolean;
  /** Null until a verification at this place has succeeded in finding it out. */
  readonly conditionalWrites: boolean | null;
  /** The repositories in the bucket that the viewer may know of. */
  readonly repositories: readonly OwnedRepository[];
}

/** A bucket with the settings that a connection needs. */
export interface StoredBucket {
  readonly account: OpenAccount;
  readonly bucket: StorageBucket;
  readonly settings: BucketSettings;
  /** Null if nothing is known of the bucket at its place. */
  readonly findings: BucketFindings | null;
}

type Refused = { readonly refused: Refusal };
type Reading = Pick<BucketContext, 'entities' | 'vault' | 'bucketFindings'>;

/** Lists all buckets of the account, oldest first. */
export async function listBuckets(context: Reading, viewer: BucketViewer): Promise<readonly FoundBucket[]> {
  const { state } = await context.entities.get(accounts, viewer.account);
  const ids = state.status === 'open' ? [...state.storageBuckets.keys()] : [];
  const found = await Promise.all(ids.map((id) => findBucket(context, viewer, id)));
  return found.filter((bucket): bucket is FoundBucket => !('refused' in bucket));
}

export async function findBucket(
  context: Reading,
  viewer: BucketViewer,
  id: StorageBucketId,
): Promise<FoundBucket | Refused> {
  const stored = await readStoredBucket(context, viewer.account, id);
  return 'refused' in stored ? stored : shownTo(viewer, stored);
}

/**
 * The number of times that a bucket's settings may change while they are being read. Internal: only changes during as
 * many reads in a row reach it.
 */
const READS_MAX = 10;

/** Finds a bucket with its keys, for a connection to it. */
export async function readStoredBucket(
  context: Reading,
  accountId: AccountId,
  id: StorageBucketId,
): Promise<StoredBucket | Refused> {
  let { state } = await context.entities.get(accounts, accountId);
  for (let read = 0; read < READS_MAX; read += 1) {
    const bucket = state.status === 'open' ? state.storageBuckets.get(id) : undefined;
    if (state.status !== 'open' || bucket === undefined) return refuse({ code: 'storage-bucket-not-found' });
    const [settings, findings] = await Promise.all([
      readSettings(context.vault, accountId, bucket),
      context.bucketFindings.find({ account: accountId, bucket: id, place: bucket.placeRef }),
    ]);
    if (settings !== null) return { account: state, bucket, settings, findings };
    // A record was removed after the state was read. The log holds the event that superseded it.
    ({ state } = await context.entities.reload(accounts, accountId));
  }
  throw new Error(`The vault has no settings of storage bucket ${id}`);
}

export interface NewBucket {
  readonly name: string;
  readonly isDefault: boolean;
  readonly settings: WantedBucketSettings;
}

/** Creates a bucket that is pending verification. */
export async function createBucket(
  context: BucketContext,
  origin: BucketCommandOrigin,
  { name, isDefault, settings: wanted }: NewBucket,
): Promise<FoundBucket | Refused> {
  const { account: accountId, selection } = origin;
  const { state } = await context.entities.get(accounts, accountId);
  if (state.status !== 'open') return refuse({ code: 'account-not-found' });
  const denied = planRefusal(context, state);
  if (denied !== null) return denied;
  const parsed = parseBucketSettings(wanted);
  if ('refused' in parsed) return parsed;
  // Checked early, before the endpoint costs a DNS lookup. The decision below is the one that counts.
  if (state.storageBuckets.size >= STORAGE_BUCKETS_MAX) return refuse({ code: 'storage-bucket-limit-reached' });
  const { settings } = parsed;
  const refused = await endpointRefusal(context, settings, null);
  if (refused !== null) return refused;
  const refs = await unlessErased(storeBoth(context, accountId, settings));
  if ('refused' in refs) return refs;
  const id = context.ids.next<StorageBucketId>();
  const made = { provider: settings.provider, authMode: settings.access.mode, ...refs };
  const created = await execute(context, accounts, accountId, origin, (account) =>
    decideBucket(account, selection, { type: 'CreateBucket', id, name, settings: made, isDefault }),
  );
  if ('refused' in created) {
    await removeRecords(context.vault, accountId, [refs.placeRef, refs.accessRef]);
    return created;
  }
  return shownTo(origin, { ...bucketIn(created.entity.state, id), settings, findings: null });
}

export interface BucketChanges {
  readonly name?: string;
  readonly isDefault?: boolean;
  /** The members that are absent stay as they are. */
  readonly settings: Partial<WantedBucketSettings>;
}

/** Changes the members that are present. Settings that become others return the bucket to pending verification. */
export async function changeBucket(
  context: BucketContext & DeletionsContext & PurgedContext,
  origin: BucketCommandOrigin,
  id: StorageBucketId,
  { settings: changes, ...labels }: BucketChanges,
): Promise<FoundBucket | Refused> {
  const { account: accountId, selection } = origin;
  const before = await readStoredBucket(context, accountId, id);
  if ('refused' in before) return before;
  const parsed = parseBucketSettings({ ...wantedOf(before.settings), ...changes });
  if ('refused' in parsed) return parsed;
  const { settings } = parsed;
  const refused = await endpointRefusal(context, settings, before.settings.place.endpointUrl);
  if (refused !== null) return refused;
  const stored = await unlessErased(storeChanged(context, accountId, before.settings, settings));
  if ('refused' in stored) return stored;
  const { placeRef, accessRef } = stored;
  const { provider, access } = settings;
  let deleted: readonly OwnedRepository[] = [];
  let purged: PurgedLayers | null = null;
  // Read behind each state that is decided on: a deletion or undeletion since then conflicts with the append.
  const guarding: Guarding = async () => {
    if (placeRef !== null) {
      deleted = await deletedInBucket(context, accountId, id);
      purged = await purgedLayers(context, accountId, id);
    }
    return (await origin.guarding?.()) ?? { guards: [] };
  };
  const changed = await execute(context, accounts, accountId, { ...origin, guarding }, (account) =>
    decideBucket(account, selection, {
      type: 'ChangeBucket',
      id,
      ...labels,
      from: before.bucket,
      place: placeRef === null ? null : { provider, placeRef },
      access: accessRef === null ? null : { authMode: access.mode, accessRef },
      deleted,
      purged,
    }),
  );
  if ('refused' in changed) {
    await removeRecords(context.vault, accountId, [placeRef, accessRef].filter(isRef));
    return changed;
  }
  const superseded = [
    placeRef === null ? null : before.bucket.placeRef,
    accessRef === null ? null : before.bucket.accessRef,
  ];
  await removeRecords(context.vault, accountId, superseded.filter(isRef));
  // Without changed settings, others may have changed them between the read and the decision.
  const after = bucketIn(changed.entity.state, id);
  const isOwn = (placeRef ?? before.bucket.placeRef) === after.bucket.placeRef;
  const isWhole = isOwn && (accessRef ?? before.bucket.accessRef) === after.bucket.accessRef;
  const findings = placeRef === null ? before.findings : null;
  return isWhole ? shownTo(origin, { ...after, settings, findings }) : findBucket(context, origin, id);
}

export async function deleteBucket(
  context: Pick<BucketContext, 'vault' | 'bucketFindings'> & PurgedContext,
  origin: BucketCommandOrigin,
  id: StorageBucketId,
): Promise<{ readonly deleted: StorageBucketId } | Refused> {
  let purged: PurgedLayers | null = null;
  const guarding: Guarding = async () => {
    purged = await purgedLayers(context, origin.account, id);
    return (await origin.guarding?.()) ?? { guards: [] };
  };
  let removed: readonly VaultRef[] = [];
  const deleted = await execute(context, accounts, origin.account, { ...origin, guarding }, (account) => {
    // The last call of this function is the one that commits.
    const bucket = account.status === 'open' ? account.storageBuckets.get(id) : undefined;
    removed = bucket === undefined ? [] : [bucket.placeRef, bucket.accessRef];
    return decideBucket(account, origin.selection, { type: 'DeleteBucket', id, purged });
  });
  if ('refused' in deleted) return deleted;
  await removeRecords(context.vault, origin.account, removed);
  await context.bucketFindings.remove(origin.account, id);
  return { deleted: id };
}

async function purgedLayers(
  context: PurgedContext,
  account: AccountId,
  bucket: StorageBucketId,
): Promise<PurgedLayers | null> {
  const [removed, seen] = await Promise.all([removedThrough(context), context.events.head()]);
  const { sizeBytes, letGoUntil } = await context.readModels.purgedInBucket({ account, bucket, removed, seen });
  return letGoUntil === null ? null : { sizeBytes, waitSeconds: secondsUntilRemoved(letGoUntil, context.clock.now()) };
}

/** Returns the refusal of an account whose plan has no storage of its own. */
export function planRefusal({ plans }: Pick<BucketContext, 'plans'>, { plan }: OpenAccount): Refused | null {
  return plans[plan].byo_storage ? null : refuse({ code: 'byo-storage-requires-plan' });
}

/** Returns what the viewer may see of a bucket. */
export function shownTo(
  { selection }: BucketViewer,
  { account, bucket, settings, findings }: StoredBucket,
): FoundBucket {
  const { secretAccessKey: _secret, ...shown } = wantedOf(settings);
  const repositories = dependentsOf(account, bucket.id).filter(({ id }) => isSelected(selection, id));
  const conditionalWrites = findings?.conditionalWrites ?? null;
  const isDefault = account.defaultBucketId === bucket.id;
  return { bucket, settings: shown, isDefault, conditionalWrites, repositories };
}

/** Returns a bucket of a state that was just written. */
export function bucketIn(account: Account, id: StorageBucketId): Omit<StoredBucket, 'settings' | 'findings'> {
  const bucket = account.status === 'open' ? account.storageBuckets.get(id) : undefined;
  if (account.status !== 'open' || bucket === undefined) throw new TypeError('A bucket just written does not exist');
  return { account, bucket };
}

/** An endpoint that stays as it is was checked when it was saved, and is checked again at every request. */
async function endpointRefusal(
  { outgoing }: BucketContext,
  { place: { endpointUrl } }: BucketSettings,
  before: string | null,
): Promise<Refused | null> {
  if (endpointUrl === null || endpointUrl === before) return null;
  const fault = await outgoing.checkEndpoint(endpointUrl);
  return fault === null ? null : refuse({ code: 'storage-bucket-endpoint-refused', fault });
}

async function storeBoth(context: BucketContext, account: AccountId, { place, access }: BucketSettings) {
  const [placeRef, accessRef] = await Promise.all([
    storePlace(context, account, place),
    storeAccess(context, account, access),
  ]);
  return { placeRef, accessRef };
}

/** Stores what became other settings; null for a part that stayed as it was. */
async function storeChanged(
  context: BucketContext,
  account: AccountId,
  before: BucketSettings,
  { provider, place, access }: BucketSettings,
): Promise<{ readonly placeRef: VaultRef | null; readonly accessRef: VaultRef | null }> {
  const samePlace = provider === before.provider && canonicalJson({ ...place }) === canonicalJson({ ...before.place });
  const sameAccess = canonicalJson({ ...access }) === canonicalJson({ ...before.access });
  const [placeRef, accessRef] = await Promise.all([
    samePlace ? null : storePlace(context, account, place),
    sameAccess ? null : storeAccess(context, account, access),
  ]);
  return { placeRef, accessRef };
}

function isRef(ref: VaultRef | null): ref is VaultRef {
  return ref !== null;
}
