/**
 * A cache of encoded answers to reads, bounded in bytes.
 *
 * Invariants: a key holds the repository, its revision and every part of the request that the bytes depend on. So
 * an entry is never stale, and is evicted only for room. An entry keeps no more memory than its size says. Concurrent
 * equal requests make the bytes once.
 */
import { LRUCache } from 'lru-cache';
import { MIB } from '../../core/kernel/byte-units.ts';
import type { Digest } from '../../core/kernel/digest.ts';
import type { Refusal } from '../../core/kernel/refusal.ts';
import { countedCache } from '../../core/kernel/shown-caches.ts';
import { noneMatchNames } from '../front-door/conditional.ts';
import { type Answer, type Headers, JSON_TYPE, notModified } from './http/answer.ts';
import { VARYING } from './http/compression.ts';
import { inOwnMemory } from './http/own-memory.ts';

/**
 * The memory for cached JSON answers of the API, by repository and revision. Internal: what is not kept is made again.
 */
const API_BODIES_CACHE_BYTES_MAX = 32 * MIB;

/** An encoded answer: its entity tag, its bytes, and the headers of both 200 and 304. */
export interface EncodedBody {
  readonly etag: string;
  readonly headers: Headers;
  readonly bytes: Buffer;
}

/** A body with its own key, since it may be of a later revision than the one that was requested. */
export interface MadeBody {
  readonly key: string;
  readonly body: EncodedBody;
}

type Refused = { readonly refused: Refusal };

export interface BodyCache {
  get(key: string): EncodedBody | undefined;
  /** Returns the body to send, whose compressed form is kept with it. */
  keep(key: string, body: EncodedBody): EncodedBody;
  /**
   * Returns the body of that key. If the cache does not hold it, makes it and caches it under the key that `make`
   * returns.
   */
  getOrMake(key: string, make: () => Promise<MadeBody | Refused>): EncodedBody | Promise<EncodedBody | Refused>;
  /** What the bodies take. */
  memoryBytes(): number;
}

/** Roughly the memory of an entry beyond its bytes and its key. */
const ENTRY_OVERHEAD_BYTES = 500;

export function createBodyCache(): BodyCache {
  const entries = countedCache(
    'rest_bodies',
    'memory',
    new LRUCache<string, EncodedBody>({
      maxSize: API_BODIES_CACHE_BYTES_MAX,
      maxEntrySize: API_BODIES_CACHE_BYTES_MAX / 4,
      sizeCalculation: (body, key) => memoryBytes(body) + key.length + ENTRY_OVERHEAD_BYTES,
    }),
  );
  const keep = (key: string, body: EncodedBody): EncodedBody => {
    const kept = { ...body, bytes: inOwnMemory(body.bytes) };
    entries.set(key, kept);
    return kept;
  };
  const inProgress = new Map<string, Promise<EncodedBody | Refused>>();
  const makeAndCache = async (make: () => Promise<MadeBody | Refused>): Promise<EncodedBody | Refused> => {
    const made = await make();
    if ('refused' in made) return made;
    return keep(made.key, made.body);
  };
  return {
    get: (key) => entries.get(key),
    keep,
    getOrMake(key, make) {
      const known = entries.get(key) ?? inProgress.get(key);
      if (known !== undefined) return known;
      const body = makeAndCache(make).finally(() => inProgress.delete(key));
      inProgress.set(key, body);
      return body;
    },
    memoryBytes: () => entries.sizeTaken,
  };
}

/** With the compressed form of JSON, which is hardly ever longer. */
function memoryBytes({ headers, bytes }: EncodedBody): number {
  return headers['content-type'] === JSON_TYPE ? 2 * bytes.length : bytes.length;
}

/** Encodes JSON with a strong entity tag. Private caches may store it, and must revalidate it at every use. */
export function encodeJson(json: object, etag: string): EncodedBody {
  return encodedBody([JSON.stringify(json)], etag);
}

/** Encodes like `encodeJson`, from the JSON's text in parts. */
export function encodedBody(parts: readonly string[], etag: string): EncodedBody {
  // Not from Node's shared pool: a cached part would keep its whole slab in memory.
  const bytes = Buffer.allocUnsafeSlow(parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0));
  let at = 0;
  for (const part of parts) at += bytes.write(part, at);
  const headers = { etag, 'cache-control': 'private, no-cache', 'content-type': JSON_TYPE, vary: VARYING };
  return { etag, headers, bytes };
}

/** Encodes JSON of which no revision or id tells whether it changed: another time may find more. */
export function encodeFound(digest: Pick<Digest, 'sha256'>, json: object, form: string): EncodedBody {
  const text = JSON.stringify(json);
  return encodedBody([text], `"${digest.sha256(text).slice(0, 32)}-${form}"`);
}

/** Answers 200 with the bytes, or 304 if the client has them already. */
export function conditionalAnswer(body: EncodedBody, ifNoneMatch: string | undefined): Answer {
  if (noneMatchNames(ifNoneMatch, body.etag)) return notModified(body.headers);
  return { status: 200, headers: body.headers, body: { kind: 'bytes', bytes: body.bytes } };
}
