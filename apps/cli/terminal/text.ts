/**
 * Text of the service on a terminal: its width in columns, and what must not reach a terminal.
 *
 * Invariants: no byte of a name, description or message of the service can move the cursor, colour the screen or
 * reorder what is shown.
 */

/** C0 and C1 controls, the marks that change the direction of text, and lone surrogates. */
const UNSHOWABLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\p{Surrogate}/gu;
/** Characters that take two columns: those of East Asia, and pictures. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** Characters that combine with the one before. */
const COMBINED = /^(?:\p{Mark}|\p{Default_Ignorable_Code_Point})+$/u;

/** Returns the text in one line, with a visible mark for each character that a terminal would act on. */
export function showable(text: string): string {
  return text.replaceAll(/[\t\r\n]+/g, ' ').replaceAll(UNSHOWABLE, '\ufffd');
}

/** Returns text of several lines in the same way; line feeds and tabs stay. */
export function showableLines(text: string): string {
  return text
    .split(/\r?\n/)
    .map((line) => line.split('\t').map(showable).join('\t'))
    .join('\n');
}

let segmenter: Intl.Segmenter | null = null;

function charactersOf(text: string): string[] {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

function widthOfCharacter(character: string): number {
  if (COMBINED.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

const PLAIN = /^[\u0020-\u007e]*$/;

/** Returns how many columns a terminal needs for the text. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  return charactersOf(text).reduce((sum, character) => sum + widthOfCharacter(character), 0);
}

/** Cuts the text to at most this many columns; a cut text ends in `…`. */
export function cutTo(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let kept = '';
  let width = 0;
  for (const character of charactersOf(text)) {
    width += widthOfCharacter(character);
    if (width > columns - 1) break;
    kept += character;
  }
  return columns < 1 ? '' : `${kept}…`;
}
