/**
 * What becomes of a command whose standard output takes no more: a full disk, or a reader that has gone.
 *
 * Invariants: the command goes on to its end, since what it opened must be closed and a restore must not stop in its
 * middle. A full disk is told once, with exit status 1.
 */
export function tellLostOutput(program: string): void {
  let isTold = false;
  process.stdout.on('error', ({ code = '' }: NodeJS.ErrnoException) => {
    // `strata-admin account list | head -1` has what it wanted.
    if (isTold || code === 'EPIPE') return;
    isTold = true;
    const why = code === 'ENOSPC' ? 'the disk is full' : code;
    process.stderr.write(`${program}: standard output cannot be written: ${why}\n`);
    process.on('exit', () => {
      process.exitCode = 1;
    });
  });
}
