/**
 * The secret of an access token in a request's Authorization header.
 *
 * Invariants: one secret is read of a request. REST takes only Bearer. Git takes it wherever the clients of other
 * services put one: as the Basic password, as the Basic username beside any password, or as Bearer.
 */

import { SECRET_START } from '../../core/access-token/secret.ts';

/**
 * The token of `Authorization: Bearer <token>` (RFC 6750, section 2.1; the scheme in any case); null for any other
 * form.
 */
export function bearerToken(authorization: string | undefined): string | null {
  if (authorization === undefined) return null;
  const [, token] = /^bearer +([^\s]{1,256}) *$/i.exec(authorization) ?? [];
  return token ?? null;
}

/**
 * The token that a Git client sends: the password of HTTP Basic credentials (RFC 7617), their username if only that has
 * the start of a token, or the token of Bearer. Null when there is none.
 */
export function gitToken(authorization: string | undefined): string | null {
  if (authorization === undefined) return null;
  const [, encoded] = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(authorization) ?? [];
  if (encoded === undefined) return bearerToken(authorization);
  const decoded = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = decoded.indexOf(':');
  if (colon === -1) return null;
  const [username, password] = [decoded.slice(0, colon), decoded.slice(colon + 1)];
  return !password.startsWith(SECRET_START) && username.startsWith(SECRET_START) ? username : password;
}
