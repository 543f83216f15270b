/**
 * Tries a bucket as the service will use it: with a small object of its own, and with one that is uploaded in parts.
 *
 * Invariants: it leaves no object behind where deleting works; its fault holds no credential, also if the server
 * sends one back in its words.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import type { BucketFaultCode, BucketStep } from '../../core/kernel/bucket-fault.ts';
import { MIB } from '../../core/kernel/byte-units.ts';
import { BUCKET_CHECK_SPAN_MS, BUCKET_FAULT_MESSAGE_LENGTH_MAX } from '../../core/kernel/limits.ts';
import type { BucketConnection, BucketFault } from '../../core/ports/buckets.ts';
import type { ByteRange } from '../../core/ports/layer-store.ts';
import { type LayerKey, layerKey } from '../../core/repository/layer.ts';
import { type Bucket, type BucketOptions, deleteObject, headObject, objectAt, openBucket } from './bucket.ts';
import { type FailureCode, failureOf, S3Failure } from './failures.ts';
import { putNew } from './put.ts';
import { openRead } from './read.ts';
import { repeatable } from './requests.ts';

const CANARY_BYTES = 1_024;
/** The least that S3 takes of a part that is not the last. */
const PART_BYTES = 5 * MIB;

/** Resolves to the first fault. `open` may throw an `S3Failure`. */
export async function checkBucket(
  connection: BucketConnection,
  open: () => BucketOptions,
): Promise<BucketFault | null> {
  let step: BucketStep = 'credentials';
  const { promise: timeUp, reject } = Promise.withResolvers<never>();
  const late = (): void => reject(new S3Failure('timed-out', 'The bucket took too long'));
  const timer = setTimeout(late, BUCKET_CHECK_SPAN_MS).unref();
  try {
    const steps = trySteps(open(), (next) => {
      step = next;
    });
    await Promise.race([steps, timeUp]);
    return null;
  } catch (error) {
    const failure = failureOf('the check', error);
    return {
      step: stepOf(step, failure),
      code: faultCode(step, failure.code),
      message: messageOf(failure, connection),
    };
  } finally {
    clearTimeout(timer);
  }
}

/** Credentials are used first by whatever request comes first. */
function stepOf(step: BucketStep, { code }: S3Failure): BucketStep {
  if (code === 'credentials-refused' || code === 'credentials-invalid') return 'credentials';
  return code === 'wrong-region' ? 'region' : step;
}

async function trySteps(options: BucketOptions, begin: (step: BucketStep) => void): Promise<void> {
  if (typeof options.credentials === 'function') await options.credentials();
  begin('region');
  if (typeof options.region === 'function') await options.region();
  const bucket = openBucket(options);
  for (const attempt of [trySmall, tryInParts]) {
    await attempt({ bucket, key: layerKey(`strata-check/${randomUUID()}`), begin });
  }
}

interface Trial {
  readonly bucket: Bucket;
  readonly key: LayerKey;
  readonly begin: (step: BucketStep) => void;
}

async function trySmall(trial: Trial): Promise<void> {
  const { bucket, key, begin } = trial;
  const bytes = randomBytes(CANARY_BYTES);
  begin('put');
  const object = { ...bucket, at: objectAt(bucket, key), sizeBytes: bytes.length };
  if ((await putNew(object, once(bytes))) !== 'stored') throw altered('held the new object already');
  await thenRemoved(trial, async () => {
    begin('head');
    const head = await headObject(bucket, key);
    if (head === null) throw new S3Failure('layer-not-found', 'The bucket lost the object that it had stored');
    if (head.sizeBytes !== bytes.length) throw altered('names another size of the object');
    begin('get');
    if (!(await bytesOf(trial)).equals(bytes)) throw altered('returned other bytes than were stored');
    begin('list');
    await tryListing(bucket);
  });
}

/** Uploads as use does, and reads the border of two parts. */
async function tryInParts(trial: Trial): Promise<void> {
  const { bucket, key, begin } = trial;
  const bytes = randomBytes(PART_BYTES + 1);
  begin('multipart');
  const object = { ...bucket, at: objectAt(bucket, key), sizeBytes: bytes.length };
  if ((await putNew(object, once(bytes), PART_BYTES)) !== 'stored') throw altered('held the new object already');
  await thenRemoved(trial, async () => {
    begin('range');
    const range = { start: PART_BYTES - CANARY_BYTES, end: bytes.length };
    const read = await bytesOf(trial, range);
    if (!read.equals(bytes.subarray(range.start))) throw altered('returned other bytes than were stored');
  });
}

async function bytesOf({ bucket, key }: Trial, range?: ByteRange): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(await openRead({ ...bucket, at: objectAt(bucket, key) }, range)));
}

/** Layers of users are found by their events, so a bucket that may not be listed can be used. */
async function tryListing({ sender, name, prefix }: Bucket): Promise<void> {
  const asked = { Bucket: name, Prefix: prefix, MaxKeys: 1 };
  try {
    // One page: another side that never ends its listing would be asked without end.
    await repeatable(sender, 'ListObjectsV2', (client) => client.send(new ListObjectsV2Command(asked)));
  } catch (error) {
    if (!(error instanceof S3Failure) || error.code !== 'access-denied') throw error;
  }
}

/** Removes the object, also after a fault, which is the one that is reported. */
async function thenRemoved({ bucket, key, begin }: Trial, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    await removeQuietly(bucket, key);
    throw error;
  }
  begin('delete');
  await deleteObject(bucket, key);
  begin('head');
  if ((await headObject(bucket, key)) === null) return;
  begin('delete');
  throw altered('keeps the object that was deleted');
}

async function removeQuietly(bucket: Bucket, key: ReturnType<typeof layerKey>): Promise<void> {
  try {
    await deleteObject(bucket, key);
  } catch {
    // The fault that is reported came before.
  }
}

function altered(what: string): S3Failure {
  return new S3Failure('object-altered', `The bucket ${what}`);
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function faultCode(step: BucketStep, code: FailureCode): BucketFaultCode {
  switch (code) {
    case 'layer-not-found':
      return 'object-missing';
    case 'layer-store-full':
    case 'layer-store-unavailable':
    case 'range-not-satisfiable':
    case 'object-there-already':
    case 'conflict':
    case 'upload-gone':
    case 'checksum-wanted':
    case 'refused':
      return 'failed';
    case 'unsupported':
      return step === 'multipart' ? 'multipart-missing' : 'failed';
    case 'object-altered':
    case 'bucket-missing':
    case 'access-denied':
    case 'credentials-invalid':
    case 'credentials-refused':
    case 'wrong-region':
    case 'clock-skewed':
    case 'throttled':
    case 'timed-out':
    case 'certificate-invalid':
    case 'target-refused':
    case 'unreachable':
    case 'not-s3':
      return code;
  }
}

function messageOf(failure: S3Failure, { access }: BucketConnection): string {
  const secrets = access.mode === 'STATIC_KEYS' ? [access.accessKeyId, access.secretAccessKey] : [];
  const said = cleaned(failure.said, secrets);
  const text = said === '' ? failure.message : `${failure.message}: ${said}`;
  return text.length <= BUCKET_FAULT_MESSAGE_LENGTH_MAX
    ? text
    : `${text.slice(0, BUCKET_FAULT_MESSAGE_LENGTH_MAX - 1)}…`;
}

/** A server may send back what it was sent, or anything else. */
function cleaned(said: string, secrets: readonly string[]): string {
  let text = said
    .slice(0, 10_000)
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\s]+/gu, ' ')
    .trim();
  for (const secret of secrets) if (secret !== '') text = text.replaceAll(secret, '…');
  return text.replaceAll(
    /AWS4-\S+|Credential=\S+|Signature=\S+|[A-Za-z0-9+/=_-]{32,}|\b(AKIA|ASIA)[A-Z0-9]{12,}/g,
    '…',
  );
}
