/**
 * A generated history of the shape of a mid-sized library: some 5,000 commits on 25 branches with 328 tags.
 *
 * Invariants: a seed makes the same bytes in every run, and the text deflates about as well as source code.
 */
import { Readable } from 'node:stream';

const COMMITS = 5_000;
const FILES = 320;
const FOLDERS = 24;
const TAGS = 328;
const SIDE_BRANCHES = 24;
const FIRST_COMMIT_SECONDS = 1_500_000_000;
const WORDS = 'request reply route schema handler plugin hook stream parse error header body value option logger'.split(
  ' ',
);

/** A fast-import stream (git-fast-import(1)). */
export function createGeneratedHistory(): Readable {
  return Readable.from(generate());
}

function* generate(): Generator<string> {
  const random = createRandom(20_260_101);
  const files = Array.from({ length: FILES }, (_, index) => ({
    path: index < 8 ? `file-${index}.md` : `module-${index % FOLDERS}/part-${index}.js`,
    lines: Array.from({ length: 30 + (random() % 220) }, () => line(random)),
  }));
  for (let commit = 1; commit <= COMMITS; commit += 1) {
    const changed = commit === 1 ? files : Array.from({ length: 1 + (random() % 4) }, () => pick(files, random));
    for (const file of changed) {
      const at = random() % file.lines.length;
      for (let count = 1 + (random() % 16); count > 0; count -= 1)
        file.lines[(at + count) % file.lines.length] = line(random);
      if (random() % 3 === 0) file.lines.splice(at, 0, line(random), line(random));
    }
    yield commitCommand(commit, changed);
    if (commit % Math.floor(COMMITS / TAGS) === 0) yield tagCommand(commit);
    if (commit % Math.floor(COMMITS / SIDE_BRANCHES) === 0)
      yield `reset refs/heads/side-${commit}\nfrom :${commit}\n\n`;
  }
  yield 'done\n';
}

type Random = () => number;

/** Mulberry32: small, seeded and random enough for text. */
function createRandom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

function pick<Item>(items: readonly Item[], random: Random): Item {
  const item = items[random() % items.length];
  if (item === undefined) throw new RangeError('The list is empty');
  return item;
}

function line(random: Random): string {
  const words = Array.from({ length: 3 + (random() % 6) }, () => pick(WORDS, random));
  return `  const ${words[0]}${random() % 1000} = ${words.slice(1).join('.')}(${random().toString(36)})`;
}

function data(text: string): string {
  return `data ${Buffer.byteLength(text)}\n${text}\n`;
}

function commitCommand(
  commit: number,
  files: readonly { readonly path: string; readonly lines: readonly string[] }[],
): string {
  const who = `Bench <bench@example.org> ${FIRST_COMMIT_SECONDS + commit * 3600} +0000`;
  const changes = files.map((file) => `M 100644 inline ${file.path}\n${data(`${file.lines.join('\n')}\n`)}`);
  return `commit refs/heads/main\nmark :${commit}\ncommitter ${who}\n${data(`Change ${commit}`)}${changes.join('')}\n`;
}

function tagCommand(commit: number): string {
  const who = `Bench <bench@example.org> ${FIRST_COMMIT_SECONDS + commit * 3600} +0000`;
  return `tag v${commit}\nfrom :${commit}\ntagger ${who}\n${data(`Version ${commit}`)}`;
}
