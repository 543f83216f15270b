/**
 * The secret of an access token in a request's Authorization header.
 *
 * Must stay true: REST takes only Bearer and Git only Basic, so that no credential is read in a form its sender did
 * not mean.
 */

/**
 * The token of `Authorization: Bearer <token>` (RFC 6750, section 2.1; the scheme in any case); null for any other
 * form.
 */
export function bearerToken(authorization: string | undefined): string | null {
  if (authorization === undefined) return null;
  const [, token] = /^bearer +([^\s]{1,256}) *$/i.exec(authorization) ?? [];
  return token ?? null;
}

/** The password of HTTP Basic credentials (RFC 7617), which is the access token; null when there are none. */
export function basicPassword(authorization: string | undefined): string | null {
  if (authorization === undefined) return null;
  const [, encoded] = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(authorization) ?? [];
  if (encoded === undefined) return null;
  const decoded = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = decoded.indexOf(':');
  return colon === -1 ? null : decoded.slice(colon + 1);
}
