/** `strata-admin token create`: makes an access token of an account. */
import type { Command } from 'commander';
import { newTokenSecret } from '../../adapters/node/token-secret.ts';
import { createAccessToken } from '../../core/use-cases/tokens/access-tokens.ts';
import { tokenObject } from '../api/handlers/access-tokens.ts';
import type { Act } from './answer.ts';
import { type Permissions, withPermissionOptions } from './arguments.ts';
import { causeOf, requireAccepted, requireAccount } from './commands.ts';

export function addTokenCommand(program: Command, act: Act): void {
  const token = program.command('token').description('access tokens');

  const create = token.command('create').requiredOption('--username <name>').requiredOption('--name <label>');
  withPermissionOptions(create).action(
    act<{ username: string; name: string } & Permissions>(async (context, { username, ...settings }) => {
      const owner = await requireAccount(context, username);
      const secret = newTokenSecret();
      const origin = { account: owner, cause: await causeOf(context, 'token create', owner) };
      const created = requireAccepted(await createAccessToken(context, origin, settings, secret));
      const value = { ...tokenObject({ id: created.id, ...created.token }, null), token: secret };
      return { value, text: secret };
    }),
  );
}
