/**
 * Puts one object under a key that must be new: in one request, or in parts above a bound.
 *
 * Invariants: S3 checks the SHA-256 of every request, and stores nothing unless the key is free. A put carries a
 * random mark, so that after a lost answer its own object is told apart from somebody else's. A part is in memory
 * before it is sent, so that a body which fails or ends early leaves no object.
 */
import { createHash, randomUUID } from 'node:crypto';
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
import type { Budget } from './budget.ts';
import { S3Failure } from './failures.ts';
import { createPartSource, type PartSource } from './part-source.ts';
import { repeatable, type Sender } from './requests.ts';

/**
 * A layer up to this size is one request to a bucket; a larger one is sent in parts of this size. Internal: both ways
 * store the same bytes.
 */
export const S3_PART_BYTES = 8 * MIB;

/** User metadata with the mark of the put. */
const MARK = 'strata-put';

export interface NewObject {
  readonly sender: Sender;
  readonly held: Budget;
  readonly at: { readonly Bucket: string; readonly Key: string };
  readonly sizeBytes: number;
}

/** Rejects with an `S3Failure`, or with the error of the body. */
export async function putNew(object: NewObject, body: AsyncIterable<Uint8Array>): Promise<'stored' | 'exists'> {
  const source = createPartSource(body, object.sizeBytes, S3_PART_BYTES);
  const mark = randomUUID();
  try {
    return await (object.sizeBytes <= S3_PART_BYTES
      ? putWhole(object, mark, source)
      : putInParts(object, mark, source));
  } catch (error) {
    if (!(error instanceof S3Failure) || !OUTCOME_OPEN.has(error.code)) throw error;
    return await ownOrForeign(object, mark, error);
  } finally {
    await source.close();
  }
}

/** A first attempt whose answer was lost may have stored the object. */
const OUTCOME_OPEN: ReadonlySet<string> = new Set(['object-there-already', 'upload-gone']);

async function putWhole(object: NewObject, mark: string, source: PartSource): Promise<'stored'> {
  const release = await object.held.take(object.sizeBytes);
  try {
    const bytes = (await source.next()) ?? Buffer.alloc(0);
    const command = () =>
      new PutObjectCommand({
        ...object.at,
        Body: bytes,
        ContentLength: bytes.length,
        ContentType: 'application/x-tar',
        ChecksumSHA256: sha256(bytes),
        IfNoneMatch: '*',
        Metadata: { [MARK]: mark },
      });
    await repeatable(object.sender, 'PutObject', (client) => client.send(command()));
    return 'stored';
  } finally {
    release();
  }
}

async function putInParts(object: NewObject, mark: string, source: PartSource): Promise<'stored'> {
  const { sender, at } = object;
  const created = await repeatable(sender, 'CreateMultipartUpload', (client) =>
    client.send(
      new CreateMultipartUploadCommand({
        ...at,
        ContentType: 'application/x-tar',
        ChecksumAlgorithm: 'SHA256',
        Metadata: { [MARK]: mark },
      }),
    ),
  );
  const upload = created.UploadId;
  if (upload === undefined) throw new S3Failure('not-s3', 'The answer to CreateMultipartUpload names no upload');
  try {
    const parts = await sendParts(object, upload, source);
    await repeatable(sender, 'CompleteMultipartUpload', (client) =>
      client.send(
        new CompleteMultipartUploadCommand({
          ...at,
          UploadId: upload,
          IfNoneMatch: '*',
          MultipartUpload: { Parts: parts },
        }),
      ),
    );
    return 'stored';
  } catch (error) {
    const aborted = abort(object, upload);
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
      const part = { PartNumber: number, ChecksumSHA256: sha256(bytes) };
      const { ETag } = await repeatable(object.sender, 'UploadPart', (client) =>
        client.send(
          new UploadPartCommand({ ...object.at, UploadId: upload, ...part, Body: bytes, ContentLength: bytes.length }),
        ),
      );
      if (ETag === undefined) throw new S3Failure('not-s3', 'The answer to UploadPart names no ETag');
      parts.push({ ...part, ETag });
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
    return found.Metadata?.[MARK] === mark && found.ContentLength === object.sizeBytes ? 'stored' : 'exists';
  } catch (error) {
    // Somebody removed it first: whose it was is not known any more.
    if (error instanceof S3Failure && error.code === 'layer-not-found') throw failure;
    throw error;
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64');
}
