/** Lists the files under a folder that other processes may be changing at the same time. */
import { readdir } from 'node:fs/promises';
import path from 'node:path';

/**
 * Returns the paths of the files below the folder, relative to it, in no particular order; none when the folder does
 * not exist. A folder removed during the walk counts as empty; a symbolic link counts as a file.
 */
export async function filesBelow(folder: string): Promise<readonly string[]> {
  const found: string[] = [];
  const walk = async (below: string): Promise<void> => {
    for (const entry of await entriesOf(path.join(folder, below))) {
      const name = path.join(below, entry.name);
      if (entry.isDirectory()) await walk(name);
      else found.push(name);
    }
  };
  await walk('');
  return found;
}

async function entriesOf(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}
