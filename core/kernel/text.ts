/**
 * Texts in the domain's rules: their length as a person counts it, their lower case, and how they are cut.
 *
 * Invariants: these functions return the same on every platform and in every version, because stored names were checked
 * with them, and payloads that were sent are built again from the events.
 */

/** Returns the text's length in Unicode code points. */
export function codePointCount(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Changes A to Z to lower case, and nothing else: Unicode's own case folding turns the Kelvin sign into a `k`. */
export function asciiLowerCase(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

const CUT = '…';

/**
 * Returns the text, cut to at most `lengthMax` UTF-16 code units (1 or more) without splitting a character. A cut text
 * ends with `…`.
 */
export function cutText(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text;
  const end = lengthMax - CUT.length;
  const splits = isHighSurrogate(text.charCodeAt(end - 1));
  return copyOf(text.slice(0, splits ? end - 1 : end)) + CUT;
}

/** Returns the first `lengthMax` UTF-16 code units; a split character becomes U+FFFD. Frees the memory of the rest. */
export function startOfText(text: string, lengthMax: number): string {
  return text.length <= lengthMax ? text : copyOf(text.slice(0, lengthMax));
}

/** Returns the text, cut to at most `countMax` Unicode code points (1 or more). A cut text ends with `…`. */
export function cutCharacters(text: string, countMax: number): string {
  if (text.length <= countMax) return text;
  let [end, count] = [0, 0];
  for (const character of text) {
    count += 1;
    if (count > countMax) return copyOf(text.slice(0, end)) + CUT;
    if (count < countMax) end += character.length;
  }
  return text;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

/** Copies a slice, because JavaScript engines keep the whole text in memory as long as a slice of it lives. */
function copyOf(slice: string): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(new TextEncoder().encode(slice));
}

/** Adds a line feed unless the last character is one. */
export function withLineEnd(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}
