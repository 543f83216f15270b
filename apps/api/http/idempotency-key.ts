/** The request header `Idempotency-Key`: a text of the client's choice, as a string of RFC 9651 or bare. */
import type { IncomingHttpHeaders } from 'node:http';

/** Characters of a key, which is a UUID for most clients. */
export const IDEMPOTENCY_KEY_LENGTH_MAX = 255;

const QUOTED = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/;
const BARE = /^[!#-~][ -~]*$/;

/** Returns the key, null if there is none. No request comes here that has the header twice (request-form.ts). */
export function readIdempotencyKey(headers: IncomingHttpHeaders): { readonly key: string | null } | 'malformed' {
  const text = headers['idempotency-key'];
  if (typeof text !== 'string') return { key: null };
  const key = QUOTED.exec(text)?.[1]?.replaceAll(/\\(.)/g, '$1') ?? BARE.exec(text)?.[0] ?? '';
  return key.length > 0 && key.length <= IDEMPOTENCY_KEY_LENGTH_MAX ? { key } : 'malformed';
}
