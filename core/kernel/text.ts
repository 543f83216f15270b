/**
 * What the rules ask of a text: how long it is for a person, and how it compares without case.
 *
 * Must stay true: both give the same on every platform and for ever, since stored names were judged by them.
 */

/** The text's length in Unicode code points. */
export function codePointCount(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** A to Z in lower case and nothing else changed: Unicode's own folding makes a `k` of the Kelvin sign. */
export function asciiLowerCase(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
