/**
 * One bucket, as the parts of this adapter share it.
 *
 * Invariants: no object outside the prefix is read, listed or deleted. Everything here rejects with an `S3Failure`.
 */
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  type _Object as ListedObject,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
} from '@aws-sdk/client-s3';
import { MIB } from '../../core/kernel/byte-units.ts';
import { plusMs, type Timestamp, timestamp } from '../../core/kernel/ids.ts';
import { S3_CONNECT_SPAN_MS } from '../../core/kernel/limits.ts';
import type { BucketFindings } from '../../core/ports/bucket-findings.ts';
import type { IncomingLayer } from '../../core/ports/layer-store.ts';
import { type LayerKey, layerKey, type StoredLayer } from '../../core/repository/layer.ts';
import { type Budget, createBudget } from './budget.ts';
import { createS3Client, type S3ClientOptions, spansOf } from './client.ts';
import { failureOf, headersOf, S3Failure } from './failures.ts';
import { type StoredObject, sizeByRange } from './read.ts';
import { repeatable, type Sender } from './requests.ts';

/** The parts of layers in memory that wait for one bucket. Internal: further layers wait. */
const S3_HELD_BYTES_MAX = 64 * MIB;

export interface BucketOptions extends S3ClientOptions {
  readonly bucket: string;
  /** Empty, or ends in `/`. */
  readonly prefix: string;
  readonly renew?: () => void;
  /** Null or absent: nothing is known of the bucket. */
  readonly findings?: BucketFindings | null;
}

/** What the bucket was found to want, which not every provider does. It is learnt from refusals, and from a check. */
export interface BucketTraits {
  /** Whether it takes the condition that an object is not there. Without, a put looks first. */
  takesConditions: boolean;
  /** Whether a put needs a checksum beside the signed hash of its body, as it does with Object Lock. */
  wantsChecksums: boolean;
  /** Whether it compares what arrives with its hash. Without, an object is read back after its put. */
  checksBodies: boolean;
}

export interface Bucket {
  readonly sender: Sender;
  readonly traits: BucketTraits;
  readonly name: string;
  readonly prefix: string;
  readonly held: Budget;
  readonly stalledMs: number;
}

const NOTHING_LACKS: BucketFindings = { conditionalWrites: true, checksBodies: true };

export function openBucket(options: BucketOptions): Bucket {
  const { conditionalWrites, checksBodies } = options.findings ?? NOTHING_LACKS;
  const { stalledMs, retryMs } = spansOf(options);
  return {
    sender: { client: createS3Client(options), renew: options.renew ?? null, retryMs },
    traits: { takesConditions: conditionalWrites, wantsChecksums: false, checksBodies },
    name: options.bucket,
    prefix: options.prefix,
    held: createBudget(S3_HELD_BYTES_MAX, S3_CONNECT_SPAN_MS),
    stalledMs,
  };
}

export function objectAt(bucket: Bucket, key: LayerKey): { readonly Bucket: string; readonly Key: string } {
  return { Bucket: bucket.name, Key: bucket.prefix + layerKey(key) };
}

/** The object of a key, for calls that need no more of its bucket. */
export function objectIn(bucket: Bucket, key: LayerKey): StoredObject & Bucket {
  return { ...bucket, at: objectAt(bucket, key) };
}

export async function headObject(bucket: Bucket, key: LayerKey): Promise<StoredLayer | null> {
  const object = objectIn(bucket, key);
  try {
    const found = await repeatable(bucket.sender, 'HeadObject', (client) =>
      client.send(new HeadObjectCommand(object.at)),
    );
    const sizeBytes = found.ContentLength ?? (await sizeByRange(object));
    return storedLayer(key, sizeBytes, found.LastModified);
  } catch (error) {
    if (!(error instanceof S3Failure) || error.code !== 'layer-not-found') throw error;
  }
  // The answer to HEAD has no body, so a bucket that is gone looks the same.
  await timeOf(bucket);
  return null;
}

export async function deleteObject({ sender, at }: Pick<StoredObject, 'sender' | 'at'>): Promise<void> {
  await repeatable(sender, 'DeleteObject', (client) => client.send(new DeleteObjectCommand(at)));
}

export async function* listObjects(bucket: Bucket, prefix: string): AsyncGenerator<StoredLayer> {
  if (prefix.split('/').includes('..')) return;
  let from: string | undefined;
  do {
    const asked = { Bucket: bucket.name, Prefix: bucket.prefix + prefix, ContinuationToken: from };
    const page = await repeatable(bucket.sender, 'ListObjectsV2', (client) =>
      client.send(new ListObjectsV2Command(asked)),
    );
    for (const listed of page.Contents ?? []) {
      const layer = layerOf(bucket, listed);
      if (layer !== null) yield layer;
    }
    const next = page.IsTruncated === true ? page.NextContinuationToken : undefined;
    if (next !== undefined && next === from) throw new S3Failure('not-s3', 'The listing of the bucket has no end');
    from = next;
  } while (from !== undefined);
}

/** Null for what is no layer's key: the bucket may hold other objects. */
function layerOf(bucket: Bucket, listed: ListedObject): StoredLayer | null {
  if (listed.Key?.startsWith(bucket.prefix) !== true) return null;
  const key = keyOf(listed.Key.slice(bucket.prefix.length));
  return key === null ? null : storedLayer(key, listed.Size, listed.LastModified);
}

function keyOf(text: string): LayerKey | null {
  try {
    return layerKey(text);
  } catch {
    return null;
  }
}

function storedLayer(key: LayerKey, sizeBytes: number | undefined, modified: Date | undefined): StoredLayer {
  if (sizeBytes === undefined || modified === undefined) {
    throw new S3Failure('not-s3', 'The bucket names no size or no time of an object');
  }
  return { key, sizeBytes, storedAt: wholeSeconds(modified) };
}

/** HTTP's times have whole seconds, those of a listing have more on some servers: one object has one time. */
function wholeSeconds(time: Date): Timestamp {
  return timestamp(new Date(Math.floor(time.getTime() / 1_000) * 1_000).toISOString());
}

/** The time in the head of an answer, whose clock the times of objects share. */
export async function timeOf(bucket: Bucket): Promise<Timestamp> {
  const { headers, failure } = await headBucket(bucket);
  if (failure !== null) throw failure;
  const time = new Date(headers['date'] ?? '');
  if (Number.isNaN(time.getTime())) throw new S3Failure('not-s3', 'The answer to HeadBucket has no time');
  return wholeSeconds(time);
}

export interface BucketHead {
  /** Names in lower case; empty if there was no answer. */
  readonly headers: Readonly<Record<string, string>>;
  readonly failure: S3Failure | null;
}

/** Asks for the bucket itself. An answer that refuses has headers too. */
export async function headBucket({ sender, name }: Bucket): Promise<BucketHead> {
  let headers: Readonly<Record<string, string>> = {};
  const request = (): HeadBucketCommand => {
    const command = new HeadBucketCommand({ Bucket: name });
    command.middlewareStack.add(
      (next) => async (args) => {
        const result = await next(args);
        headers = headersOf(result.response);
        return result;
      },
      // Below the SDK's parser, which throws for an answer that refuses.
      { step: 'deserialize', priority: 'low' },
    );
    return command;
  };
  try {
    await repeatable(sender, 'HeadBucket', (client) => client.send(request()));
    return { headers, failure: null };
  } catch (error) {
    const failure = failureOf('HeadBucket', error);
    const isGone = failure.code === 'layer-not-found';
    return { headers, failure: isGone ? new S3Failure('bucket-missing', failure.message) : failure };
  }
}

/**
 * Older uploads are of processes that died: a put takes minutes at most. Internal: only uploads that dead processes
 * left are so old.
 */
const UPLOAD_AGE_MS_MAX = 24 * 60 * 60_000;

/** Returns the uploads in parts that were begun and not ended, 10,000 at most. Who began them is not known. */
export async function* listUploads(bucket: Bucket): AsyncGenerator<IncomingLayer> {
  const { sender, name, prefix } = bucket;
  const oldest = plusMs(await timeOf(bucket), -UPLOAD_AGE_MS_MAX);
  let from: { readonly KeyMarker?: string; readonly UploadIdMarker?: string } = {};
  for (let page = 0; page < UPLOAD_PAGES_MAX; page += 1) {
    const asked = { Bucket: name, Prefix: prefix, ...from };
    const listed = await repeatable(sender, 'ListMultipartUploads', (client) =>
      client.send(new ListMultipartUploadsCommand(asked)),
    );
    for (const { Key, UploadId, Initiated } of listed.Uploads ?? []) {
      const key = Key?.startsWith(prefix) === true ? keyOf(Key.slice(prefix.length)) : null;
      if (key === null || UploadId === undefined || Initiated === undefined) continue;
      const at = wholeSeconds(Initiated);
      yield { name: UploadId, key, sizeBytes: null, at, isLeft: at < oldest };
    }
    const { NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = listed;
    if (listed.IsTruncated !== true || KeyMarker === undefined || UploadIdMarker === undefined) return;
    from = { KeyMarker, UploadIdMarker };
  }
}

/** Pages of uploads that are read together. Internal: the rest is removed later. */
const UPLOAD_PAGES_MAX = 10;

/** Does nothing if the upload has ended. */
export async function abortUpload(bucket: Bucket, { name: UploadId, key }: UploadId): Promise<void> {
  if (key === null) throw new TypeError('An upload has a key');
  try {
    await repeatable(bucket.sender, 'AbortMultipartUpload', (client) =>
      client.send(new AbortMultipartUploadCommand({ ...objectAt(bucket, key), UploadId })),
    );
  } catch (error) {
    if (!(error instanceof S3Failure) || error.code !== 'upload-gone') throw error;
  }
}

type UploadId = Pick<IncomingLayer, 'name' | 'key'>;

/** Aborts uploads in parts that nobody will complete. */
export async function abortOldUploads(bucket: Bucket): Promise<void> {
  for await (const upload of listUploads(bucket)) if (upload.isLeft) await abortUpload(bucket, upload);
}
