/**
 * Requests for refs that were parsed before: whoever polls sends the same bytes each time, and finding these costs a
 * tenth of parsing them.
 *
 * Invariants: what is found is what the parser makes of the same bytes. Only a valid ls-refs is kept, which says
 * nothing of who asks. Memory is bounded.
 */
import { LRUCache } from 'lru-cache';
import {
  parseUploadPackRequest,
  type UploadPackRefusal,
  type UploadPackRequest,
} from '../../core/git/wire/upload-pack-request.ts';
import { MIB } from '../../core/kernel/byte-units.ts';
import type { MaybePromise } from '../../core/kernel/maybe-promise.ts';
import { countedCache } from '../../core/kernel/shown-caches.ts';
import type { NextTurn } from '../../core/kernel/turns.ts';

/**
 * The memory for parsed requests of ls-refs, and the longest that is kept: git sends some 200 bytes. Internal: what is
 * not kept is parsed again.
 */
export const POLLED_REQUESTS_BYTES_MAX = 2 * MIB;
export const POLLED_REQUEST_BYTES_MAX = 4 * 1_024;

type LsRefs = Extract<UploadPackRequest, { readonly kind: 'ls-refs' }>;

export interface PolledRequests {
  /** Parses like `parseUploadPackRequest`. */
  parse(body: Buffer, version: 0 | 1 | 2, nextTurn: NextTurn): MaybePromise<UploadPackRequest | UploadPackRefusal>;
}

/** A request takes some times its bytes: each prefix is a text of its own. */
const MEMORY_FACTOR = 8;
const ENTRY_BYTES = 500;

export function createPolledRequests(): PolledRequests {
  const known = countedCache(
    'ref_requests',
    'memory',
    new LRUCache<string, LsRefs>({
      maxSize: POLLED_REQUESTS_BYTES_MAX,
      sizeCalculation: (_request, body) => ENTRY_BYTES + MEMORY_FACTOR * body.length,
    }),
  );
  const parseAnew = async (body: Buffer, key: string, nextTurn: NextTurn) => {
    const parsed = await parseUploadPackRequest(body, 2, nextTurn);
    if ('kind' in parsed && parsed.kind === 'ls-refs') known.set(key, parsed);
    return parsed;
  };
  return {
    parse(body, version, nextTurn) {
      // Only version 2 has ls-refs.
      if (version !== 2 || body.length > POLLED_REQUEST_BYTES_MAX) {
        return parseUploadPackRequest(body, version, nextTurn);
      }
      const key = body.toString('latin1');
      return known.get(key) ?? parseAnew(body, key, nextTurn);
    },
  };
}
