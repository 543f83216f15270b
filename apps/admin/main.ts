/**
 * `strata-admin`: operators' commands on accounts, tokens, projections, the log and the storage of a server.
 *
 * Must stay true: it uses the server's configuration, whether the server runs or not. With `--json` standard output is
 * one JSON value and nothing else. The exit status is 0 for done, 1 for refused or failed, 2 for a usage error.
 */
import { text } from 'node:stream/consumers';
import { Command, CommanderError, Option } from 'commander';
import { GRANTS, type Grant, SCOPES, type Scope } from '../../core/kernel/grants.ts';
import { PLANS, type Plan } from '../../core/account/plans.ts';
import type { RepositoryId, Timestamp } from '../../core/kernel/ids.ts';
import { createAccessToken } from '../../core/use-cases/accounts/access-tokens.ts';
import { changePassword, changePlan, createAccount, findAccountState } from '../../core/use-cases/accounts/accounts.ts';
import { eraseAccount } from '../../core/use-cases/accounts/erase-account.ts';
import { newTokenSecret } from '../../adapters/node/token-secret.ts';
import { type AdminContext, withAdminContext } from './context.ts';
import { tokenObject } from '../api/handlers/access-tokens.ts';
import { type Answer, Refused } from './answer.ts';
import { grantList, idList, instant } from './arguments.ts';
import { causeOf, requireAccepted, requireAccount } from './commands.ts';
import { addDeviceCommands } from './device-commands.ts';
import { addIdentityCommands } from './identity-commands.ts';
import { addLogCommands } from './log-commands.ts';
import { addLogSourceCommand } from './log-source-command.ts';
import { addMasterKeyCommand } from './master-key-command.ts';
import { addProjectionCommands } from './projection-commands.ts';
import { addResetMfaCommand } from './reset-mfa-command.ts';
import { addStorageCommands } from './storage-commands.ts';

const program = new Command('strata-admin')
  .description('Administers a Strata server through its own configuration and data directory')
  .option('--json', 'print one JSON value and nothing else')
  .exitOverride()
  .showHelpAfterError();

function act<Options>(
  run: (context: AdminContext, options: Options) => Promise<Answer>,
): (options: Options) => Promise<void> {
  return async (options) => {
    print(await withAdminContext((context) => run(context, options)));
  };
}

function wantsJson(): boolean {
  return program.opts<{ json?: boolean }>().json === true;
}

function print(answer: Answer): void {
  process.stdout.write(`${wantsJson() ? JSON.stringify(answer.value) : answer.text}\n`);
  process.exitCode = answer.status ?? 0;
}

const account = program.command('account').description('accounts');

account
  .command('create')
  .requiredOption('--username <name>')
  .requiredOption('--email <address>')
  .requiredOption('--password-stdin', 'read the password from standard input, up to its first line feed')
  .addOption(new Option('--plan <plan>').choices(PLANS).default('FREE'))
  .action(
    act<{ username: string; email: string; plan: Plan }>(async (context, { username, email, plan }) => {
      const password = await passwordFromStdin();
      const created = requireAccepted(
        await createAccount(context, causeOf(context, 'account create'), { username, email, password, plan }),
      );
      return {
        value: { id: created.id, username, email, plan },
        text: `Created the account ${username} (${created.id})`,
      };
    }),
  );

account
  .command('set-plan')
  .requiredOption('--username <name>')
  .addOption(new Option('--plan <plan>').choices(PLANS).makeOptionMandatory())
  .action(
    act<{ username: string; plan: Plan }>(async (context, { username, plan }) => {
      const id = await requireAccount(context, username);
      requireAccepted(await changePlan(context, causeOf(context, 'account set-plan'), id, plan));
      return { value: { id, username, plan }, text: `${username} is on the plan ${plan} now` };
    }),
  );

account
  .command('reset-password')
  .requiredOption('--username <name>')
  .requiredOption('--password-stdin', 'read the password from standard input, up to its first line feed')
  .action(
    act<{ username: string }>(async (context, { username }) => {
      const id = await requireAccount(context, username);
      const password = await passwordFromStdin();
      requireAccepted(
        await changePassword(context, { account: id, cause: causeOf(context, 'account reset-password') }, password),
      );
      return { value: { id, username }, text: `${username} has a new password` };
    }),
  );

account
  .command('erase')
  .description('closes every repository of an account, ends its tokens and makes its personal data unreadable for ever')
  .requiredOption('--username <name>')
  .option('--yes', 'do it; without this it says what it would do')
  .action(
    act<{ username: string; yes?: boolean }>(async (context, { username, yes }) => {
      const found = await findAccountState(context, username);
      if (found === null || found.state.status === 'absent' || found.state.status === 'abandoned') {
        throw new Refused(`There is no account ${JSON.stringify(username)}`);
      }
      const { id, state } = found;
      if (yes !== true) throw new Refused(erasureText(username, found.state.repositories.size));
      const erased = requireAccepted(
        await context.onStorage(({ layers }) => {
          const erasing = { ...context, platformStore: layers.platform };
          return eraseAccount(erasing, causeOf(context, 'account erase'), id);
        }),
      );
      const { repositories, addressReleased } = erased;
      const value = { id, username, repositories, address_released: addressReleased };
      const again = state.status === 'erased' ? ' was erased before, and now wholly' : ' is erased';
      const kept = addressReleased ? '' : '\nIts address could not be read and stays taken';
      return {
        value,
        text: `${username}${again}; repositories closed: ${repositories}${kept}\nWhat remains: ${REMAINS}`,
      };
    }),
  );

const REMAINS =
  'backups and the write-ahead log of the database hold copies until they expire (docs/operating.md, After an erasure)';

/** Describes what `account erase` would do. */
function erasureText(username: string, repositories: number): string {
  return [
    `This would erase the account ${username}, for ever:`,
    `- its repositories (${repositories}) are closed, and leave platform storage, those deleted before too`,
    '- its access tokens end at once',
    '- its email address, password and source addresses can never be read again; the address can sign up again',
    '- its browser sessions, the bodies of its deliveries and what nodes cached of its repositories go at once',
    '- its events stay in the log, and its username stays taken; what lies in its own buckets stays',
    `- ${REMAINS}`,
    'Nothing was done. Add --yes to do it.',
  ].join('\n');
}

const token = program.command('token').description('access tokens');

token
  .command('create')
  .requiredOption('--username <name>')
  .requiredOption('--name <label>')
  .addOption(new Option('--scope <scope>').choices(SCOPES).default('ALL_REPO'))
  .option('--grants <list>', `comma-separated, of ${GRANTS.join(', ')}`, grantList, ['ALL'] as readonly Grant[])
  .option('--repository-ids <list>', 'comma-separated ids, for SELECTED_REPO', idList, [] as readonly RepositoryId[])
  .option('--expires-at <time>', 'RFC 3339; never when left out', instant, null)
  .action(
    act<{
      username: string;
      name: string;
      scope: Scope;
      grants: readonly Grant[];
      repositoryIds: readonly RepositoryId[];
      expiresAt: Timestamp | null;
    }>(async (context, { username, ...settings }) => {
      const owner = await requireAccount(context, username);
      const secret = newTokenSecret();
      const origin = { account: owner, cause: causeOf(context, 'token create') };
      const created = requireAccepted(await createAccessToken(context, origin, settings, secret));
      const value = { ...tokenObject({ id: created.id, ...created.token }, null), token: secret };
      return { value, text: secret };
    }),
  );

addResetMfaCommand(account, act);
addProjectionCommands(program, act);
addLogCommands(program, { act, print, wantsJson });
addLogSourceCommand(program, act);
addDeviceCommands(program, act);
addStorageCommands(program, act);
addIdentityCommands(program, act);
addMasterKeyCommand(program, { print });

/** Returns the first line of standard input, without its line feed, which `echo` adds. */
async function passwordFromStdin(): Promise<string> {
  return (await text(process.stdin)).split(/\r?\n/, 1)[0] ?? '';
}

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Status 0 is a requested help text; any other is a usage error that commander has printed.
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  } else {
    process.stderr.write(`strata-admin: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
