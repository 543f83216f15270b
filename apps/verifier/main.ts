/**
 * `strata-verify FILE... | FOLDER [options]`: verifies exports of accounts' logs.
 *
 * Invariants: the exit status is 0 only for exports that are verified: 1 if one is refuted, else 2 if one cannot be
 * decided, and for a wrong use.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { parseKey } from './checkpoint.ts';
import { readCheckpoint, readKeys } from './file.ts';
import { exportsOf, type Judged, judge, together } from './judge.ts';
import type { RevokedKey } from './keys.ts';
import { FORM_1_WARNING, reportText } from './report.ts';
import { parseInstant } from './slice.ts';

const USAGE = `Usage: strata-verify FILE... | FOLDER [--keys FILE] [--checkpoint FILE ...] [--since TIME] [--until TIME]
                     [--revoke KEY --after SIZE]

Verifies exports of accounts' logs of Strata, offline: files, or those of a folder that are called *.ndjson.

  --keys FILE        the service's first key: the first line of its /.well-known/strata-log-keys
  --checkpoint FILE  a checkpoint that was kept, which the exports of its log must continue; may be given again
  --since TIME       the beginning of the range that was asked for: the exports must prove it
  --until TIME       the end of the range that was asked for
  --revoke KEY       a stolen key, as a line of the service's list: it counts up to SIZE entries, of which a checkpoint
                     that was kept must be given
  --after SIZE       how many entries were surely signed by the service
  --version          print the version

Exit status: 0 verified, 1 refuted, 2 not decidable, such as without --keys, or used wrongly.
`;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      keys: { type: 'string', multiple: true, default: [] },
      checkpoint: { type: 'string', multiple: true, default: [] },
      since: { type: 'string', multiple: true, default: [] },
      until: { type: 'string', multiple: true, default: [] },
      revoke: { type: 'string', multiple: true, default: [] },
      after: { type: 'string', multiple: true, default: [] },
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean', short: 'V' },
    },
  });
  if (values.help === true) return print(0, USAGE);
  if (values.version === true) return print(0, `${readVersion()}\n`);
  if (positionals.length === 0) return print(2, USAGE);
  const keysFile = once('keys', values.keys);
  const asked = { since: timeOf('since', values.since), until: timeOf('until', values.until) };
  const revoked = revokedOf(once('revoke', values.revoke), once('after', values.after));
  const keys = keysFile === undefined ? null : await given(keysFile, readKeys);
  const older = await Promise.all(values.checkpoint.map((name) => given(name, readCheckpoint)));
  const files = await exportsOf(positionals);
  const all: Judged[] = [];
  for await (const judged of judge(files, { keys, older, asked, revoked })) {
    all.push(judged);
    const isAsked = asked.since !== null || asked.until !== null;
    printJudged(judged, { withKeys: keys !== null, isAsked }, files.length > 1);
  }
  const { status, unused } = together(all, older);
  for (const { origin } of unused) print(2, `strata-verify: no export is of ${origin}, as a given checkpoint is\n`);
  return status;
}

function printJudged(judged: Judged, options: Parameters<typeof reportText>[1], isNamed: boolean): void {
  if (judged.verified === null) {
    print(judged.status, `strata-verify: ${judged.why}\n`);
    return;
  }
  const { file, verified } = judged;
  if (verified.range === null) print(2, `strata-verify: warning: ${file}: ${FORM_1_WARNING}\n`);
  print(0, `${isNamed ? `${file}\n` : ''}${reportText(verified, options)}`);
}

/** The first of two would be lost without a word. */
function once(name: string, values: readonly string[]): string | undefined {
  if (values.length > 1) throw new TypeError(`--${name} is given twice: give it once`);
  return values[0];
}

function timeOf(name: string, values: readonly string[]): string | null {
  const text = once(name, values);
  if (text === undefined) return null;
  const at = parseInstant(text);
  if (at === null) throw new TypeError(`--${name} is no RFC 3339 time such as 2026-11-21T10:00:00Z`);
  return at;
}

function revokedOf(line: string | undefined, size: string | undefined): RevokedKey | null {
  if (line === undefined && size === undefined) return null;
  if (line === undefined || size === undefined) throw new TypeError('Give --revoke and --after together');
  const key = parseKey(line);
  if (key === null) throw new TypeError('--revoke is no key <name>+<hash>+<base64>');
  if (!/^(0|[1-9]\d{0,14})$/.test(size)) throw new TypeError('--after is no number of entries');
  return { key, after: Number(size) };
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

/** Writes to standard error unless the status is 0. */
function print(status: number, text: string): number {
  (status === 0 ? process.stdout : process.stderr).write(text);
  return status;
}

process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  // A reader that has gone has seen enough of it; the exit status is still that of all files.
  if (code === 'EPIPE') return;
  const why = code === 'ENOSPC' ? 'the disk is full' : code;
  process.exit(print(2, `strata-verify: standard output cannot be written: ${why}\n`));
});
try {
  process.exitCode = await main();
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  process.exitCode = print(2, `strata-verify: ${message}\n`);
}
