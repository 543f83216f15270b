/**
 * The parser of `strata-admin`, with all its commands.
 *
 * Invariants: with `--json` standard output is one JSON value and nothing else. No value of an option is lost
 * without a word: one that takes a list adds up, and another may be given once.
 */
import { hostname } from 'node:os';
import { Command } from 'commander';
import packageJson from '../../package.json' with { type: 'json' };
import { addAccountCommands } from './account-commands.ts';
import type { Act, Answer } from './answer.ts';
import { withAdminContext } from './context.ts';
import { addDeviceCommands } from './device-commands.ts';
import { addIdentityCommands } from './identity-commands.ts';
import { addLogCommands } from './log-commands.ts';
import { addLogSourceCommand } from './log-source-command.ts';
import { addMasterKeyCommand } from './master-key-command.ts';
import { operatorName, systemUser } from './operator.ts';
import { addProjectionCommands } from './projection-commands.ts';
import { addStorageCommands } from './storage-commands.ts';
import { addTokenCommand } from './token-command.ts';
import { addUpgradeCommand } from './upgrade-command.ts';

/** Returns the parser. Parsing runs the command that was typed; a usage error is thrown as a `CommanderError`. */
export function createProgram(): Command {
  const program = new Command('strata-admin')
    .description('Administers a Strata server through its own configuration and data directory')
    .version(packageJson.version, '-V, --version', 'print the version')
    .option('--json', 'print one JSON value and nothing else')
    .option(
      '--as <name>',
      "who types the command, for the accounts' logs; the system's user when left out",
      operatorName,
    )
    .exitOverride()
    .showHelpAfterError();
  const wantsJson = (): boolean => program.opts<{ json?: boolean }>().json === true;
  const operator = (): string => `${program.opts<{ as?: string }>().as ?? systemUser()}@${hostname()}`;
  const print = (answer: Answer): void => {
    process.stdout.write(`${wantsJson() ? JSON.stringify(answer.value) : answer.text}\n`);
    process.exitCode = answer.status ?? 0;
  };
  const act: Act = (run) => async (options) => {
    print(await withAdminContext(operator(), (context) => run(context, options)));
  };
  addAccountCommands(program, act);
  addTokenCommand(program, act);
  addProjectionCommands(program, act);
  addLogCommands(program, { act, print, wantsJson, operator });
  addLogSourceCommand(program, act);
  addDeviceCommands(program, act);
  addStorageCommands(program, act);
  addIdentityCommands(program, act);
  addMasterKeyCommand(program, { print });
  addUpgradeCommand(program, act);
  settleRepetitions(program);
  return program;
}

/** Lets options of a command and its subcommands that take a list add up, and refuses the repetition of others. */
function settleRepetitions(command: Command): void {
  for (const option of command.options.filter((known) => !known.isBoolean())) {
    const parse = option.parseArg;
    option.argParser((text: string, before: unknown) => {
      const value: unknown = parse === undefined ? text : parse(text, undefined);
      // A default does not count as given.
      if (command.getOptionValueSource(option.attributeName()) !== 'cli') return value;
      if (isList(value) && isList(before)) return [...before, ...value];
      // The values are left out: they may be secrets.
      return command.error(`error: option '${option.flags}' is given twice: give it once`);
    });
  }
  for (const child of command.commands) settleRepetitions(child);
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}
