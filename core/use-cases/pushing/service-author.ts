import { commitSeconds } from '../../git/commit-time.ts';
import type { Signature } from '../../git/objects.ts';
import type { Timestamp } from '../../kernel/ids.ts';

/** Who a commit is by that names nobody. No address of a person enters a commit that they did not write. */
export function serviceAuthor(username: string, host: string): { readonly name: string; readonly email: string } {
  return { name: username, email: `${username}@users.noreply.${host}` };
}

/** The same as what a commit or a tag holds of it, at this moment. */
export function serviceSignature(username: string, host: string, now: Timestamp): Signature {
  return { ...serviceAuthor(username, host), seconds: commitSeconds(now), offsetMinutes: 0 };
}
