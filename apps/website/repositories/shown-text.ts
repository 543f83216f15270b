/**
 * Texts of a repository as pages show them: names of files and refs, and messages of commits.
 *
 * Invariants: no character reorders or hides what is beside it. Long texts are cut, because a name may have 4,096
 * bytes and a message a million.
 */
import type { FileText } from '../../../core/git/file-text.ts';
import { decodeUtf8Lossy } from '../../../core/git/utf8.ts';
import { cutText } from '../../../core/kernel/text.ts';
import { markInvisible } from '../rendering/invisible.ts';

/** UTF-16 code units of a name, and of the first line of a message; longer ones are cut. */
export const NAME_LENGTH_MAX = 200;
export const SUBJECT_LENGTH_MAX = 120;

export function shownName(name: Uint8Array | string): string {
  // A character has at most four bytes.
  const text = typeof name === 'string' ? name : decodeUtf8Lossy(name.subarray(0, 4 * (NAME_LENGTH_MAX + 1)));
  return cutText(markInvisible(text).replaceAll(/[\n\t]/g, '␤'), NAME_LENGTH_MAX);
}

/** Returns a path for a title. */
export function pathText(names: readonly Uint8Array[]): string {
  return names.length === 0 ? 'Files' : shownName(names.map(decodeUtf8Lossy).join('/'));
}

/** Returns the first line of a message. */
export function subjectOf(message: string): string {
  const [line = ''] = message.trimStart().split('\n', 1);
  // Without the carriage return of a message written on Windows.
  const subject = markInvisible(line.trim());
  return subject === '' ? '(no message)' : cutText(subject, SUBJECT_LENGTH_MAX);
}

/** Returns what follows the first line; empty if nothing does. */
export function bodyOf(message: string): string {
  const text = markInvisible(message).trim();
  const end = text.indexOf('\n');
  const first = end === -1 ? text : text.slice(0, end);
  const rest = end === -1 ? '' : text.slice(end + 1).trim();
  return first.length > SUBJECT_LENGTH_MAX ? text : rest;
}

export function shortId(id: string): string {
  return id.slice(0, 7);
}

/** Returns `1 line` or `1,284 lines`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`;
}

/** Says of a text that is not UTF-8 how it was decoded. */
export function encodingFacts({ encoding }: Pick<FileText, 'encoding'>): readonly string[] {
  if (encoding === 'UTF-8') return [];
  return [encoding === 'Windows-1252' ? `not UTF-8, shown as ${encoding} by a guess` : encoding];
}
