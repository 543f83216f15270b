/**
 * `strata-admin`: operators' commands on accounts, tokens, projections, the log and the storage of a server.
 *
 * Invariants: it uses the server's configuration, whether the server runs or not. The exit status is 0 for done, 1
 * for refused or failed, 2 for a usage error.
 */
import { CommanderError } from 'commander';
import { tellLostOutput } from './lost-output.ts';
import { createProgram } from './program.ts';

tellLostOutput('strata-admin');

try {
  await createProgram().parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Status 0 is a requested help text; any other is a usage error that commander has printed.
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  } else {
    process.stderr.write(`strata-admin: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
