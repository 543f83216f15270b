/** Commits whose ids begin alike, as they do in very large repositories, and wherever somebody made them so. */
import { createHash } from 'node:crypto';

export interface AlikeCommits {
  /** The bytes of the two commits. */
  readonly texts: readonly [string, string];
  /** The digits with which both ids begin. */
  readonly digits: string;
}

/** Makes two commits of a tree whose ids have the same first seven digits: about twenty thousand are tried. */
export function alikeCommits(tree: string): AlikeCommits {
  const seen = new Map<string, string>();
  for (let number = 0; ; number += 1) {
    const text = `tree ${tree}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nNumber ${number}\n`;
    const digits = createHash('sha1').update(`commit ${text.length}\0${text}`).digest('hex').slice(0, 7);
    const other = seen.get(digits);
    if (other !== undefined) return { texts: [other, text], digits };
    seen.set(digits, text);
  }
}
