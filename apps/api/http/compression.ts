/**
 * Compresses JSON for clients that accept gzip (RFC 9110, section 12.5.3).
 *
 * Invariants: a body that is sent again and again, as those of apps/api/body-cache.ts, is compressed once; what is kept
 * of it goes with the body and takes no more memory than its bytes. Only zlib's threads compress, never the event loop.
 * The entity tag of a compressed answer is weak, since its bytes are others than those of the same answer without
 * compression.
 */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { KIB } from '../../../core/kernel/byte-units.ts';
import { acceptedCoding } from '../../front-door/accepted-coding.ts';
import { type Answer, type Headers, JSON_TYPE } from './answer.ts';
import { inOwnMemory } from './own-memory.ts';

/** Shorter JSON is sent as it is. */
export const COMPRESSED_ANSWER_BYTES_MIN = KIB;

const compress = promisify(gzip);
const compressed = new WeakMap<Buffer, Promise<Buffer>>();
/** Sixty percent of the time of the default level, for two percent more bytes. */
const LEVEL = 4;

/** Returns the answer compressed, if it is JSON of some length and the client accepts gzip. */
export function compressedAnswer(answer: Answer, acceptEncoding: string | undefined): Answer | Promise<Answer> {
  const isCompressed = acceptedCoding(acceptEncoding, 'gzip') > 0;
  if (answer.body.kind === 'json') return isCompressed ? compressedJson(answer, answer.body.json) : answer;
  if (answer.headers['content-type'] !== JSON_TYPE) return answer;
  const headers = varying(answer.headers);
  const { body } = answer;
  if (!isCompressed || body.kind !== 'bytes' || body.bytes.length < COMPRESSED_ANSWER_BYTES_MIN) {
    return headers === answer.headers ? answer : { ...answer, headers };
  }
  return compressedBytes({ ...answer, headers }, body.bytes);
}

/** What answers that may be compressed vary by, at the end of the list. */
export const VARYING = 'accept-encoding';
const GZIP = { 'content-encoding': 'gzip' };

async function compressedJson(answer: Answer, json: object): Promise<Answer> {
  const text = JSON.stringify(json);
  if (text.length < COMPRESSED_ANSWER_BYTES_MIN) return answer;
  const bytes = await compress(text, { level: LEVEL });
  return {
    ...answer,
    headers: { ...answer.headers, 'content-type': JSON_TYPE, ...GZIP },
    body: { kind: 'bytes', bytes },
  };
}

async function compressedBytes(answer: Answer, plain: Buffer): Promise<Answer> {
  const bytes = await compressOnce(plain);
  return { ...answer, headers: { ...weakened(answer.headers, bytes), ...GZIP }, body: { kind: 'bytes', bytes } };
}

function compressOnce(bytes: Buffer): Promise<Buffer> {
  const known = compressed.get(bytes);
  if (known !== undefined) return known;
  const made = compressToKeep(bytes);
  compressed.set(bytes, made);
  return made;
}

async function compressToKeep(plain: Buffer): Promise<Buffer> {
  return inOwnMemory(await compress(plain, { level: LEVEL }));
}

/**
 * A cache must not give one client the form that it keeps for another. The headers of a body that is kept say so
 * already (`VARYING`).
 */
function varying(headers: Headers): Headers {
  const { vary } = headers;
  if (vary?.endsWith(VARYING) === true) return headers;
  return { ...headers, vary: vary === undefined ? VARYING : `${vary}, ${VARYING}` };
}

function weakened(headers: Headers, bytes: Buffer): Headers {
  const { etag, 'content-length': length, ...others } = headers;
  const tag = etag === undefined ? {} : { etag: `W/${etag}` };
  return { ...others, ...tag, ...(length === undefined ? {} : { 'content-length': String(bytes.length) }) };
}
