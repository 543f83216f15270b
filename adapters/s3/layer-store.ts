/**
 * Stores layers as objects of one bucket: the key is the prefix and the layer's key.
 *
 * Must stay true: a put resolves when S3 has acknowledged the whole object, and never replaces one; no object outside
 * the prefix is read, listed or deleted; an error holds no credential and nothing of a request.
 */
import {
  type _Object as ListedObject,
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  type S3Client,
} from '@aws-sdk/client-s3';
import { plusMs, type Timestamp, timestamp } from '../../core/kernel/ids.ts';
import { S3_CONNECT_SPAN_MS, S3_HELD_BYTES_MAX } from '../../core/kernel/limits.ts';
import {
  type ByteRange,
  type LayerKey,
  type LayerStore,
  LayerStoreError,
  layerKey,
  type StoredLayer,
} from '../../core/ports/layer-store.ts';
import { createS3Client, type S3ClientOptions, spansOf } from './client.ts';
import { S3Failure, storeError } from './failures.ts';
import { createHeldBytes, type HeldBytes } from './held-bytes.ts';
import { putNew } from './put.ts';
import { openRead } from './read.ts';
import { repeatable } from './requests.ts';

export interface S3LayerStoreOptions extends S3ClientOptions {
  readonly bucket: string;
  /** Empty, or ends in `/`. */
  readonly prefix: string;
}

/** Older uploads are of processes that died: a put takes minutes at most. */
const UPLOAD_AGE_MS_MAX = 24 * 60 * 60_000;

export interface S3LayerStore extends LayerStore {
  /** Aborts uploads in parts that nobody will complete, since their parts take room: the first 1,000 of them. */
  abortOldUploads(): Promise<void>;
}

interface Bucket {
  readonly client: S3Client;
  readonly name: string;
  readonly prefix: string;
  readonly held: HeldBytes;
  readonly stalledMs: number;
}

export function createS3LayerStore(options: S3LayerStoreOptions): S3LayerStore {
  const bucket: Bucket = {
    client: createS3Client(options),
    name: options.bucket,
    prefix: options.prefix,
    held: createHeldBytes(S3_HELD_BYTES_MAX, S3_CONNECT_SPAN_MS),
    stalledMs: spansOf(options).stalledMs,
  };
  return {
    put: (key, body, sizeBytes) =>
      reported(key, () => putNew({ ...bucket, at: objectAt(bucket, key), sizeBytes }, body)),
    get: (key, range) => get(bucket, key, range),
    head: (key) => reported(key, () => head(bucket, key)),
    delete: (key) =>
      reported(key, async () => {
        await repeatable('DeleteObject', () => bucket.client.send(new DeleteObjectCommand(objectAt(bucket, key))));
      }),
    list: (prefix) => list(bucket, prefix),
    now: () => reported(bucket.name, () => now(bucket)),
    abortOldUploads: () => reported(bucket.name, () => abortOldUploads(bucket)),
  };
}

function objectAt(bucket: Bucket, key: LayerKey): { readonly Bucket: string; readonly Key: string } {
  return { Bucket: bucket.name, Key: bucket.prefix + layerKey(key) };
}

async function reported<Result>(what: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    throw error instanceof S3Failure ? storeError(error, what) : error;
  }
}

async function get(bucket: Bucket, key: LayerKey, range?: ByteRange): Promise<AsyncIterable<Uint8Array>> {
  if (range !== undefined && !isRange(range)) {
    throw new LayerStoreError('range-not-satisfiable', `${key} has no bytes from ${range.start} to ${range.end}`);
  }
  const bytes = await reported(key, () => openRead({ ...bucket, at: objectAt(bucket, key) }, range));
  return reportedEach(key, bytes);
}

function isRange({ start, end }: ByteRange): boolean {
  return Number.isSafeInteger(start) && Number.isSafeInteger(end) && start >= 0 && start < end;
}

async function* reportedEach(what: string, bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* bytes;
  } catch (error) {
    throw error instanceof S3Failure ? storeError(error, what) : error;
  }
}

async function head(bucket: Bucket, key: LayerKey): Promise<StoredLayer | null> {
  try {
    const found = await repeatable('HeadObject', () =>
      bucket.client.send(new HeadObjectCommand(objectAt(bucket, key))),
    );
    return storedLayer(key, found.ContentLength, found.LastModified);
  } catch (error) {
    if (!(error instanceof S3Failure) || error.code !== 'layer-not-found') throw error;
  }
  // The answer to HEAD has no body, so a bucket that is gone looks the same.
  await now(bucket);
  return null;
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

async function* list(bucket: Bucket, prefix: string): AsyncGenerator<StoredLayer> {
  if (prefix.split('/').includes('..')) return;
  let from: string | undefined;
  do {
    const page = await reported(prefix, () =>
      repeatable('ListObjectsV2', () =>
        bucket.client.send(
          new ListObjectsV2Command({ Bucket: bucket.name, Prefix: bucket.prefix + prefix, ContinuationToken: from }),
        ),
      ),
    );
    for (const listed of page.Contents ?? []) {
      const layer = layerOf(bucket, listed);
      if (layer !== null) yield layer;
    }
    const next = page.IsTruncated === true ? page.NextContinuationToken : undefined;
    if (next !== undefined && next === from)
      throw new LayerStoreError('not-s3', 'The listing of the bucket has no end');
    from = next;
  } while (from !== undefined);
}

/** Null for what is no layer's key: the bucket may hold other objects. */
function layerOf(bucket: Bucket, listed: ListedObject): StoredLayer | null {
  if (listed.Key?.startsWith(bucket.prefix) !== true) return null;
  let key: LayerKey;
  try {
    key = layerKey(listed.Key.slice(bucket.prefix.length));
  } catch {
    return null;
  }
  return storedLayer(key, listed.Size, listed.LastModified);
}

/** The time in the answer's head, which S3 and the objects' times share. */
async function now({ client, name }: Bucket): Promise<Timestamp> {
  let date: string | undefined;
  await repeatable('HeadBucket', () => {
    const command = new HeadBucketCommand({ Bucket: name });
    command.middlewareStack.add(
      (next) => async (args) => {
        const result = await next(args);
        date = dateOf(result.response);
        return result;
      },
      { step: 'deserialize', priority: 'low' },
    );
    return client.send(command);
  });
  const time = new Date(date ?? '');
  if (Number.isNaN(time.getTime())) throw new S3Failure('not-s3', 'The answer to HeadBucket has no time');
  return wholeSeconds(time);
}

async function abortOldUploads(bucket: Bucket): Promise<void> {
  const { client, name, prefix } = bucket;
  const oldest = plusMs(await now(bucket), -UPLOAD_AGE_MS_MAX);
  const listed = await repeatable('ListMultipartUploads', () =>
    client.send(new ListMultipartUploadsCommand({ Bucket: name, Prefix: prefix })),
  );
  for (const { Key, UploadId, Initiated } of listed.Uploads ?? []) {
    if (Key?.startsWith(prefix) !== true || Initiated === undefined || wholeSeconds(Initiated) >= oldest) continue;
    await repeatable('AbortMultipartUpload', () =>
      client.send(new AbortMultipartUploadCommand({ Bucket: name, Key, UploadId })),
    );
  }
}

function dateOf(response: unknown): string | undefined {
  if (typeof response !== 'object' || response === null || !('headers' in response)) return undefined;
  const { headers } = response;
  if (typeof headers !== 'object' || headers === null || !('date' in headers)) return undefined;
  return typeof headers.date === 'string' ? headers.date : undefined;
}
