/** `strata-admin account …`: makes accounts, and changes and erases them. */
import { text } from 'node:stream/consumers';
import { type Command, Option } from 'commander';
import { PLANS, type Plan } from '../../core/account/plans.ts';
import { changePassword, changePlan, createAccount, findAccountState } from '../../core/use-cases/accounts/accounts.ts';
import { eraseAccount } from '../../core/use-cases/erasing/erase-account.ts';
import { type Act, Refused } from './answer.ts';
import { causeOf, causeWithoutAccount, requireAccepted, requireAccount } from './commands.ts';
import { addResetMfaCommand } from './reset-mfa-command.ts';

export function addAccountCommands(program: Command, act: Act): void {
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
        const cause = causeWithoutAccount(context, 'account create');
        const wanted = { username, email, password, plan, address: context.operator };
        const created = requireAccepted(await createAccount(context, cause, wanted));
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
        requireAccepted(await changePlan(context, await causeOf(context, 'account set-plan', id), id, plan));
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
        const cause = await causeOf(context, 'account reset-password', id);
        requireAccepted(await changePassword(context, { account: id, cause }, password));
        return { value: { id, username }, text: `${username} has a new password` };
      }),
    );

  addEraseCommand(account, act);
  addResetMfaCommand(account, act);
}

function addEraseCommand(account: Command, act: Act): void {
  account
    .command('erase')
    .description(
      'closes every repository of an account, ends its tokens and makes its personal data unreadable permanently',
    )
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
        const cause = await causeOf(context, 'account erase', id);
        const erased = requireAccepted(
          await context.onStorage(({ layers }) =>
            eraseAccount({ ...context, platformStore: layers.platform }, cause, id),
          ),
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
}

const REMAINS =
  'backups and the write-ahead log of the database hold copies until they expire (docs/operating.md, After an erasure)';

/** Describes what `account erase` would do. */
function erasureText(username: string, repositories: number): string {
  return [
    `This would erase the account ${username}, permanently:`,
    `- its repositories (${repositories}) are closed, and leave platform storage, those deleted before too`,
    '- its access tokens end immediately',
    '- its email address, password and source addresses can never be read again; the address can sign up again',
    '- its browser sessions, the bodies of its deliveries and what nodes cached of its repositories are removed immediately',
    '- its events stay in the log, and its username stays taken; what lies in its own buckets stays',
    `- ${REMAINS}`,
    'Nothing was done. Add --yes to do it.',
  ].join('\n');
}

/** Returns the first line of standard input, without its line feed, which `echo` adds. */
async function passwordFromStdin(): Promise<string> {
  return (await text(process.stdin)).split(/\r?\n/, 1)[0] ?? '';
}
