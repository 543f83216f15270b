/** `strata-admin device`: grants or denies a device login, as the verification page does. */
import { type Command, InvalidArgumentError } from 'commander';
import type { DeviceSessionId } from '../../core/kernel/ids.ts';
import {
  defaultTokenName,
  denyDeviceLogin,
  findPendingDeviceSessions,
  grantDeviceLogin,
  readPendingDeviceSession,
} from '../../core/use-cases/tokens/device-login.ts';
import { type Act, Refused } from './answer.ts';
import { type Permissions, withPermissionOptions } from './arguments.ts';
import { causeOf, requireAccepted, requireAccount } from './commands.ts';
import type { AdminContext } from './context.ts';

interface Chosen {
  readonly username: string;
  readonly code: string;
}

interface Granted extends Chosen, Permissions {
  readonly name?: string;
}

export function addDeviceCommands(program: Command, act: Act): void {
  const device = program.command('device').description('device logins that wait for their user');

  const grant = device
    .command('grant')
    .description('lets the device that shows the code have an access token')
    .requiredOption('--username <name>')
    .requiredOption('--code <code>', 'as the device shows it: WXYZ-1234', userCode)
    .option('--name <label>', "the token's name; `Command line, <date>` when left out");
  withPermissionOptions(grant).action(
    act<Granted>(async (context, { username, code, name, ...choices }) => {
      const account = await requireAccount(context, username);
      const id = await pendingLogin(context, code);
      const { hostname } = requireAccepted(await readPendingDeviceSession(context, id));
      const settings = { ...choices, name: name ?? defaultTokenName(context.clock.now()) };
      const origin = { account, cause: await causeOf(context, 'device grant', account) };
      const granted = requireAccepted(await grantDeviceLogin(context, origin, id, settings));
      const { scope, grants, repositoryIds, expiresAt } = granted.settings;
      const token = { name: settings.name, scope, grants, repository_ids: repositoryIds, expires_at: expiresAt };
      const value = { id, user_code: code, hostname, username, status: 'granted', ...token };
      return { value, text: `${JSON.stringify(hostname)} may log in as ${username}` };
    }),
  );

  device
    .command('deny')
    .description('refuses the device that shows the code')
    .requiredOption('--username <name>')
    .requiredOption('--code <code>', 'as the device shows it: WXYZ-1234', userCode)
    .action(
      act<Chosen>(async (context, { username, code }) => {
        const account = await requireAccount(context, username);
        const id = await pendingLogin(context, code);
        const { hostname } = requireAccepted(await readPendingDeviceSession(context, id));
        const cause = await causeOf(context, 'device deny', account);
        requireAccepted(await denyDeviceLogin(context, { account, cause }, id));
        const value = { id, user_code: code, hostname, username, status: 'denied' };
        return { value, text: `${JSON.stringify(hostname)} was refused` };
      }),
    );
}

async function pendingLogin(context: AdminContext, code: string): Promise<DeviceSessionId> {
  const [id, ...more] = await findPendingDeviceSessions(context, code);
  if (id === undefined) throw new Refused(`No login waits under the code ${code}`);
  if (more.length > 0) throw new Refused(`Several logins wait under the code ${code}: begin yours again`);
  return id;
}

/** Takes a code in either case, with or without the dash. */
function userCode(text: string): string {
  const [, letters, digits] = /^([A-Z]{4})[- ]?(\d{4})$/.exec(text.trim().toUpperCase()) ?? [];
  if (letters === undefined || digits === undefined) throw new InvalidArgumentError('Give a code such as WXYZ-1234.');
  return `${letters}-${digits}`;
}
