/** Accounts and tokens of a running server, made beside it through its own configuration, as `strata-admin` works. */
import { pino } from 'pino';
import { newTokenSecret } from '../../adapters/node/token-secret.ts';
import { composeFoundation } from '../../apps/server/foundation.ts';
import { readSettings } from '../../apps/server/settings.ts';
import type { Plan } from '../../core/account/plans.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import { createAccessToken } from '../../core/use-cases/access-tokens.ts';
import { createAccount } from '../../core/use-cases/accounts.ts';
import { accepted, TOKEN_SETTINGS } from './accounts.ts';
import { CAUSE } from './node.ts';

interface Administering {
  account(username: string, plan: Plan): Promise<AccountId>;
  /** Its secret; it may do everything. */
  token(account: AccountId, name: string): Promise<string>;
  close(): Promise<void>;
}

export async function openAdmin(env: Readonly<Record<string, string>>): Promise<Administering> {
  const foundation = await composeFoundation(readSettings(env, process.cwd()), pino({ level: 'silent' }), {
    besideServer: true,
    entitiesSizeBytesMax: 1024 * 1024,
    onFault: (what, cause) => {
      throw new Error(`A fault of ${what}`, { cause });
    },
  });
  const { context } = foundation;
  await context.entities.barrier();
  return {
    account: async (username, plan) => {
      const wanted = { username, email: `${username}@example.org`, password: 'correct horse battery', plan };
      return accepted(await createAccount(context, CAUSE, wanted)).id;
    },
    token: async (account, name) => {
      const secret = newTokenSecret();
      const origin = { account, cause: CAUSE };
      accepted(await createAccessToken(context, origin, { ...TOKEN_SETTINGS, name }, secret));
      return secret;
    },
    close: () => foundation.close(),
  };
}
