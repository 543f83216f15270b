/** Entity tags: RFC 9110, sections 8.8.3 and 13.1.2. */

/** Whether an If-None-Match header matches the tag by the weak comparison; the answer is then 304. */
export function noneMatchNames(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  if (header === etag) return true;
  if (header.trim() === '*') return true;
  const opaque = etag.replace(/^W\//, '');
  for (const [tag] of header.matchAll(/(?:W\/)?"[^"]*"/g)) {
    if (tag.replace(/^W\//, '') === opaque) return true;
  }
  return false;
}
