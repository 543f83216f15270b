/**
 * Stores layers as objects of one bucket: the key is the prefix and the layer's key.
 *
 * Invariants: a put resolves when S3 has acknowledged the whole object, and never replaces one; an error holds no
 * credential and nothing of a request.
 */
import type { BucketFindings } from '../../core/ports/bucket-findings.ts';
import { type ByteRange, type LayerStore, LayerStoreError } from '../../core/ports/layer-store.ts';
import type { LayerKey } from '../../core/repository/layer.ts';
import {
  abortOldUploads,
  abortUpload,
  type Bucket,
  type BucketOptions,
  deleteObject,
  headObject,
  listObjects,
  listUploads,
  objectIn,
  openBucket,
  timeOf,
} from './bucket.ts';
import { removeLeftChecks, tryBucket } from './check-bucket.ts';
import { S3Failure, storeError } from './failures.ts';
import { putNew } from './put.ts';
import { openRead } from './read.ts';

export interface S3LayerStore extends LayerStore {
  /** Aborts uploads in parts that nobody will complete, since their parts take room. */
  abortOldUploads(): Promise<void>;
  /**
   * Makes the calls that use makes, as the verification of a user's bucket does, and goes by what it found out from
   * then on. Removes what earlier checks left whose processes died. Rejects with a `LayerStoreError` that names the
   * first step that failed.
   */
  check(): Promise<BucketFindings>;
}

/** `called` names the bucket in messages: the name of a user's bucket is not for the log. */
export function createS3LayerStore(options: BucketOptions, called = options.bucket): S3LayerStore {
  const bucket = openBucket(options);
  return {
    put: (key, body, sizeBytes) => reported(key, () => putNew({ ...objectIn(bucket, key), sizeBytes }, body)),
    get: (key, range) => get(bucket, key, range),
    head: (key) => reported(key, () => headObject(bucket, key)),
    delete: (key) => reported(key, () => deleteObject(objectIn(bucket, key))),
    list: (prefix) => reportedEach(called, listObjects(bucket, prefix)),
    now: () => reported(called, () => timeOf(bucket)),
    incoming: {
      list: () => reportedEach(called, listUploads(bucket)),
      remove: (upload) => reported(called, () => abortUpload(bucket, upload)),
    },
    abortOldUploads: () => reported(called, () => abortOldUploads(bucket)),
    check: () => reported(called, () => check(bucket, options)),
  };
}

async function check(bucket: Bucket, { credentials }: BucketOptions): Promise<BucketFindings> {
  const secrets = typeof credentials === 'function' ? [] : [credentials.accessKeyId, credentials.secretAccessKey];
  const findings = await tryBucket(bucket, secrets);
  bucket.traits.takesConditions = findings.conditionalWrites;
  bucket.traits.checksBodies = findings.checksBodies;
  await removeLeftChecks(bucket);
  return findings;
}

async function get(bucket: Bucket, key: LayerKey, range?: ByteRange): Promise<AsyncIterable<Uint8Array>> {
  if (range !== undefined && !isRange(range)) {
    throw new LayerStoreError('range-not-satisfiable', `${key} has no bytes from ${range.start} to ${range.end}`);
  }
  const bytes = await reported(key, () => openRead(objectIn(bucket, key), range));
  return reportedEach(key, bytes);
}

function isRange({ start, end }: ByteRange): boolean {
  return Number.isSafeInteger(start) && Number.isSafeInteger(end) && start >= 0 && start < end;
}

async function reported<Result>(what: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    throw error instanceof S3Failure ? storeError(error, what) : error;
  }
}

async function* reportedEach<Item>(what: string, items: AsyncIterable<Item>): AsyncGenerator<Item> {
  try {
    yield* items;
  } catch (error) {
    throw error instanceof S3Failure ? storeError(error, what) : error;
  }
}
