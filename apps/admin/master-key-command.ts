/**
 * `strata-admin master-key rotate`: replaces the master key.
 *
 * Invariants: it prints no key. It may be killed at any point, also between the database and the file: the same
 * command continues. The old key leaves the data directory only when the database needs it no more.
 */
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { Logger } from 'pino';
import { makeNextMasterKey, parseMasterKey, replaceMasterKey } from '../../adapters/filesystem/master-key.ts';
import { patienceOf, whenConnectionsAreFree } from '../../adapters/postgres/free-connections.ts';
import { connectClient } from '../../adapters/postgres/pool.ts';
import { type RotationFault, rotateMasterKey } from '../../adapters/postgres/rotate-master-key.ts';
import { COMMAND_PATIENCE_MS } from '../server/database-connections.ts';
import { type Foundation, masterKeysOf } from '../server/foundation.ts';
import type { Settings } from '../server/settings.ts';
import { type Answer, type CommandOutput, Refused } from './answer.ts';
import { withFoundation } from './context.ts';

const WHY: Readonly<Record<RotationFault, string>> = {
  'same-key': 'The new key is the old one',
  'another-rotation':
    'Another rotation is unfinished or runs at this moment: run it to its end first, with the new key that it began with',
  'not-current': 'The master key of the settings is not the one that the database was last given',
};
/** `insufficient_privilege`. */
const NOT_ALLOWED = '42501';

interface RotateOptions {
  readonly yes?: boolean;
  readonly newKeyStdin?: boolean;
}

export function addMasterKeyCommand(program: Command, { print }: Pick<CommandOutput, 'print'>): void {
  program
    .command('master-key')
    .description('the key that wraps all secrets and personal data')
    .command('rotate')
    .description('replaces the master key; servers may run during it; after a kill the same command continues')
    .option('--new-key-stdin', 'with STRATA_MASTER_KEY: read the new key from standard input')
    .option('--yes', 'do it; without this it says what it would do')
    .action(async ({ yes, newKeyStdin }: RotateOptions) => {
      const given = newKeyStdin === true ? (await text(process.stdin)).trim() : null;
      if (given !== null) parseMasterKey(given, 'Standard input');
      print(
        await withFoundation(given, (foundation, settings, log) => {
          if (yes !== true) throw new Refused(plan(settings));
          return rotate(foundation, settings, log);
        }),
      );
    });
}

function plan({ masterKey }: Settings): string {
  const own = masterKey !== null;
  return [
    'This would replace the master key:',
    '- every data key, and every key of the service, is wrapped again; secrets and personal data stay as they are',
    own
      ? '- servers must have been started with STRATA_MASTER_KEY_NEW too, else they fail until they get the new key'
      : '- the file master-key in the data directory is replaced; servers that use it go on',
    '- backups of before can be read with the old key only: keep a copy of it for as long as you keep them',
    'Nothing was done. Add --yes to do it.',
  ].join('\n');
}

async function rotate(foundation: Foundation, settings: Settings, log: Logger): Promise<Answer> {
  const { dataDir, masterKey } = settings;
  const { failpoint } = foundation.context;
  if (masterKey === null) await makeNextMasterKey(dataDir);
  const [oldKey, newKey] = await masterKeysOf(settings);
  if (newKey === undefined) {
    throw new Refused('Set STRATA_MASTER_KEY_NEW to the new key (openssl rand -hex 32), or give it by --new-key-stdin');
  }
  await failpoint('master-key-stored');
  const connectionString = foundation.ownerConnectionString ?? foundation.connectionString;
  const patience = patienceOf(COMMAND_PATIENCE_MS, log);
  const client = await whenConnectionsAreFree(patience, () => connectClient({ connectionString, log }));
  try {
    const rotated = await rotateMasterKey({ client, oldKey, newKey, failpoint }).catch(refuseWithoutOwner);
    if ('fault' in rotated) throw new Refused(WHY[rotated.fault]);
    if (masterKey === null) await replaceMasterKey(dataDir);
    await failpoint('master-key-replaced');
    const next =
      masterKey === null
        ? 'The data directory has the new key'
        : 'Now set STRATA_MASTER_KEY to the new key on every node, and leave STRATA_MASTER_KEY_NEW out';
    return { value: { accounts: rotated.accounts }, text: `The master key is replaced. ${next}` };
  } finally {
    await client.end();
  }
}

function refuseWithoutOwner(error: unknown): never {
  if (error instanceof Error && 'code' in error && error.code === NOT_ALLOWED) {
    throw new Refused(
      'The role of STRATA_DATABASE_URL may not do this: set STRATA_DATABASE_OWNER_URL for this command',
    );
  }
  throw error;
}
