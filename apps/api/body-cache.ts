/**
 * Bytes of answers to reads, kept within a bound by the names of everything they are made from.
 *
 * Must stay true: a key names the repository, its revision and all of the request that the bytes depend on, so
 * an entry is never stale and is only ever dropped for room. Equal requests at one time make the bytes once.
 */
import { LRUCache } from 'lru-cache';
import { API_BODIES_CACHE_BYTES_MAX } from '../../core/kernel/limits.ts';
import type { Refusal } from '../../core/kernel/refusal.ts';
import { type Answer, type Headers, JSON_TYPE, notModified } from './http/answer.ts';
import { noneMatchNames } from './http/conditional.ts';

/** An encoded answer: its entity tag, its bytes, and the headers both 200 and 304 carry. */
export interface EncodedBody {
  readonly etag: string;
  readonly headers: Headers;
  readonly bytes: Buffer;
}

/** A body with its own key: it may be of a later revision than was asked for. */
export interface MadeBody {
  readonly key: string;
  readonly body: EncodedBody;
}

type Refused = { readonly refused: Refusal };

export interface BodyCache {
  get(key: string): EncodedBody | undefined;
  set(key: string, body: EncodedBody): void;
  /** The body of that key, made and kept if it is not there. */
  through(key: string, make: () => Promise<MadeBody | Refused>): EncodedBody | Promise<EncodedBody | Refused>;
}

/** What an entry takes beside its bytes and its key, roughly. */
const ENTRY_OVERHEAD_BYTES = 500;

export function createBodyCache(): BodyCache {
  const entries = new LRUCache<string, EncodedBody>({
    maxSize: API_BODIES_CACHE_BYTES_MAX,
    maxEntrySize: API_BODIES_CACHE_BYTES_MAX / 4,
    sizeCalculation: (body, key) => body.bytes.length + key.length + ENTRY_OVERHEAD_BYTES,
  });
  const making = new Map<string, Promise<EncodedBody | Refused>>();
  const keep = async (make: () => Promise<MadeBody | Refused>): Promise<EncodedBody | Refused> => {
    const made = await make();
    if ('refused' in made) return made;
    entries.set(made.key, made.body);
    return made.body;
  };
  return {
    get: (key) => entries.get(key),
    set: (key, body) => {
      entries.set(key, body);
    },
    through(key, make) {
      const known = entries.get(key) ?? making.get(key);
      if (known !== undefined) return known;
      const body = keep(make).finally(() => making.delete(key));
      making.set(key, body);
      return body;
    },
  };
}

/** JSON bytes with a strong tag. Caches may keep them for their user, and ask each time whether they still hold. */
export function encodeJson(json: object, etag: string): EncodedBody {
  const text = JSON.stringify(json);
  // Not of a slab that it would share with others, and keep whole as long as it is kept.
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return { etag, headers: { etag, 'cache-control': 'private, no-cache', 'content-type': JSON_TYPE }, bytes };
}

/** 200 with the bytes, or 304 when the client has them. */
export function conditionalAnswer(body: EncodedBody, ifNoneMatch: string | undefined): Answer {
  if (noneMatchNames(ifNoneMatch, body.etag)) return notModified(body.headers);
  return { status: 200, headers: body.headers, body: { kind: 'bytes', bytes: body.bytes } };
}
