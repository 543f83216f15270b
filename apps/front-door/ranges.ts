/** Byte ranges: RFC 9110, section 14. A request for several ranges gets the whole body. */

export type RequestedRange =
  | { readonly kind: 'whole' }
  /** Bytes `start` to `end`, `end` not included. */
  | { readonly kind: 'part'; readonly start: number; readonly end: number }
  | { readonly kind: 'unsatisfiable' };

const WHOLE: RequestedRange = { kind: 'whole' };

/**
 * Returns the requested range of a body of `sizeBytes`. An If-Range header other than exactly `etag`, like a Range
 * header that cannot be parsed, requests the whole body.
 */
export function requestedRange(
  headers: { readonly range?: string | undefined; readonly 'if-range'?: string | undefined },
  etag: string,
  sizeBytes: number,
): RequestedRange {
  const { range, 'if-range': ifRange } = headers;
  if (range === undefined || (ifRange !== undefined && ifRange.trim() !== etag)) return WHOLE;
  const [, first, last] = /^\s*bytes\s*=\s*(\d{0,15})\s*-\s*(\d{0,15})\s*$/i.exec(range) ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) return WHOLE;
  if (first === '') {
    const length = Math.min(Number(last), sizeBytes);
    return length === 0 ? { kind: 'unsatisfiable' } : { kind: 'part', start: sizeBytes - length, end: sizeBytes };
  }
  const start = Number(first);
  if (last !== '' && Number(last) < start) return WHOLE;
  if (start >= sizeBytes) return { kind: 'unsatisfiable' };
  const end = last === '' ? sizeBytes : Math.min(Number(last) + 1, sizeBytes);
  return { kind: 'part', start, end };
}
