/**
 * The two forms of the subjects of GitHub's jobs: with names alone, and with an id behind each name, which repositories
 * have that were made, renamed or transferred since the middle of 2026.
 *
 * Invariants: this explains refusals to the owner of a rule, and lets nothing in. Names may end in digits, so that a
 * subject of the first form can look like one of the second.
 */
import { matches } from './conditions.ts';

/** GitHub has published both delimiters: "-" in its announcement, "@" in its documentation. */
const WITH_IDS = /^repo:([^/:]+)[@-]\d+\/([^/:]+)[@-]\d+(:.*)?$/;

/** Returns true if the rule's subject and the token's would match without the ids, which only one of them has. */
export function differsByIdsAlone(pattern: string, subject: string): boolean {
  const [asked, given] = [withoutIds(pattern), withoutIds(subject)];
  if (asked === null && given === null) return false;
  return matches(asked ?? pattern, subject) || matches(pattern, given ?? subject);
}

function withoutIds(subject: string): string | null {
  const [, owner, name, rest = ''] = WITH_IDS.exec(subject) ?? [];
  return owner === undefined || name === undefined ? null : `repo:${owner}/${name}${rest}`;
}
