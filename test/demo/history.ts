/**
 * Histories for repositories of the demo, written as streams for git fast-import.
 *
 * Invariants: the same calls give the same ids in every run, so dates, authors and texts are fixed.
 */

export interface Author {
  readonly name: string;
  readonly email: string;
}

export const ADA: Author = { name: 'Ada Lovelace', email: 'ada@example.org' };
export const GRACE: Author = { name: 'Grace Hopper', email: 'grace@example.org' };
export const LINUS: Author = { name: 'Linnéa Ström', email: 'linnea@example.org' };

export interface Change {
  readonly branch: string;
  readonly author: Author;
  /** The first line, and after an empty line the rest. */
  readonly message: string;
  /** By path; null removes the file. */
  readonly files: Readonly<Record<string, string | null>>;
  /** The branch that this commit merges. */
  readonly merges?: string;
  /** A branch that does not exist yet begins at this one. */
  readonly from?: string;
}

const FIRST_AT = Date.UTC(2026, 5, 1, 9, 0, 0) / 1_000;
/** A little less than a working day, so that the hours vary. */
const STEP_SECONDS = 7 * 3_600 + 1_234;

/** A history that grows. A mark is the name of a commit in the stream. */
export class History {
  #stream: string[] = [];
  #marks = new Map<string, number>();
  #count = 0;
  #seconds: number;

  constructor(daysLater = 0) {
    this.#seconds = FIRST_AT + daysLater * 86_400;
  }

  commit({ branch, author, message, files, merges, from }: Change): this {
    this.#count += 1;
    this.#seconds += STEP_SECONDS;
    const parent = this.#marks.get(branch) ?? (from === undefined ? undefined : this.#marks.get(from));
    const merged = merges === undefined ? undefined : this.#marks.get(merges);
    const who = `${author.name} <${author.email}> ${this.#seconds} +0200`;
    const lines = [
      `commit refs/heads/${branch}`,
      `mark :${this.#count}`,
      `author ${who}`,
      `committer ${who}`,
      data(`${message}\n`),
      ...(parent === undefined ? [] : [`from :${parent}`]),
      ...(merged === undefined ? [] : [`merge :${merged}`]),
      ...Object.entries(files).map(([path, text]) =>
        text === null ? `D ${path}` : `M 100644 inline ${path}\n${data(text)}`,
      ),
    ];
    this.#stream.push(`${lines.join('\n')}\n`);
    this.#marks.set(branch, this.#count);
    return this;
  }

  /** Tags the tip of a branch as it stands now. */
  tag(name: string, branch: string, message: string): this {
    const tagger = `${ADA.name} <${ADA.email}> ${this.#seconds} +0200`;
    const lines = [`tag ${name}`, `from :${this.#marks.get(branch) ?? 0}`, `tagger ${tagger}`, data(`${message}\n`)];
    this.#stream.push(`${lines.join('\n')}\n`);
    return this;
  }

  /** Names the tip of a branch as it stands now, so that it can be pushed later. */
  stage(name: string, branch: string): this {
    this.#stream.push(`reset refs/stages/${name}\nfrom :${this.#marks.get(branch) ?? 0}\n`);
    return this;
  }

  toString(): string {
    return `${this.#stream.join('')}done\n`;
  }
}

function data(text: string): string {
  return `data ${Buffer.byteLength(text)}\n${text}`;
}
