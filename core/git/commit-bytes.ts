/** Commits as Git stores them (git-commit-tree(1)). Texts are UTF-8, and stand as they are given. */
import type { Commit, Signature } from './objects.ts';
import { encodeUtf8 } from './utf8.ts';

/** Names and addresses hold no `<`, `>`, line feed or NUL, and the message no NUL. */
export function commitBytes({ tree, parents, author, committer, message }: Omit<Commit, 'id'>): Uint8Array {
  const lines = [
    `tree ${tree}`,
    ...parents.map((parent) => `parent ${parent}`),
    `author ${signatureLine(author)}`,
    `committer ${signatureLine(committer)}`,
  ];
  return encodeUtf8(`${lines.join('\n')}\n\n${message}`);
}

/** Returns what stands behind `author`, `committer` and `tagger`. */
export function signatureLine({ name, email, seconds, offsetMinutes }: Signature): string {
  const minutes = Math.abs(offsetMinutes);
  const digits = String(100 * Math.floor(minutes / 60) + (minutes % 60)).padStart(4, '0');
  return `${name} <${email}> ${seconds} ${offsetMinutes < 0 ? '-' : '+'}${digits}`;
}

/** Returns what readers get of a signature that is stored: no white space at the ends of its texts. */
export function readSignature(signature: Signature): Signature {
  return { ...signature, name: signature.name.trim(), email: signature.email.trim() };
}
