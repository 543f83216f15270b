/**
 * `strata-verify FILE [--keys FILE] [--checkpoint FILE ...]`: verifies an export of an account's log.
 *
 * Invariants: the exit status is 0 only for an export without a fault: 1 for a fault, 2 for a wrong use.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readCheckpoint, readKeys, verifyFile } from './file.ts';
import { reportText } from './report.ts';
import { VerifyError } from './verify.ts';

const USAGE = `Usage: strata-verify FILE [--keys FILE] [--checkpoint FILE ...]

Verifies an export of an account's log of Strata, offline.

  --keys FILE        the service's keys, from its /.well-known/strata-log-keys
  --checkpoint FILE  a checkpoint that was kept, which the export must continue; may be given again
  --version          print the version
`;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      keys: { type: 'string', multiple: true, default: [] },
      checkpoint: { type: 'string', multiple: true, default: [] },
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean', short: 'V' },
    },
  });
  const [file, ...others] = positionals;
  if (values.help === true) return print(0, USAGE);
  if (values.version === true) return print(0, `${readVersion()}\n`);
  if (file === undefined || others.length > 0) return print(2, USAGE);
  const [keysFile, ...otherKeys] = values.keys;
  if (otherKeys.length > 0) throw new TypeError('--keys is given twice: give it once');
  const keys = keysFile === undefined ? null : await given(keysFile, readKeys);
  const older = await Promise.all(values.checkpoint.map((name) => given(name, readCheckpoint)));
  const verified = await verifyFile(file, { keys, older });
  return print(0, reportText(verified, { withKeys: keys !== null, older: older.length }));
}

function readVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL('./package.json', import.meta.url), 'utf8')) as { version: string };
  return manifest.version;
}

async function given<Content>(file: string, read: (file: string) => Promise<Content>): Promise<Content> {
  try {
    return await read(file);
  } catch (error) {
    if (error instanceof SyntaxError) throw new TypeError(`${file}: ${error.message}`, { cause: error });
    throw error;
  }
}

function print(status: number, text: string): number {
  (status === 0 ? process.stdout : process.stderr).write(text);
  return status;
}

process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  // Only what is without a fault is printed there: a reader that has gone has seen enough of it.
  if (code === 'EPIPE') process.exit(0);
  const why = code === 'ENOSPC' ? 'the disk is full' : code;
  process.exit(print(1, `strata-verify: standard output cannot be written: ${why}\n`));
});
try {
  process.exitCode = await main();
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  process.exitCode = print(error instanceof VerifyError ? 1 : 2, `strata-verify: ${message}\n`);
}
