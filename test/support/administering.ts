/** Makes accounts of a running server from outside it, with the server's own configuration, as `strata-admin` does. */
import { pino } from 'pino';
import { composeFoundation } from '../../apps/server/foundation.ts';
import { readSettings } from '../../apps/server/settings.ts';
import type { Plan } from '../../core/account/plans.ts';
import { newAccount, newToken } from './accounts.ts';

/** Returns the account's id and the secret of a token that has all grants. */
export async function makeAccount(
  env: Readonly<Record<string, string>>,
  username: string,
  plan: Plan,
): Promise<{ readonly id: string; readonly token: string }> {
  const foundation = await composeFoundation(readSettings(env, process.cwd()), pino({ level: 'silent' }), {
    besideServer: true,
    asCommand: true,
    entitiesSizeBytesMax: 1024 * 1024,
    onFault: (what, cause) => {
      throw new Error(`A fault of ${what}`, { cause });
    },
  });
  try {
    const { context } = foundation;
    await context.entities.barrier();
    const id = await newAccount(context, username, plan);
    const { secret } = await newToken(context, id, { name: 'scenario' });
    return { id, token: secret };
  } finally {
    await foundation.close();
  }
}
