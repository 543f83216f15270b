/**
 * Decides the commands of an account's storage buckets.
 *
 * Invariants: the place of a bucket stays as it is while a repository depends on it, or a deleted one can come back
 * to it. Nor is it given up while purges have still to remove layers from it, which nobody would remove any more. A
 * caller that may use some repositories only neither changes what others are or will be stored in, nor learns their
 * names or sizes.
 */
import { isSelected, type RepositorySelection } from '../../access-token/repository-selection.ts';
import { accept, type Decision, refuse } from '../../kernel/decider.ts';
import type { StorageBucketId } from '../../kernel/ids.ts';
import { STORAGE_BUCKET_NAME_LENGTH_MAX, STORAGE_BUCKETS_MAX } from '../../kernel/limits.ts';
import { DEPENDENT_NAMES_MAX, type DependentNames, type Refusal } from '../../kernel/refusal.ts';
import { asciiLowerCase, codePointCount } from '../../kernel/text.ts';
import type { OwnedRepository } from '../repositories/state.ts';
import type { Account, OpenAccount } from '../state.ts';
import type { BucketCommand, BucketRefs, PurgedLayers } from './commands.ts';
import type { BucketEvent } from './events.ts';
import type { StorageBucket } from './state.ts';

type Decided = Decision<BucketEvent>;

/** `selection` holds the repositories that the caller may use. */
export function decideBucket(account: Account, selection: RepositorySelection, command: BucketCommand): Decided {
  if (account.status !== 'open') return refuse({ code: 'account-not-found' });
  if (command.type === 'CreateBucket') return decideCreate(account, selection, command);
  const bucket = account.storageBuckets.get(command.id);
  if (bucket === undefined) return refuse({ code: 'storage-bucket-not-found' });
  switch (command.type) {
    case 'ChangeBucket':
      return decideChange(account, selection, bucket, command);
    case 'RecordVerification':
      return decideVerification(bucket, command);
    case 'DeleteBucket': {
      const dependent = dependentsOf(account, bucket.id);
      if (dependent.length > 0) {
        return refuse({ code: 'storage-bucket-in-use', repositories: namesOf(dependent, selection) });
      }
      if (!mayChange(account, selection, bucket)) return refuse({ code: 'storage-bucket-needs-all-repositories' });
      if (command.purged !== null) return refuse(keptByPurges(command.purged, selection));
      const removed_refs = [bucket.placeRef, bucket.accessRef];
      return accept<BucketEvent>({ type: 'StorageBucketDeleted', data: { bucket_id: bucket.id, removed_refs } });
    }
  }
}

/** Returns the repositories whose layers are in the bucket. */
export function dependentsOf({ repositories }: Pick<OpenAccount, 'repositories'>, id: StorageBucketId) {
  const owned = [...repositories.entries()].map(([, repository]) => repository);
  return owned.filter(({ storageBucketId }) => storageBucketId === id);
}

/** Two buckets of an account have different keys. */
function bucketNameKey(name: string): string {
  return asciiLowerCase(name);
}

function decideCreate(
  account: OpenAccount,
  selection: RepositorySelection,
  { id, name, settings, isDefault }: Extract<BucketCommand, { type: 'CreateBucket' }>,
): Decided {
  if (isDefault && selection.scope !== 'ALL_REPO') return refuse({ code: 'storage-bucket-needs-all-repositories' });
  if (!isName(name)) return refuse({ code: 'storage-bucket-name-length' });
  if (isTaken(account, name, null)) return refuse({ code: 'storage-bucket-name-taken' });
  if (account.storageBuckets.size >= STORAGE_BUCKETS_MAX) return refuse({ code: 'storage-bucket-limit-reached' });
  const { provider, authMode, placeRef, accessRef } = settings;
  const data = { bucket_id: id, name, provider, auth_mode: authMode, place_ref: placeRef, access_ref: accessRef };
  const created: BucketEvent = { type: 'StorageBucketCreated', data };
  return isDefault ? accept<BucketEvent>(created, defaultChanged(id)) : accept(created);
}

/** One event for each changed part. */
function decideChange(
  account: OpenAccount,
  selection: RepositorySelection,
  bucket: StorageBucket,
  command: Extract<BucketCommand, { type: 'ChangeBucket' }>,
): Decided {
  const { name = bucket.name, from, place, access, deleted, purged } = command;
  const bucket_id = bucket.id;
  const wasDefault = account.defaultBucketId === bucket.id;
  const { isDefault = wasDefault } = command;
  const changesSettings = place !== null || access !== null;
  if (isDefault !== wasDefault && selection.scope !== 'ALL_REPO') {
    return refuse({ code: 'storage-bucket-needs-all-repositories' });
  }
  if ((changesSettings || name !== bucket.name) && !mayChange(account, selection, bucket)) {
    return refuse({ code: 'storage-bucket-needs-all-repositories' });
  }
  if (!isName(name)) return refuse({ code: 'storage-bucket-name-length' });
  if (isTaken(account, name, bucket.id)) return refuse({ code: 'storage-bucket-name-taken' });
  if (changesSettings && !isCurrent(bucket, from)) return refuse({ code: 'storage-bucket-changed' });
  const fixed = place === null ? null : placeFixed(dependentsOf(account, bucket.id), deleted, selection);
  if (fixed !== null) return refuse(fixed);
  if (place !== null && purged !== null) return refuse(keptByPurges(purged, selection));
  const decided: BucketEvent[] = [];
  if (name !== bucket.name) decided.push({ type: 'StorageBucketRenamed', data: { bucket_id, name } });
  if (place !== null) {
    const data = { bucket_id, provider: place.provider, place_ref: place.placeRef, removed_ref: bucket.placeRef };
    decided.push({ type: 'StorageBucketPlaceChanged', data });
  }
  if (access !== null) {
    const data = { bucket_id, auth_mode: access.authMode, access_ref: access.accessRef, removed_ref: bucket.accessRef };
    decided.push({ type: 'StorageBucketAccessChanged', data });
  }
  if (isDefault !== wasDefault) decided.push(defaultChanged(isDefault ? bucket.id : null));
  return accept<BucketEvent>(...decided);
}

function placeFixed(
  dependent: readonly OwnedRepository[],
  deleted: readonly OwnedRepository[],
  selection: RepositorySelection,
): Refusal | null {
  if (dependent.length === 0 && deleted.length === 0) return null;
  const repositories = namesOf(dependent, selection);
  const held = deleted.length === 0 ? {} : { deleted: namesOf(deleted, selection) };
  return { code: 'storage-bucket-place-fixed', repositories, ...held };
}

function keptByPurges({ sizeBytes, waitSeconds }: PurgedLayers, { scope }: RepositorySelection): Refusal {
  return { code: 'storage-bucket-purged', sizeBytes: scope === 'ALL_REPO' ? sizeBytes : null, waitSeconds };
}

/** A verification of settings that are no longer current says nothing of those that are. */
function decideVerification(
  bucket: StorageBucket,
  { of, fault }: Extract<BucketCommand, { type: 'RecordVerification' }>,
): Decided {
  if (!isCurrent(bucket, of)) return refuse({ code: 'storage-bucket-changed' });
  const bucket_id = bucket.id;
  if (fault === null) return accept<BucketEvent>({ type: 'StorageBucketVerified', data: { bucket_id } });
  const { step, code } = fault;
  return accept<BucketEvent>({ type: 'StorageBucketVerificationFailed', data: { bucket_id, step, code } });
}

function defaultChanged(id: StorageBucketId | null): BucketEvent {
  return { type: 'DefaultBucketChanged', data: { bucket_id: id } };
}

function isCurrent(bucket: StorageBucket, { placeRef, accessRef }: BucketRefs): boolean {
  return bucket.placeRef === placeRef && bucket.accessRef === accessRef;
}

function isName(name: string): boolean {
  const length = codePointCount(name);
  return length >= 1 && length <= STORAGE_BUCKET_NAME_LENGTH_MAX && name.trim() === name && !/\p{Cc}/u.test(name);
}

function isTaken({ storageBuckets }: OpenAccount, name: string, but: StorageBucketId | null): boolean {
  const key = bucketNameKey(name);
  return [...storageBuckets.values()].some((other) => other.id !== but && bucketNameKey(other.name) === key);
}

/** The default bucket concerns every repository to come. */
function mayChange(account: OpenAccount, selection: RepositorySelection, { id }: StorageBucket): boolean {
  if (selection.scope === 'ALL_REPO') return true;
  return account.defaultBucketId !== id && dependentsOf(account, id).every((one) => isSelected(selection, one.id));
}

function namesOf(dependent: readonly OwnedRepository[], selection: RepositorySelection): DependentNames {
  const visible = dependent.filter(({ id }) => isSelected(selection, id)).map(({ name }) => name);
  const names = visible.toSorted().slice(0, DEPENDENT_NAMES_MAX);
  return { names, more: names.length < dependent.length };
}
