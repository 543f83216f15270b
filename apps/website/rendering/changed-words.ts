/**
 * The colours of the lines of a diff, and the words that changed within lines.
 *
 * Invariants: the runs cover the lines as they are, in their order. The work for a pair of lines is bounded: where two
 * are too long, what differs in their middle is marked as a whole.
 */
import { canColour, colourRuns } from './code.ts';
import { changed, createRunList, lengthOfRun, type RunList, type Runs, styleOfRun } from './runs.ts';

/** The lines of one file, one behind the other, each with its line feed. */
export interface ChangedText {
  readonly text: string;
  /** For each line ` ` for one of both sides, `-` for one of the old, and `+` for one of the new. */
  readonly marks: string;
  /** Null: without colours. */
  readonly language: string | null;
}

/** Returns the runs of all lines of all files. */
export function changedRuns(files: readonly ChangedText[]): Runs {
  const list = createRunList();
  for (const file of files) addFile(list, file);
  return list.runs();
}

type Words = readonly (readonly [start: number, end: number])[];

function addFile(list: RunList, { text, marks, language }: ChangedText): void {
  const lines = text.split('\n').slice(0, marks.length);
  const words = changedWords(lines, marks);
  const name = language !== null && canColour(language) ? language : null;
  const styles = { '-': sideStyles(lines, marks, '-', name), '+': sideStyles(lines, marks, '+', name) };
  for (const [index, line] of lines.entries()) {
    const own = styles[marks[index] === '-' ? '-' : '+'].get(index) ?? [[line.length, 0]];
    addLine(list, own, words.get(index) ?? []);
    list.add(1, 0);
  }
}

type Styled = readonly (readonly [length: number, style: number])[];

/** Colours one side as a text of its own. */
function sideStyles(
  lines: readonly string[],
  marks: string,
  side: '-' | '+',
  language: string | null,
): ReadonlyMap<number, Styled> {
  const found = new Map<number, Styled>();
  if (language === null) return found;
  const indexes = lines
    .keys()
    .filter((index) => marks[index] === side || marks[index] === ' ')
    .toArray();
  const runs = colourRuns(indexes.map((index) => `${lines[index]}\n`).join(''), language);
  let [at, left] = [0, lengthOfRun(runs[0] ?? 0)];
  const take = (length: number): Styled => {
    const taken: (readonly [number, number])[] = [];
    for (let wanted = length; wanted > 0; ) {
      const run = runs[at];
      if (run === undefined) break;
      const part = Math.min(wanted, left);
      if (part > 0) taken.push([part, styleOfRun(run)]);
      wanted -= part;
      left -= part;
      if (left > 0) continue;
      at += 1;
      left = lengthOfRun(runs[at] ?? 0);
    }
    return taken;
  };
  for (const index of indexes) {
    found.set(index, take(lines[index]?.length ?? 0));
    take(1);
  }
  return found;
}

/** Adds a line, with the words that changed in it. */
function addLine(list: RunList, styled: Styled, words: Words): void {
  let start = 0;
  let next = 0;
  for (const [length, style] of styled) {
    const end = start + length;
    while (start < end) {
      const [from, to] = words[next] ?? [end, end];
      if (to <= start && next < words.length) {
        next += 1;
        continue;
      }
      const isWord = from <= start;
      const upTo = Math.min(end, isWord ? to : from);
      list.add(upTo - start, isWord ? changed(style) : style);
      start = upTo;
    }
  }
}

/** Pairs the lines that were deleted with those that were added in their place, and compares their words. */
function changedWords(lines: readonly string[], marks: string): ReadonlyMap<number, Words> {
  const found = new Map<number, Words>();
  for (const { 0: group, 1: deleted = '', index } of marks.matchAll(/(-+)\++/g)) {
    const pairs = Math.min(deleted.length, group.length - deleted.length);
    for (let pair = 0; pair < pairs; pair += 1) {
      const [old, now] = [index + pair, index + deleted.length + pair];
      const words = compareWords(lines[old] ?? '', lines[now] ?? '');
      if (words === null) continue;
      found.set(old, words.old);
      found.set(now, words.now);
    }
  }
  return found;
}

const WORDS = /[\p{L}\p{M}\p{N}_]+|\s+|[^]/gu;
/** Words of one line times those of the other: the work for a pair. Internal: beyond it all that differs is marked. */
const COMPARED_MAX = 40_000;
/**
 * Lines with less in common have changed as a whole, and have no words marked. Internal: it is how a diff reads, and
 * bounds nothing.
 */
const COMMON_MIN = 0.3;

function wordsOf(line: string): readonly string[] {
  return line.match(WORDS) ?? [];
}

/** Returns what changed in each of the two lines; null if they have too little in common. */
export function compareWords(old: string, now: string): { readonly old: Words; readonly now: Words } | null {
  const [a, b] = [wordsOf(old), wordsOf(now)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  const most = Math.min(a.length, b.length) - start;
  while (end < most && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middle = [a.slice(start, a.length - end), b.slice(start, b.length - end)] as const;
  const kept = commonOf(...middle);
  const lengthOf = (words: readonly string[]): number => words.reduce((sum, { length }) => sum + length, 0);
  const common = lengthOf(
    a.filter((word, index) => word.trim() !== '' && isKept(index, a.length, start, end, kept[0])),
  );
  const longer = Math.max(old.replaceAll(/\s/g, '').length, now.replaceAll(/\s/g, '').length);
  if (common < COMMON_MIN * longer || longer === 0) return null;
  return {
    old: rangesOf(a, (index) => isKept(index, a.length, start, end, kept[0])),
    now: rangesOf(b, (index) => isKept(index, b.length, start, end, kept[1])),
  };
}

function isKept(index: number, length: number, start: number, end: number, middle: ReadonlySet<number>): boolean {
  return index < start || index >= length - end || middle.has(index - start);
}

/** Returns the places of the words of a longest common sequence, in both. */
function commonOf(a: readonly string[], b: readonly string[]): readonly [ReadonlySet<number>, ReadonlySet<number>] {
  const [ofA, ofB] = [new Set<number>(), new Set<number>()];
  if (a.length * b.length > COMPARED_MAX) return [ofA, ofB];
  const width = b.length + 1;
  /** The length of the longest sequence of what follows each pair of places. */
  const lengths = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const [right = 0, below = 0, both = 0] = [
        lengths[i * width + j + 1],
        lengths[(i + 1) * width + j],
        lengths[(i + 1) * width + j + 1],
      ];
      lengths[i * width + j] = a[i] === b[j] ? both + 1 : Math.max(right, below);
    }
  }
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      ofA.add(i);
      ofB.add(j);
      i += 1;
      j += 1;
    } else if ((lengths[(i + 1) * width + j] ?? 0) >= (lengths[i * width + j + 1] ?? 0)) i += 1;
    else j += 1;
  }
  return [ofA, ofB];
}

/** Joins what was not kept into ranges of characters. */
function rangesOf(words: readonly string[], isCommon: (index: number) => boolean): Words {
  const ranges: [number, number][] = [];
  let at = 0;
  for (const [index, word] of words.entries()) {
    const end = at + word.length;
    const last = ranges.at(-1);
    if (!isCommon(index)) {
      if (last?.[1] === at) last[1] = end;
      else ranges.push([at, end]);
    }
    at = end;
  }
  return ranges;
}
