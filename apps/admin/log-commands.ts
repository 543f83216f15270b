/** `strata-admin log …`: verifies, exports and imports the event log. */
import path from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { noteSigning } from '../../adapters/node/note-signing.ts';
import { verifierKeyText } from '../../core/audit/checkpoint.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import { revokeLogKey, rotateLogKey } from '../../core/use-cases/auditing/log-keys.ts';
import { type CommandOutput, Refused } from './answer.ts';
import { accountId } from './arguments.ts';
import { addCheckpointCommands } from './checkpoint-commands.ts';
import { callersFolder, withAdminContext, withImport } from './context.ts';
import { exportLogToFile, exportLogToStream } from './export-log.ts';
import type { LogReport } from './verify-log.ts';
import { verifyLikeWorkers } from './verify-once.ts';

export function addLogCommands(program: Command, { act, print, wantsJson, operator }: CommandOutput): void {
  const log = program.command('log').description('the event log');

  log
    .command('verify')
    .description('reads the whole log and checks every stream; with --references what it refers to as well')
    .option('--references', 'read every layer and vault record that events name and check them')
    .option('--background-once', 'verify once what workers verify in the background, without a bound on the pace')
    .action(
      act<{ references?: boolean; backgroundOnce?: boolean }>(async (context, { references, backgroundOnce }) => {
        if (backgroundOnce === true && references === true) {
          throw new Refused('Give one of --references and --background-once');
        }
        if (backgroundOnce === true) return verifyLikeWorkers(context);
        const report = await context.verifyLog({ references: references === true });
        return { value: report, text: verifiedText(report), status: report.faults.length === 0 ? 0 : 1 };
      }),
    );

  log
    .command('rotate-key')
    .description('adds a key that signs the checkpoints of all accounts from now on; the keys before stay public')
    .action(
      act(async ({ logKeys, digest, settings }) => {
        const host = (): string => new URL(settings.baseUrl).host;
        const added = await rotateLogKey({ logKeys, signing: noteSigning, host });
        if (added === null) throw new Refused('Somebody else added a key at the same moment: nothing was changed');
        const key = verifierKeyText(digest, added);
        const text = `Added key ${added.generation}: ${key}\nRunning servers sign with it within a minute`;
        return { value: { generation: added.generation, key }, text };
      }),
    );

  log
    .command('revoke-key')
    .argument('<key>', 'a line of /.well-known/strata-log-keys')
    .description('revokes a stolen key of checkpoints, and adds one that nothing endorses: tell auditors its line')
    .action(async (line: string) =>
      act<unknown>(async ({ logKeys, digest, settings }) => {
        const host = (): string => new URL(settings.baseUrl).host;
        const added = await revokeLogKey({ logKeys, signing: noteSigning, host, digest }, line.trim());
        if (added === 'unknown-key') throw new Refused('It is no key of this service');
        if (added === 'already-revoked') throw new Refused('It is revoked already');
        if (added === 'lost-race') throw new Refused('Somebody else added a key at the same moment: try again');
        const key = verifierKeyText(digest, added);
        const text = `Revoked ${line.trim()}\nAdded key ${added.generation}: ${key}\nRunning servers sign with it within a minute, and with the revoked one no more`;
        return { value: { revoked: line.trim(), generation: added.generation, key }, text };
      })({}),
    );

  addCheckpointCommands(log, act);
  addExportCommand(log, { act, print, wantsJson, operator });

  log
    .command('import')
    .argument('<file>', 'what log export wrote, or - for standard input')
    .description('reads a whole log into an empty one, and verifies it; continues an interrupted import')
    .action(async (file: string) => {
      const { events, digest, found } = await withImport(file === '-' ? null : path.resolve(callersFolder(), file));
      const text = [
        `${events} events, ${found} of them found there; read back and verified, digest ${digest}`,
        'Read models were dropped: the server rebuilds them at its start. Layers, vault and master key are moved separately',
      ];
      print({ value: { events, found, digest }, text: text.join('\n') });
    });
}

function verifiedText({ events, streams, layers, faults, explained, unreadable }: LogReport): string {
  return [
    `${events} events in ${streams} streams, ${layers} layers`,
    ...faults,
    ...explained.map((text) => `explained: ${text}`),
    ...unreadable.map(({ id, name, deleted }) => {
      const which = `${name}${deleted ? ' (deleted)' : ''}, ${id}`;
      return `cannot be read until strata-admin storage adopt: ${which}`;
    }),
  ].join('\n');
}

function addExportCommand(log: Command, { act, wantsJson, operator }: CommandOutput): void {
  async function exportOne(account: AccountId, file: string): Promise<void> {
    if (file === '-' && !wantsJson()) {
      return withAdminContext(operator(), (context) => context.exportAccountLog(account, null));
    }
    if (file === '-') throw new InvalidArgumentError('With --json name a file: standard output holds the report.');
    await act<unknown>(async (context) => {
      const target = path.resolve(callersFolder(), file);
      await context.exportAccountLog(account, target);
      return { value: { account, file: target }, text: `Exported the log of ${account}` };
    })({});
  }

  log
    .command('export')
    .argument('<file>', 'a new file, or - for standard output')
    .description('writes the whole log, as it stands, to one file; continues an interrupted export')
    .option(
      '--account <id>',
      'only the log of this account, as strata audit verify reads it, without openings',
      accountId,
    )
    .action(async (file: string, { account }: { account?: AccountId }) => {
      if (account !== undefined) return exportOne(account, file);
      if (file !== '-') {
        return act<unknown>(async (context) => {
          const report = await exportLogToFile(context, path.resolve(callersFolder(), file));
          return { value: report, text: `Exported ${report.events} events, digest ${report.digest}` };
        })({});
      }
      if (wantsJson()) throw new InvalidArgumentError('With --json name a file: standard output holds the report.');
      const report = await withAdminContext(operator(), (context) => exportLogToStream(context, process.stdout));
      process.stderr.write(`Exported ${report.events} events, digest ${report.digest}\n`);
    });
}
