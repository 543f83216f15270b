/**
 * A generated long history: many small commits over many files, a merge in every fifty.
 *
 * Invariants: a seed makes the same bytes in every run. Few files take most changes, some none after the first
 * commit: that is what makes it dear to find the commit that last touched each.
 */
import { Readable } from 'node:stream';
import { createDice, type Dice } from '../support/seeded.ts';

export interface LongHistory {
  readonly commits: number;
  readonly files: number;
}

const FIRST_COMMIT_SECONDS = 1_500_000_000;
const ROOT_FILES = 20;
/** Files that no later commit changes. */
const UNTOUCHED = 5;
/** The share of the files that takes four of five changes. */
const BUSY = 0.1;
const MERGE_EVERY = 50;

/** A fast-import stream (git-fast-import(1)) of the branch `main`. */
export function createLongHistory(history: LongHistory): Readable {
  return Readable.from(generate(history));
}

/** The path of a file; the first ones are in the root. */
function pathOf(file: number): string {
  return file < ROOT_FILES ? `file-${file}.md` : `dir-${file % 20}/sub-${file % 97}/part-${file}.js`;
}

function* generate({ commits, files }: LongHistory): Generator<string> {
  const dice = createDice(42);
  for (let commit = 1; commit <= commits; commit += 1) {
    const changed =
      commit === 1
        ? Array.from({ length: files }, (_, file) => file)
        : Array.from({ length: 1 + dice.below(4) }, () => pick(dice, files)).filter((file) => file >= UNTOUCHED);
    const changes = changed.map((file) => {
      const text = `version of ${file} in ${commit}\n${'x'.repeat(dice.below(60))}\n`;
      return `M 100644 inline ${pathOf(file)}\ndata ${text.length}\n${text}\n`;
    });
    const who = `Bench <bench@example.org> ${FIRST_COMMIT_SECONDS + commit * 3_600} +0000`;
    const message = `Change ${commit}`;
    yield `commit refs/heads/main\nmark :${commit}\ncommitter ${who}\ndata ${message.length}\n${message}\n${parentsOf(
      commit,
    )}${changes.join('')}\n`;
  }
  yield 'done\n';
}

function pick(dice: Dice, files: number): number {
  return dice.chance(0.8) ? dice.below(Math.ceil(files * BUSY)) : dice.below(files);
}

/** A side line begins seven commits before each merge and ends one before it. */
function parentsOf(commit: number): string {
  if (commit <= 2 * MERGE_EVERY) return '';
  const at = commit % MERGE_EVERY;
  if (at === 0) return `from :${commit - 1}\nmerge :${commit - 7}\n`;
  if (at === 43) return `from :${commit - 10}\n`;
  if (at === 44) return `from :${commit - 2}\n`;
  return '';
}
