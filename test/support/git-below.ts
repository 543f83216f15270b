/** Lists the git processes that a server started, directly or through its helper process, from Linux's /proc. */
import { familyOf, textOfProcess } from './process-family.ts';

/** Why such a test cannot run here; false where it can run. */
export const NO_PROC: string | false = process.platform === 'linux' ? false : "needs Linux's /proc";

/** Returns the subcommands of git that run for requests: `upload-pack`, `pack-objects`, `index-pack`, `archive`. */
export function gitBelow(ancestor: number | undefined): readonly string[] {
  return gitProcessesBelow(ancestor).map(({ command }) => command);
}

export function gitProcessesBelow(
  ancestor: number | undefined,
): readonly { readonly pid: number; readonly command: string }[] {
  if (ancestor === undefined) return [];
  const below = familyOf(ancestor).filter((pid) => pid !== ancestor);
  return below.flatMap((pid) => {
    const words = textOfProcess(`/proc/${pid}/cmdline`).split('\0');
    const command = words.find((word) => ['upload-pack', 'pack-objects', 'index-pack', 'archive'].includes(word));
    return command === undefined ? [] : [{ pid, command }];
  });
}
