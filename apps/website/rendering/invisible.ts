/**
 * Shows the characters that hide or reorder what a reader sees: controls, and the marks of writing direction.
 *
 * Invariants: a name, a message or a line of code reads on the page in the order of its characters, so that what a
 * person reviews is what a compiler reads. Links keep the exact bytes.
 */

/** Controls but tab and line feed, embeddings, overrides and isolates of direction, and the marks LRM, RLM and ALM. */
const INVISIBLE = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** The bytes of a code point in brackets. */
export const INVISIBLE_BYTES = Buffer.byteLength('⟨U+0000⟩');

/** Returns whether a UTF-16 code unit is shown by its code point, unless it is the carriage return of a line end. */
export function isInvisible(code: number): boolean {
  if (code < 0x80) return code < 0x20 ? code !== 0x09 && code !== 0x0a : code === 0x7f;
  if (code < 0xa0) return true;
  if (code === 0x061c || code === 0xfeff) return true;
  if (code < 0x200e || code > 0x2069) return false;
  return code <= 0x200f || (code >= 0x2028 && code <= 0x202e) || code >= 0x2066;
}

/**
 * Replaces each such character by its code point in brackets, such as `⟨U+202E⟩`. A carriage return at a line's end
 * goes.
 */
export function markInvisible(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replace(INVISIBLE, (character) => `⟨U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
}
