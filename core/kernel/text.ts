/**
 * What the rules ask of a text: how long it is for a person, how it compares without case, and how it is cut.
 *
 * Must stay true: they give the same on every platform and for ever, since stored names were judged by them, and payloads
 * that were sent are made again.
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

const CUT = '…';

/** At most so many UTF-16 code units, at least 1, no character of it in halves; one that was cut ends with `…`. */
export function cutText(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text;
  const end = lengthMax - CUT.length;
  const splits = isHighSurrogate(text.charCodeAt(end - 1));
  return copyOf(text.slice(0, splits ? end - 1 : end)) + CUT;
}

/** Its first UTF-16 code units, half a character as U+FFFD. What is kept of a long text does not keep the rest. */
export function startOfText(text: string, lengthMax: number): string {
  return text.length <= lengthMax ? text : copyOf(text.slice(0, lengthMax));
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

/** Engines keep the whole text in memory for a slice of it. */
function copyOf(slice: string): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(new TextEncoder().encode(slice));
}
