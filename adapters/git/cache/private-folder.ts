/**
 * The folder of everything that this node keeps of repositories.
 *
 * Invariants: other users of the machine cannot enter it, whatever the modes of the files below it.
 */
import { chmod, mkdir, stat } from 'node:fs/promises';

const MODE = 0o750;
const OTHERS_BITS = 0o007;

/** Creates the folder if it is missing; one that an earlier version made is closed to others. */
export async function makePrivateFolder(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: MODE });
  const { mode, uid } = await stat(directory);
  if ((mode & OTHERS_BITS) !== 0 && uid === process.getuid?.()) await chmod(directory, mode & ~OTHERS_BITS);
}
