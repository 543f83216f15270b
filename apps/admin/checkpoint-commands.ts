/** `strata-admin log checkpoints …`: names the checkpoints that a log does not continue, and accepts the loss. */
import { type Command, InvalidArgumentError } from 'commander';
import { accounts } from '../../core/account/evolve.ts';
import { base64OfHex } from '../../core/audit/base64.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import { acceptTailLoss, lostCheckpoint } from '../../core/use-cases/auditing/accept-tail-loss.ts';
import { newestCheckpoints } from '../../core/use-cases/auditing/checkpoints.ts';
import { type Act, Refused } from './answer.ts';
import { accountId } from './arguments.ts';
import { causeOf, requireAccepted, requireAccount } from './commands.ts';
import type { AdminContext } from './context.ts';
import { type OpenedCheckpoints, withCheckpoints } from './with-checkpoints.ts';

/** In characters. */
export const LOSS_REASON_LENGTH_MAX = 500;

interface AccountFlags {
  readonly username?: string;
  readonly account?: AccountId;
  readonly all?: boolean;
}

interface ListedCheckpoint {
  readonly id: AccountId;
  /** Null for an account that was never made. */
  readonly username: string | null;
  readonly size: number;
  /** In base64, as in a checkpoint. */
  readonly root: string;
}

export function addCheckpointCommands(log: Command, act: Act): void {
  const checkpoints = log
    .command('checkpoints')
    .description('the signed checkpoints of accounts that their logs do not continue, as after a restore');

  withAccount(checkpoints.command('list'))
    .description('prints each account whose log does not continue its last checkpoint')
    .action(
      act<AccountFlags>(async (context, flags) => {
        const only = await chosen(context, flags);
        const listed = await withCheckpoints(context, (opened) => listLost(context, opened, only));
        const none = 'Every log continues its last checkpoint';
        return { value: { checkpoints: listed }, text: listed.length === 0 ? none : rowsOf(listed).join('\n') };
      }),
    );

  withAccount(checkpoints.command('accept-loss'))
    .description('records in each log that it lost its end, and lets it be signed again')
    .requiredOption('--reason <text>', 'why, in words that stay in the log and that its auditors read', lossReason)
    .option('--yes', 'do it; without this it says what it would do')
    .action(
      act<AccountFlags & { reason: string; yes?: boolean }>(async (context, { reason, yes, ...flags }) => {
        const only = await chosen(context, flags);
        const accepted = await withCheckpoints(context, async (opened) => {
          const lost = await listLost(context, opened, only);
          if (yes !== true && lost.length > 0) {
            const would = 'This would record in these logs that they lost their ends, permanently:';
            throw new Refused([would, ...rowsOf(lost), 'Nothing was done. Add --yes to do it.'].join('\n'));
          }
          for (const { id } of lost) await accept(context, opened, { account: id, reason });
          return lost;
        });
        const done = `Logs that can be signed again: ${accepted.length}`;
        return { value: { accepted }, text: [...rowsOf(accepted), done].join('\n') };
      }),
    );
}

function rowsOf(listed: readonly ListedCheckpoint[]): readonly string[] {
  return listed.map(({ id, username, size, root }) => `${id} ${username ?? 'unknown'} ${size} ${root}`);
}

function lossReason(text: string): string {
  const reason = text.trim();
  if (reason !== '' && reason.length <= LOSS_REASON_LENGTH_MAX && !/\p{C}/u.test(reason)) return reason;
  throw new InvalidArgumentError(
    `Give a reason of 1 to ${LOSS_REASON_LENGTH_MAX} characters, without control characters.`,
  );
}

function withAccount(command: Command): Command {
  return command
    .option('--username <name>', 'of this account')
    .option('--account <id>', 'of this account', accountId)
    .option('--all', 'of all accounts');
}

type Opened = Pick<OpenedCheckpoints, 'checkpoints' | 'store'>;

async function accept(
  context: AdminContext,
  opened: Opened,
  loss: { readonly account: AccountId; readonly reason: string },
): Promise<void> {
  const cause = await causeOf(context, 'log checkpoints accept-loss', loss.account);
  requireAccepted(await acceptTailLoss({ ...context, ...opened }, cause, loss));
}

async function listLost(
  context: AdminContext,
  { checkpoints, store }: Opened,
  only: AccountId | null,
): Promise<readonly ListedCheckpoint[]> {
  const listed: ListedCheckpoint[] = [];
  for (const id of only === null ? (await newestCheckpoints(store)).keys() : [only]) {
    const lost = await lostCheckpoint(checkpoints, id, await context.events.head());
    if (lost === null) continue;
    const { state } = await context.entities.get(accounts, id);
    const username = 'username' in state ? state.username : null;
    listed.push({ id, username, size: lost.size, root: base64OfHex(lost.root) });
  }
  return listed;
}

/** Returns null for all accounts. */
async function chosen(context: AdminContext, { username, account, all }: AccountFlags): Promise<AccountId | null> {
  const given = [username, account, all].filter((flag) => flag !== undefined);
  if (given.length !== 1) throw new Refused('Give one of --username, --account and --all');
  if (username !== undefined) return requireAccount(context, username);
  return account ?? null;
}
