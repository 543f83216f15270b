/**
 * Puts one object under a key that must be new: in one request, or in parts above a bound.
 *
 * Invariants: S3 checks the SHA-256 of every request, which is part of its signature, and stores nothing unless the key
 * is free. Where a provider does not take that condition the put looks first, so that two at the same moment may both
 * store: their callers write the same bytes, or read what is there afterwards. A put carries a random mark, so that
 * after a lost answer its own object is told apart from somebody else's. A part is in memory before it is sent, so that
 * a body which fails or ends early leaves no object. Where a provider does not compare bodies with their hashes, what
 * was stored is read back. An upload in parts whose completion meets another write of its key is never completed again:
 * Amazon wants a new one, which the put begins if its body can be read again.
 */
import { createHash, type Hash, randomUUID } from 'node:crypto';
import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { MIB } from '../../core/kernel/byte-units.ts';
import { canReadAgain } from '../../core/kernel/read-again.ts';
import { type BucketTraits, deleteObject } from './bucket.ts';
import type { Budget } from './budget.ts';
import { S3Failure } from './failures.ts';
import { createPartSource, type PartSource } from './part-source.ts';
import { openRead } from './read.ts';
import { repeatable, type Sender } from './requests.ts';

/**
 * A layer up to this size is one request to a bucket; a larger one is sent in parts of this size. Internal: both ways
 * store the same bytes.
 */
export const S3_PART_BYTES = 8 * MIB;

/** How often a put begins an upload in parts. */
const UPLOADS = 3;

/** User metadata with the mark of the put. */
const MARK = 'strata-put';

export interface NewObject {
  readonly sender: Sender;
  readonly traits: BucketTraits;
  readonly held: Budget;
  readonly at: { readonly Bucket: string; readonly Key: string };
  readonly sizeBytes: number;
  readonly stalledMs: number;
}

/** Rejects with an `S3Failure`, or with the error of the body. `partBytes` is 5 MiB at least, as S3 wants it. */
export async function putNew(
  object: NewObject,
  body: AsyncIterable<Uint8Array>,
  partBytes = S3_PART_BYTES,
): Promise<'stored' | 'exists'> {
  const mark = randomUUID();
  for (let uploads = 1; ; uploads += 1) {
    try {
      return await putOnce(object, mark, body, partBytes);
    } catch (error) {
      const isConflict = error instanceof S3Failure && error.code === 'upload-conflict';
      if (!isConflict || uploads === UPLOADS || !canReadAgain(body)) throw error;
    }
  }
}

async function putOnce(
  object: NewObject,
  mark: string,
  body: AsyncIterable<Uint8Array>,
  partBytes: number,
): Promise<'stored' | 'exists'> {
  const hash = createHash('sha256');
  const read = createPartSource(body, object.sizeBytes, partBytes);
  const source = object.traits.checksBodies ? read : hashing(read, hash);
  try {
    const outcome = await putMarked(object, mark, source, partBytes);
    if (outcome === 'stored' && !object.traits.checksBodies) await readBack(object, hash.digest());
    return outcome;
  } finally {
    await source.close();
  }
}

async function putMarked(
  object: NewObject,
  mark: string,
  source: PartSource,
  partBytes: number,
): Promise<'stored' | 'exists'> {
  try {
    return await (object.sizeBytes <= partBytes ? putWhole(object, mark, source) : putInParts(object, mark, source));
  } catch (error) {
    if (!(error instanceof S3Failure) || !OUTCOME_OPEN.has(error.code)) throw error;
    return ownOrForeign(object, mark, error);
  }
}

function hashing(source: PartSource, hash: Hash): PartSource {
  const next = async (): Promise<Buffer | null> => {
    const part = await source.next();
    if (part !== null) hash.update(part);
    return part;
  };
  return { next, close: () => source.close() };
}

/** Removes the object if the bucket has other bytes than it was sent. */
async function readBack(object: NewObject, expected: Buffer): Promise<void> {
  const hash = createHash('sha256');
  let readBytes = 0;
  for await (const chunk of await openRead(object)) {
    hash.update(chunk);
    readBytes += chunk.length;
    // An answer may have no end.
    if (readBytes > object.sizeBytes) break;
  }
  if (hash.digest().equals(expected)) return;
  await deleteObject(object);
  throw new S3Failure('object-altered', 'The bucket returned other bytes than were stored');
}

/** A first attempt whose answer was lost may have stored the object. */
const OUTCOME_OPEN: ReadonlySet<string> = new Set(['object-there-already', 'upload-gone', 'upload-conflict']);

async function putWhole(object: NewObject, mark: string, source: PartSource): Promise<'stored'> {
  const release = await object.held.take(object.sizeBytes);
  try {
    const bytes = (await source.next()) ?? Buffer.alloc(0);
    const command = (condition: Condition) =>
      new PutObjectCommand({
        ...object.at,
        Body: bytes,
        ContentLength: bytes.length,
        ContentType: 'application/x-tar',
        ...checksum(object, bytes),
        ...condition,
        Metadata: { [MARK]: mark },
      });
    await ifFree(object, (condition) =>
      repeatable(object.sender, 'PutObject', (client) => client.send(command(condition))),
    );
    return 'stored';
  } finally {
    release();
  }
}

interface Condition {
  readonly IfNoneMatch?: '*';
}

/** Runs a request that is to store the object. Rejects with `object-there-already` if its key is not free. */
async function ifFree<Result>(object: NewObject, run: (condition: Condition) => Promise<Result>): Promise<Result> {
  const { traits } = object;
  if (traits.takesConditions) {
    try {
      return await checked(traits, () => run({ IfNoneMatch: '*' }));
    } catch (error) {
      if (!(error instanceof S3Failure) || error.code !== 'unsupported') throw error;
    }
  }
  await requireFree(object);
  const result = await checked(traits, () => run({}));
  // The condition was what the bucket did not take.
  traits.takesConditions = false;
  return result;
}

/** Runs a request again, with a checksum from now on, where the bucket wants one. */
async function checked<Result>(traits: BucketTraits, run: () => Promise<Result>): Promise<Result> {
  const had = traits.wantsChecksums;
  try {
    return await run();
  } catch (error) {
    if (had || !(error instanceof S3Failure) || error.code !== 'checksum-wanted') throw error;
    traits.wantsChecksums = true;
    return run();
  }
}

async function requireFree({ sender, at }: NewObject): Promise<void> {
  try {
    await repeatable(sender, 'HeadObject', (client) => client.send(new HeadObjectCommand(at)));
  } catch (error) {
    if (error instanceof S3Failure && error.code === 'layer-not-found') return;
    throw error;
  }
  throw new S3Failure('object-there-already', 'The bucket holds the new object already');
}

/** Each request's own header, which an upload in parts need not announce when it begins. */
export function checksum({ traits }: Pick<NewObject, 'traits'>, bytes: Uint8Array): { readonly ContentMD5?: string } {
  return traits.wantsChecksums ? { ContentMD5: createHash('md5').update(bytes).digest('base64') } : {};
}

async function putInParts(object: NewObject, mark: string, source: PartSource): Promise<'stored'> {
  try {
    return await upload(object, mark, source);
  } catch (error) {
    if (!(error instanceof S3Failure) || error.code !== 'unsupported') throw error;
    throw new S3Failure('multipart-missing', error.message, error.said);
  }
}

async function upload(object: NewObject, mark: string, source: PartSource): Promise<'stored'> {
  const { sender, at } = object;
  const created = await repeatable(sender, 'CreateMultipartUpload', (client) =>
    client.send(
      new CreateMultipartUploadCommand({
        ...at,
        ContentType: 'application/x-tar',
        Metadata: { [MARK]: mark },
      }),
    ),
  );
  const id = created.UploadId;
  if (id === undefined) throw new S3Failure('not-s3', 'The answer to CreateMultipartUpload names no upload');
  try {
    const parts = await sendParts(object, id, source);
    await ifFree(object, (condition) =>
      repeatable(sender, 'CompleteMultipartUpload', (client) =>
        client.send(
          new CompleteMultipartUploadCommand({
            ...at,
            UploadId: id,
            ...condition,
            MultipartUpload: { Parts: parts },
          }),
        ),
      ),
    );
    return 'stored';
  } catch (error) {
    const aborted = abort(object, id);
    // A bucket that does not answer would hold the pusher as long again. The abort never rejects.
    if (!isSilence(error)) await aborted;
    throw error;
  }
}

function isSilence(error: unknown): boolean {
  return error instanceof S3Failure && (error.code === 'timed-out' || error.code === 'unreachable');
}

async function sendParts(object: NewObject, upload: string, source: PartSource): Promise<CompletedPart[]> {
  const parts: CompletedPart[] = [];
  for (let number = 1; ; number += 1) {
    const release = await object.held.take(S3_PART_BYTES);
    try {
      const bytes = await source.next();
      if (bytes === null) return parts;
      const { ETag } = await checked(object.traits, () => {
        const part = { PartNumber: number, Body: bytes, ContentLength: bytes.length, ...checksum(object, bytes) };
        return repeatable(object.sender, 'UploadPart', (client) =>
          client.send(new UploadPartCommand({ ...object.at, UploadId: upload, ...part })),
        );
      });
      if (ETag === undefined) throw new S3Failure('not-s3', 'The answer to UploadPart names no ETag');
      parts.push({ PartNumber: number, ETag });
    } finally {
      release();
    }
  }
}

/** Parts of an upload that is not completed take room. What stays after a failure, `abortOldUploads` removes. */
async function abort({ sender, at }: NewObject, upload: string): Promise<void> {
  try {
    await repeatable(sender, 'AbortMultipartUpload', (client) =>
      client.send(new AbortMultipartUploadCommand({ ...at, UploadId: upload })),
    );
  } catch {
    // The put has failed already, with a failure that says more.
  }
}

/** The key is taken. Returns `stored` if this put took it. */
async function ownOrForeign(object: NewObject, mark: string, failure: S3Failure): Promise<'stored' | 'exists'> {
  try {
    const found = await repeatable(object.sender, 'HeadObject', (client) =>
      client.send(new HeadObjectCommand(object.at)),
    );
    const sizeBytes = found.ContentLength ?? object.sizeBytes;
    return found.Metadata?.[MARK] === mark && sizeBytes === object.sizeBytes ? 'stored' : 'exists';
  } catch (error) {
    // Somebody removed it first: whose it was is not known any more.
    if (error instanceof S3Failure && error.code === 'layer-not-found') throw failure;
    throw error;
  }
}
