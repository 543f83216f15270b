/**
 * `strata-admin account reset-mfa`: removes the second factors of a person who lost them. There are no recovery codes,
 * so an operator must be sure who asks.
 */
import type { Command } from 'commander';
import type { MfaToken } from '../../core/account/mfa/state.ts';
import { findAccountState } from '../../core/use-cases/accounts/accounts.ts';
import { listMfaTokens, resetMfa } from '../../core/use-cases/signing-in/mfa-tokens.ts';
import { type Act, Refused } from './answer.ts';
import { causeOf, requireAccepted } from './commands.ts';

export function addResetMfaCommand(account: Command, act: Act): void {
  account
    .command('reset-mfa')
    .description('removes all MFA tokens of an account, whose owner then signs in with the password alone')
    .requiredOption('--username <name>')
    .option('--yes', 'do it; without this it says what it would do')
    .action(
      act<{ username: string; yes?: boolean }>(async (context, { username, yes }) => {
        const found = await findAccountState(context, username);
        if (found === null || (found.state.status !== 'open' && found.state.status !== 'closed')) {
          throw new Refused(`There is no account ${JSON.stringify(username)}`);
        }
        const { id } = found;
        if (yes !== true) throw new Refused(resetText(username, await listMfaTokens(context, id)));
        const cause = await causeOf(context, 'account reset-mfa', id);
        const { removed } = requireAccepted(await resetMfa(context, { account: id, cause }));
        const tokens = removed.map((token) => ({ id: token.id, kind: token.kind, name: token.name }));
        const value = { id, username, removed: tokens };
        return { value, text: `MFA tokens of ${username} removed: ${tokens.length}` };
      }),
    );
}

/** Describes what `account reset-mfa` would do. */
function resetText(username: string, tokens: readonly MfaToken[]): string {
  if (tokens.length === 0) return `${username} has no MFA tokens. Nothing was done.`;
  const names = tokens.map(({ kind, name, status }) => `- ${JSON.stringify(name)} (${kind}, ${status})`);
  return [
    `This would remove the MFA tokens of ${username}, who then signs in with the password alone:`,
    ...names,
    'It ends all sessions of the account; its access tokens stay.',
    'Nothing was done. Add --yes to do it.',
  ].join('\n');
}
