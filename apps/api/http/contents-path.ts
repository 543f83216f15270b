/**
 * Parses a path in a request into bytes, from the target as the client sent it.
 *
 * Invariants: escapes are decoded exactly once, to bytes, since file names need not be UTF-8. `%2F` separates
 * names as `/` does, which is safe since no name in a tree holds a slash.
 */
import type { ContentsPath } from '../../../core/use-cases/reading/entry-at-path.ts';
import { pathOf, queryOf } from '../../front-door/request-target.ts';

const SLASH = 0x2f;
/** `/v1/repos/{username}/{name}/contents` has five segments, and an empty one before its first slash. */
const SEGMENTS_BEFORE = 6;

/** Returns null for a path that no tree can hold: malformed escapes, empty names, `.`, `..`, NUL. */
export function parseContentsPath(target: string): ContentsPath | null {
  const segments = pathOf(target).split('/').slice(SEGMENTS_BEFORE);
  const bytes = decodeBytes(segments.join('/'));
  return bytes === null ? null : bytesPath(bytes);
}

/**
 * The same for a parameter of the query, which the request has once. As in every query a plus is a space, and a percent
 * sign without two digits is itself.
 */
export function parseQueryPath(target: string, parameter: string): ContentsPath | null {
  const pair = queryOf(target)
    .split('&')
    .find((candidate) => new URLSearchParams(candidate).has(parameter));
  const value = pair?.slice(pair.indexOf('=') + 1) ?? '';
  const bytes = decodeBytes(value.replaceAll('+', ' ').replaceAll(/%(?![0-9a-f]{2})/gi, '%25'));
  return bytes === null ? null : bytesPath(bytes);
}

function bytesPath(bytes: Buffer): ContentsPath | null {
  if (bytes.length === 0) return { names: [], folder: true };
  const folder = bytes.at(-1) === SLASH;
  const names = split(folder ? bytes.subarray(0, -1) : bytes);
  return names.every(isName) ? { names, folder } : null;
}

/** Node decodes the bytes of a target as latin1, so each code unit is one byte. */
function decodeBytes(text: string): Buffer | null {
  const bytes = Buffer.alloc(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] !== '%') {
      const unit = text.charCodeAt(at);
      if (unit > 0xff) return null;
      bytes[length++] = unit;
      continue;
    }
    const digits = text.slice(at + 1, at + 3);
    if (!/^[0-9a-f]{2}$/i.test(digits)) return null;
    bytes[length++] = Number.parseInt(digits, 16);
    at += 2;
  }
  return bytes.subarray(0, length);
}

function split(bytes: Buffer): readonly Buffer[] {
  const names: Buffer[] = [];
  let start = 0;
  for (let slash = bytes.indexOf(SLASH); slash !== -1; slash = bytes.indexOf(SLASH, start)) {
    names.push(bytes.subarray(start, slash));
    start = slash + 1;
  }
  names.push(bytes.subarray(start));
  return names;
}

function isName(name: Buffer): boolean {
  if (name.length === 0 || name.includes(0)) return false;
  const text = name.toString('latin1');
  return text !== '.' && text !== '..';
}
