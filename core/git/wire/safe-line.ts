/**
 * Text that a client displays: what it holds may come from another client, or from a repository.
 *
 * Invariants: nothing that a terminal interprets passes.
 */

/**
 * Returns a text as one line without anything that a terminal interprets. Control characters of ASCII and Latin-1, line
 * and paragraph separators, and the marks that change the writing direction become spaces.
 */
export function oneSafeLine(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu, ' ')
    .trim();
}

/** Returns the start of a client's own text, to quote it in a message to that client. */
export function excerpt(text: string): string {
  return oneSafeLine(text.slice(0, 100));
}
