/**
 * Tries a bucket as the service will use it: with small objects of its own, and with one that is uploaded in parts.
 *
 * Invariants: it leaves no object behind where deleting works; its fault holds no credential, also if the server
 * sends one back in its words.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { ListObjectsV2Command, PutObjectCommand } from '@aws-sdk/client-s3';
import type { BucketFaultCode, BucketStep } from '../../core/kernel/bucket-fault.ts';
import { MIB } from '../../core/kernel/byte-units.ts';
import { plusMs } from '../../core/kernel/ids.ts';
import { BUCKET_CHECK_SPAN_MS, BUCKET_FAULT_MESSAGE_LENGTH_MAX } from '../../core/kernel/limits.ts';
import type { BucketFindings } from '../../core/ports/bucket-findings.ts';
import type { BucketChecked, BucketConnection } from '../../core/ports/buckets.ts';
import type { ByteRange } from '../../core/ports/layer-store.ts';
import { type LayerKey, layerKey } from '../../core/repository/layer.ts';
import {
  type Bucket,
  type BucketOptions,
  deleteObject,
  headObject,
  listObjects,
  objectAt,
  objectIn,
  openBucket,
  timeOf,
} from './bucket.ts';
import { type FailureCode, failureOf, isDenied, isPassing, S3Failure } from './failures.ts';
import { checksum, putNew } from './put.ts';
import { openRead } from './read.ts';
import { repeatable } from './requests.ts';

const CANARY_BYTES = 1_024;
/** The least that S3 takes of a part that is not the last. */
const PART_BYTES = 5 * MIB;
/** The objects of checks. */
const CHECKS_FOLDER = 'strata-check/';
/** Older ones belong to no check that runs: it takes a minute. */
const LEFT_CHECK_AGE_MS = 60 * 60_000;
/** Puts of one key at the same moment. Internal: enough that a provider which lets several through shows it. */
const RACING_PUTS = 8;

/** Resolves to the first fault, or to what the bucket lacks. `open` may throw an `S3Failure`. */
export async function checkBucket({ access }: BucketConnection, open: () => BucketOptions): Promise<BucketChecked> {
  const tried = await tryWithin('credentials', async (begin) => {
    const options = open();
    if (typeof options.credentials === 'function') await options.credentials();
    begin('region');
    if (typeof options.region === 'function') await options.region();
    return trySteps(openBucket(options), begin);
  });
  if ('findings' in tried) return tried;
  const { step, failure } = tried;
  const secrets = access.mode === 'STATIC_KEYS' ? [access.accessKeyId, access.secretAccessKey] : [];
  return { fault: { step, code: faultCode(failure.code), message: messageOf(failure, secrets) } };
}

/** Does the same with a bucket that is open. Rejects with the first failure, which names its step. */
export async function tryBucket(bucket: Bucket, secrets: readonly string[]): Promise<BucketFindings> {
  const tried = await tryWithin('put', (begin) => trySteps(bucket, begin));
  if ('findings' in tried) return tried.findings;
  const { step, failure } = tried;
  // What a bucket alters it would alter again.
  const code = failure.code === 'object-altered' ? 'refused' : failure.code;
  throw new S3Failure(code, `Step ${step}: ${messageOf(failure, secrets)}`);
}

/** Removes the objects of checks whose processes died. */
export async function removeLeftChecks(bucket: Bucket): Promise<void> {
  const oldest = plusMs(await timeOf(bucket), -LEFT_CHECK_AGE_MS);
  for await (const { key, storedAt } of listObjects(bucket, CHECKS_FOLDER)) {
    if (storedAt < oldest) await deleteObject(objectIn(bucket, key));
  }
}

type Tried = { readonly findings: BucketFindings } | { readonly step: BucketStep; readonly failure: S3Failure };

async function tryWithin(
  first: BucketStep,
  run: (begin: (step: BucketStep) => void) => Promise<BucketFindings>,
): Promise<Tried> {
  let step = first;
  const { promise: timeUp, reject } = Promise.withResolvers<never>();
  const late = (): void => reject(new S3Failure('timed-out', 'The bucket took too long'));
  const timer = setTimeout(late, BUCKET_CHECK_SPAN_MS).unref();
  try {
    const steps = run((next) => {
      step = next;
    });
    return { findings: await Promise.race([steps, timeUp]) };
  } catch (error) {
    const failure = failureOf('the check', error);
    return { step: stepOf(step, failure), failure };
  } finally {
    clearTimeout(timer);
  }
}

/** Credentials are used first by whatever request comes first. */
function stepOf(step: BucketStep, { code }: S3Failure): BucketStep {
  if (code === 'credentials-refused' || code === 'credentials-invalid') return 'credentials';
  return code === 'wrong-region' ? 'region' : step;
}

async function trySteps(bucket: Bucket, begin: (step: BucketStep) => void): Promise<BucketFindings> {
  const trial = (): Trial => ({ bucket, key: layerKey(`${CHECKS_FOLDER}${randomUUID()}`), begin });
  const refusesTaken = await trySmall(trial());
  const checksBodies = await tryWrongHash(trial());
  const conditionalWrites = refusesTaken && (await tryRace(trial()));
  await tryInParts(trial());
  return { conditionalWrites, checksBodies };
}

interface Trial {
  readonly bucket: Bucket;
  readonly key: LayerKey;
  readonly begin: (step: BucketStep) => void;
}

/** Returns whether a put of a key that is there is refused. */
async function trySmall(trial: Trial): Promise<boolean> {
  const { bucket, key, begin } = trial;
  const bytes = randomBytes(CANARY_BYTES);
  begin('put');
  if ((await putSmall(trial, bytes)) !== 'stored') throw altered('held the new object already');
  return thenRemoved(trial, async () => {
    begin('head');
    const head = await headObject(bucket, key);
    if (head === null) throw new S3Failure('layer-not-found', 'The bucket lost the object that it had stored');
    if (head.sizeBytes !== bytes.length) throw altered('names another size of the object');
    begin('get');
    await expectBytes(trial, bytes);
    begin('list');
    await tryListing(bucket);
    begin('conditional-put');
    const isRefused = (await putSmall(trial, randomBytes(CANARY_BYTES))) === 'exists';
    // Without conditions the put looked first.
    return isRefused && bucket.traits.takesConditions;
  });
}

function putSmall({ bucket, key }: Trial, bytes: Buffer): Promise<'stored' | 'exists'> {
  return putNew({ ...objectIn(bucket, key), sizeBytes: bytes.length }, once(bytes));
}

/** In a race: another put was under way, or had stored an object that could not be seen when this one looked. */
const LOST: ReadonlySet<FailureCode> = new Set<FailureCode>(['conflict', 'object-there-already']);

/** Returns whether of several that put a new key at the same moment one alone succeeds. */
async function tryRace(trial: Trial): Promise<boolean> {
  trial.begin('conditional-put');
  const racer = async (): Promise<'stored' | 'exists'> => {
    try {
      return await putSmall(trial, randomBytes(CANARY_BYTES));
    } catch (error) {
      if (error instanceof S3Failure && LOST.has(error.code)) return 'exists';
      throw error;
    }
  };
  return thenRemoved(trial, async () => {
    // All have ended before the object is removed.
    const ended = await Promise.allSettled(Array.from({ length: RACING_PUTS }, racer));
    for (const put of ended) if (put.status === 'rejected') throw put.reason;
    const stored = ended.filter((put) => put.status === 'fulfilled' && put.value === 'stored').length;
    if (stored === 0) throw new S3Failure('refused', `The bucket refused all of ${RACING_PUTS} puts of a new object`);
    return stored === 1;
  });
}

/** Returns whether a put is refused whose signature names the hash of other bytes. */
async function tryWrongHash(trial: Trial): Promise<boolean> {
  const { bucket, key, begin } = trial;
  const bytes = randomBytes(CANARY_BYTES);
  const wrong = createHash('sha256').update(randomBytes(CANARY_BYTES)).digest('hex');
  const request = (): PutObjectCommand => {
    const command = new PutObjectCommand({
      ...objectAt(bucket, key),
      Body: bytes,
      ContentLength: bytes.length,
      ...checksum(bucket, bytes),
    });
    command.middlewareStack.add(
      (next) => (args) => {
        // The signature takes this header as it is.
        Object.assign(headersIn(args.request), { 'x-amz-content-sha256': wrong });
        return next(args);
      },
      { step: 'build' },
    );
    return command;
  };
  begin('put');
  const isRefused = await repeatable(bucket.sender, 'PutObject', async (client) => {
    try {
      await client.send(request());
      return false;
    } catch (error) {
      const failure = failureOf('PutObject', error);
      // The puts before succeeded, so that another refusal is about the hash too.
      if (failure.code !== 'body-altered' && isPassing(failure)) throw failure;
      return true;
    }
  });
  return isRefused || thenRemoved(trial, async () => false);
}

function headersIn(request: unknown): object {
  const headers = typeof request === 'object' && request !== null && 'headers' in request ? request.headers : null;
  if (typeof headers !== 'object' || headers === null) throw new TypeError('The SDK sends a request without headers');
  return headers;
}

/** Uploads as use does, and reads the border of two parts. */
async function tryInParts(trial: Trial): Promise<void> {
  const { bucket, key, begin } = trial;
  const bytes = randomBytes(PART_BYTES + 1);
  begin('multipart');
  const object = { ...objectIn(bucket, key), sizeBytes: bytes.length };
  if ((await putNew(object, once(bytes), PART_BYTES)) !== 'stored') throw altered('held the new object already');
  await thenRemoved(trial, async () => {
    begin('range');
    const range = { start: PART_BYTES - CANARY_BYTES, end: bytes.length };
    await expectBytes(trial, bytes.subarray(range.start), range);
  });
}

/** Reads up to the first difference, since an answer may have no end. */
async function expectBytes({ bucket, key }: Trial, expected: Buffer, range?: ByteRange): Promise<void> {
  const differs = altered('returned other bytes than were stored');
  let at = 0;
  for await (const chunk of await openRead(objectIn(bucket, key), range)) {
    if (!expected.subarray(at, at + chunk.length).equals(chunk)) throw differs;
    at += chunk.length;
  }
  if (at !== expected.length) throw differs;
}

/** Layers of users are found by their events, so a bucket that may not be listed can be used. */
async function tryListing({ sender, name, prefix }: Bucket): Promise<void> {
  const asked = { Bucket: name, Prefix: prefix, MaxKeys: 1 };
  try {
    // One page: another side that never ends its listing would be asked without end.
    await repeatable(sender, 'ListObjectsV2', (client) => client.send(new ListObjectsV2Command(asked)));
  } catch (error) {
    if (!isDenied(error)) throw error;
  }
}

/** Removes the object, also after a fault, which is the one that is reported. */
async function thenRemoved<Result>({ bucket, key, begin }: Trial, run: () => Promise<Result>): Promise<Result> {
  let result: Result;
  try {
    result = await run();
  } catch (error) {
    await removeQuietly(bucket, key);
    throw error;
  }
  begin('delete');
  await deleteObject(objectIn(bucket, key));
  begin('head');
  if ((await headObject(bucket, key)) === null) return result;
  begin('delete');
  throw altered('keeps the object that was deleted');
}

async function removeQuietly(bucket: Bucket, key: ReturnType<typeof layerKey>): Promise<void> {
  try {
    await deleteObject(objectIn(bucket, key));
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

function faultCode(code: FailureCode): BucketFaultCode {
  switch (code) {
    case 'layer-not-found':
      return 'object-missing';
    // The step says which operation.
    case 'get-denied':
    case 'head-denied':
    case 'put-denied':
    case 'delete-denied':
    case 'list-denied':
      return 'access-denied';
    case 'layer-store-full':
    case 'layer-store-unavailable':
    case 'range-not-satisfiable':
    case 'object-there-already':
    case 'conflict':
    case 'upload-gone':
    case 'upload-conflict':
    case 'body-altered':
    case 'checksum-wanted':
    case 'layer-store-refused':
    case 'unsupported':
    case 'refused':
      return 'failed';
    case 'object-altered':
    case 'multipart-missing':
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

function messageOf(failure: S3Failure, secrets: readonly string[]): string {
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
