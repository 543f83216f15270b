/**
 * The colours of a text: runs of characters of one style, in the order of the text.
 *
 * Invariants: the runs cover the text from its first character without a gap; what they leave out at the end is plain.
 * A list of runs is far smaller than the markup that it makes, which is made while a page is sent (line-markup.ts).
 */

/** The classes of the stylesheet. A run has the place of its class in this list; 0 is plain. */
const CLASS_NAMES = ['', 'com', 'key', 'num', 'str', 'def', 'typ', 'att', 'met', 'plus', 'minus', 'strong', 'em'];
/** Room for the classes above. Internal: they are fewer. */
const CLASSES_MAX = 16;
/** A run of a word that changed. */
const WORD = CLASSES_MAX;
const STYLES = 2 * CLASSES_MAX;

/** Each is a length in UTF-16 code units and a style. */
export type Runs = Uint32Array<ArrayBuffer>;

export function lengthOfRun(run: number): number {
  return Math.floor(run / STYLES);
}

/** Returns 0 for a plain run. */
export function styleOfRun(run: number): number {
  return run % STYLES;
}

/** Returns the style of a class; that of plain text for a class that has no colour. */
export function styleOfClass(name: string): number {
  return Math.max(0, CLASS_NAMES.indexOf(name));
}

/** Returns the style of a changed word where the text has this style. */
export function changed(style: number): number {
  return (style % CLASSES_MAX) + WORD;
}

/** Returns what an element of the style has as its class. */
export function classOf(style: number): string {
  const name = CLASS_NAMES[style % CLASSES_MAX] ?? '';
  if (style < WORD) return name;
  return name === '' ? 'word' : `word ${name}`;
}

export interface RunList {
  /** Adds characters; joins them to the last run if their style is the same. */
  add(length: number, style: number): void;
  runs(): Runs;
}

export function createRunList(): RunList {
  const lengths: number[] = [];
  const styles: number[] = [];
  return {
    add(length, style) {
      if (length === 0) return;
      const last = styles.length - 1;
      if (styles[last] === style) lengths[last] = (lengths[last] ?? 0) + length;
      else {
        lengths.push(length);
        styles.push(style);
      }
    },
    runs: () => Uint32Array.from(lengths, (length, index) => length * STYLES + (styles[index] ?? 0)),
  };
}
