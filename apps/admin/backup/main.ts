/**
 * What `deploy/backup.sh`, `deploy/restore.sh` and `deploy/database.sh` run: a backup of the whole service, its
 * restore, and a program of PostgreSQL on the embedded database.
 *
 * Invariants: all use the server's settings. The exit status is 0 for done, 1 for refused, failed or a restored
 * service that lacks something, 2 for a usage error.
 */
import path from 'node:path';
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { type Timestamp, timestamp } from '../../../core/kernel/ids.ts';
import { callersFolder, settingsOfCommand } from '../context.ts';
import { tellLostOutput } from '../lost-output.ts';
import { createProgram } from '../program.ts';
import { onEmbeddedDatabase } from './embedded-database.ts';
import { restoreService } from './restore.ts';
import { saveService } from './save.ts';

tellLostOutput('strata');

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

const program = new Command('node apps/admin/backup/main.ts').exitOverride().enablePositionalOptions();

program
  .command('save')
  .argument('<folder>', 'a new folder for the backup', fromCaller)
  .description('deploy/backup.sh: saves the database and the layers, while the nodes run')
  .action((folder: string) => saveService(settingsOfCommand().settings, folder, say));

program
  .command('database')
  .argument('<program...>', 'a program of PostgreSQL with its arguments')
  .description('deploy/database.sh: runs the program on the embedded database, without a server')
  .passThroughOptions()
  .allowUnknownOption()
  .helpOption(false)
  .action(async (command: readonly string[]) => {
    process.exitCode = await onEmbeddedDatabase(settingsOfCommand(), command);
  });

interface RestoreFlags {
  readonly wal?: string;
  readonly until?: Timestamp;
}

program
  .command('restore')
  .argument('<folder>', 'what deploy/backup.sh made', fromCaller)
  .description('deploy/restore.sh: restores the database and the layers; the nodes must be stopped')
  .option('--wal <folder>', 'replay the archived write-ahead log of an embedded database as well', archiveFolder)
  .option('--until <time>', 'only up to this time, such as 2026-11-29T03:00:00Z', time)
  .action(async (folder: string, { wal, until }: RestoreFlags) => {
    if (until !== undefined && wal === undefined) throw new InvalidArgumentError('--until needs --wal.');
    const archive = wal === undefined ? null : { folder: wal, until: until ?? null };
    await restoreService({ ...settingsOfCommand(), folder, archive, say });
    await verify();
  });

/** Adopts what the store holds where it is newer than the log, and then looks for what is lost. */
async function verify(): Promise<void> {
  await createProgram().parseAsync(['storage', 'adopt', '--all', '--yes'], { from: 'user' });
  const isAdopted = isSuccess();
  await createProgram().parseAsync(['log', 'verify', '--references'], { from: 'user' });
  if (!isAdopted || !isSuccess()) {
    process.exitCode = 1;
    say('The restored service lacks what these lines name (docs/operating.md, Backup and restore)');
    return;
  }
  say('The service is restored. Delete the cache of every other node, and start the nodes');
}

/** A command of `strata-admin` sets the exit code. */
function isSuccess(): boolean {
  return process.exitCode === undefined || process.exitCode === 0;
}

function fromCaller(folder: string): string {
  return path.resolve(callersFolder(), folder);
}

/** PostgreSQL hands it to a shell, and replaces what follows a percent sign. */
function archiveFolder(folder: string): string {
  if (/["%$`\\\n]/.test(folder)) throw new InvalidArgumentError('Its path must not hold " % $ ` or \\.');
  return fromCaller(folder);
}

/** A time without a zone would mean another moment on another machine. */
function time(text: string): Timestamp {
  if (!/(Z|[+-]\d\d:?\d\d)$/.test(text) || Number.isNaN(Date.parse(text))) {
    throw new InvalidArgumentError('Give a time with its zone, such as 2026-11-29T03:00:00Z.');
  }
  return timestamp(new Date(text).toISOString());
}

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    process.stderr.write(`strata: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
