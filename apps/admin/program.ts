/**
 * The parser of `strata-admin`, with all its commands.
 *
 * Must stay true: with `--json` standard output is one JSON value and nothing else.
 */
import { Command } from 'commander';
import { addAccountCommands } from './account-commands.ts';
import type { Act, Answer } from './answer.ts';
import { withAdminContext } from './context.ts';
import { addDeviceCommands } from './device-commands.ts';
import { addIdentityCommands } from './identity-commands.ts';
import { addLogCommands } from './log-commands.ts';
import { addLogSourceCommand } from './log-source-command.ts';
import { addMasterKeyCommand } from './master-key-command.ts';
import { addProjectionCommands } from './projection-commands.ts';
import { addStorageCommands } from './storage-commands.ts';
import { addTokenCommand } from './token-command.ts';

/** Returns the parser. Parsing runs the command that was typed; a usage error is thrown as a `CommanderError`. */
export function createProgram(): Command {
  const program = new Command('strata-admin')
    .description('Administers a Strata server through its own configuration and data directory')
    .option('--json', 'print one JSON value and nothing else')
    .exitOverride()
    .showHelpAfterError();
  const wantsJson = (): boolean => program.opts<{ json?: boolean }>().json === true;
  const print = (answer: Answer): void => {
    process.stdout.write(`${wantsJson() ? JSON.stringify(answer.value) : answer.text}\n`);
    process.exitCode = answer.status ?? 0;
  };
  const act: Act = (run) => async (options) => {
    print(await withAdminContext((context) => run(context, options)));
  };
  addAccountCommands(program, act);
  addTokenCommand(program, act);
  addProjectionCommands(program, act);
  addLogCommands(program, { act, print, wantsJson });
  addLogSourceCommand(program, act);
  addDeviceCommands(program, act);
  addStorageCommands(program, act);
  addIdentityCommands(program, act);
  addMasterKeyCommand(program, { print });
  return program;
}
