/** The files under a folder that others may be changing meanwhile. */
import { readdir } from 'node:fs/promises';
import path from 'node:path';

/**
 * Paths of the files below the folder, relative to it, in no order; none when it is not there. Folders that go while
 * they are read have no files; symbolic links are files.
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
