/**
 * Commits that git makes one after the other in a process of its own: `git fast-import`, which tells the id of each.
 *
 * Invariants: git makes every tree and commit; nothing here knows how either is written.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export interface ImportedCommit {
  /** The full name of the branch. */
  readonly ref: string;
  /** Null: it has no parent. */
  readonly parent: string | null;
  /** What git writes: name, address, seconds since 1970 and zone. */
  readonly author: string;
  readonly committer: string;
  readonly message: string;
  /** By path, a code unit for each byte: mode and blob, e.g. `100644 5626abf0f72e58d7a153368ba57db4c673c0e171`. */
  readonly files: ReadonlyMap<string, string>;
}

export interface Importing {
  blob(content: Uint8Array): void;
  /** Returns the id of the commit. */
  commit(commit: ImportedCommit): Promise<string>;
  /** Ends git, which stores what it made. */
  end(): Promise<void>;
}

/** @param folder of a repository. */
export function startImporting(folder: string): Importing {
  const child = spawn('git', ['fast-import', '--quiet', '--done'], { cwd: folder, stdio: 'pipe' });
  let errors = '';
  child.stderr.on('data', (bytes: Buffer) => {
    errors += bytes.toString('utf8');
  });
  // Its end is noticed by the reader of its answers.
  child.stdin.on('error', () => undefined);
  const closed = once(child, 'close');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const marks = new Map<string, number>();
  const data = (bytes: Uint8Array): void => {
    child.stdin.write(`data ${bytes.length}\n`);
    child.stdin.write(bytes);
    child.stdin.write('\n');
  };
  return {
    blob(content) {
      child.stdin.write('blob\n');
      data(content);
    },
    async commit({ ref, parent, author, committer, message, files }) {
      const mark = marks.size + 1;
      child.stdin.write(`commit ${ref}\nmark :${mark}\nauthor ${author}\ncommitter ${committer}\n`);
      data(Buffer.from(message));
      if (parent !== null) child.stdin.write(`from :${marks.get(parent)}\n`);
      child.stdin.write('deleteall\n');
      for (const [path, file] of files) child.stdin.write(Buffer.from(`M ${file} ${path}\n`, 'latin1'));
      child.stdin.write(`\nget-mark :${mark}\n`);
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`git fast-import has ended: ${errors}`);
      marks.set(value, mark);
      return value;
    },
    async end() {
      child.stdin.end('done\n');
      const [code] = await closed;
      if (code !== 0) throw new Error(`git fast-import exited ${code}: ${errors}`);
    },
  };
}
