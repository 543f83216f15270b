/** Lists the objects of packs that sides sent. */
import { createHash } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runGit } from '../support/git.ts';

/** The place of the number of objects in a pack (gitformat-pack(5)). */
const COUNT_OFFSET = 8;

/** Returns a function that lists the objects of a pack, whose deltas may need objects of the source. */
export function packReader(folder: string, source: string): (pack: Buffer) => readonly string[] {
  const repository = join(folder, 'packs');
  const known = new Map<string, readonly string[]>();
  runGit(['init', '--quiet', '--bare', repository]);
  writeFileSync(join(repository, 'objects/info/alternates'), `${join(source, '.git/objects')}\n`);
  return (pack) => {
    const hash = createHash('sha256').update(pack).digest('hex');
    const found = known.get(hash) ?? listed(repository, pack);
    known.set(hash, found);
    return found;
  };
}

function listed(repository: string, pack: Buffer): readonly string[] {
  const file = join(repository, 'sent');
  try {
    runGit(['index-pack', '--stdin', '--fix-thin', `${file}.pack`], { cwd: repository, input: pack });
    const index = runGit(['show-index'], { cwd: repository, input: readFileSync(`${file}.idx`) });
    const entries = index
      .toString()
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split(' '));
    // Bases that git found in the source stand behind what was sent.
    const inOrder = entries.toSorted(([a], [b]) => Number(a) - Number(b));
    return inOrder
      .slice(0, pack.readUInt32BE(COUNT_OFFSET))
      .map(([, id = '']) => id)
      .toSorted();
  } catch (error) {
    return [`a pack that git cannot read: ${error instanceof Error ? error.message : String(error)}`];
  } finally {
    for (const end of ['pack', 'idx', 'rev']) rmSync(`${file}.${end}`, { force: true });
  }
}
