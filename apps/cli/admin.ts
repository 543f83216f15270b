/**
 * `strata-admin`: what operators do to accounts, tokens, projections and the log of a server.
 *
 * Must stay true: it works on the server's own configuration, whether the server runs or not; with `--json`
 * standard output is one JSON value and nothing else. Exit status 0 done, 1 refused or failed, 2 usage.
 */
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { GRANTS, type Grant, SCOPES, type Scope } from '../../core/access-token/grants.ts';
import { PLANS, type Plan } from '../../core/account/plans.ts';
import {
  type AccountId,
  parseTimestamp,
  parseUuid,
  type RepositoryId,
  type Timestamp,
  type Uuid,
} from '../../core/kernel/ids.ts';
import type { Cause } from '../../core/kernel/envelope.ts';
import type { Refusal } from '../../core/kernel/refusal.ts';
import { createAccessToken } from '../../core/use-cases/access-tokens.ts';
import { changePassword, changePlan, createAccount, findAccount } from '../../core/use-cases/accounts.ts';
import { newTokenSecret } from '../../adapters/node/token-secret.ts';
import { refusalText } from '../api/refusals.ts';
import { type AdminContext, callersFolder, withAdminContext, withImport } from './admin-context.ts';
import { exportLogToFile, exportLogToStream } from './export-log.ts';
import { type ParkedReport, parkedStreams, replayParked } from './parked-streams.ts';
import { rebuildProjections } from './rebuild-projections.ts';
import { tokenObject } from '../api/handlers/access-tokens.ts';

/** An end that the operator is told of in one line. */
class Refused extends Error {
  override readonly name = 'Refused';
}

interface Answer {
  /** The value printed with `--json`. */
  readonly value: unknown;
  /** What people read. */
  readonly text: string;
  /** Exit status; 0 when absent. */
  readonly status?: number;
}

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
      const created = accepted(
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
      const id = await existing(context, username);
      accepted(await changePlan(context, causeOf(context, 'account set-plan'), id, plan));
      return { value: { id, username, plan }, text: `${username} is on the plan ${plan} now` };
    }),
  );

account
  .command('reset-password')
  .requiredOption('--username <name>')
  .requiredOption('--password-stdin', 'read the password from standard input, up to its first line feed')
  .action(
    act<{ username: string }>(async (context, { username }) => {
      const id = await existing(context, username);
      const password = await passwordFromStdin();
      accepted(await changePassword(context, causeOf(context, 'account reset-password'), id, password));
      return { value: { id, username }, text: `${username} has a new password` };
    }),
  );

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
      const owner = await existing(context, username);
      const secret = newTokenSecret();
      const origin = { account: owner, cause: causeOf(context, 'token create') };
      const created = accepted(await createAccessToken(context, origin, settings, secret));
      const value = { ...tokenObject({ id: created.id, ...created.token }, null), token: secret };
      return { value, text: secret };
    }),
  );

const projections = program.command('projections').description('read models');

projections
  .command('rebuild')
  .description('builds every read model anew from the log and puts the new one in the place of the old')
  .option('--verify', 'compare the new with the live one row by row instead, and report every difference')
  .action(
    act<{ verify?: boolean }>(async (context, { verify }) => {
      const report = await rebuildProjections(context.withProjections, { verify: verify === true });
      const text = report.map(({ model, rows, differences }) =>
        rows === null ? `${model}: rebuilt` : `${model}: ${rows} rows, ${differences} differences`,
      );
      const status = report.some(({ differences }) => differences > 0) ? 1 : 0;
      return { value: { projections: report }, text: text.join('\n'), status };
    }),
  );

projections
  .command('parked')
  .description('lists the streams that a read model could not apply, with the reason; reading their rows answers 503')
  .action(
    act(async (context) => {
      const parked = await parkedStreams(context.withProjections);
      return { value: { parked }, text: parked.length === 0 ? 'Nothing is parked' : parked.map(parkedLine).join('\n') };
    }),
  );

projections
  .command('replay')
  .description('tries parked streams again, and models that halted')
  .option('--model <name>', 'only those of this read model')
  .option('--stream <name>', 'only this stream')
  .action(
    act<{ model?: string; stream?: string }>(async (context, { model = null, stream = null }) => {
      const report = await replayParked(context.withProjections, { model, stream });
      const lines = [
        ...report.replayed.map((done) => `${done.model}: ${done.stream} is applied`),
        ...report.parked.map((left) => `still parked: ${parkedLine(left)}`),
      ];
      const text = lines.length === 0 ? 'Nothing is parked' : lines.join('\n');
      return { value: report, text, status: report.parked.length === 0 ? 0 : 1 };
    }),
  );

function parkedLine({ model, stream, revision, events, attempts, error }: ParkedReport): string {
  return `${model}: ${stream} from revision ${revision}, ${events} events, tried ${attempts} times: ${error}`;
}

const log = program.command('log').description('the event log');

log
  .command('verify')
  .description('reads the whole log and checks every stream; with --references every layer as well')
  .option('--references', 'read every layer that an event names and check its bytes')
  .action(
    act<{ references?: boolean }>(async (context, { references }) => {
      const report = await context.verifyLog({ references: references === true });
      const lines = [`${report.events} events in ${report.streams} streams, ${report.layers} layers`, ...report.faults];
      return { value: report, text: lines.join('\n'), status: report.faults.length === 0 ? 0 : 1 };
    }),
  );

log
  .command('export')
  .argument('<file>', 'a new file, or - for standard output')
  .description('writes the whole log, as it stands now, to one file; goes on with one that was cut short')
  .action(async (file: string) => {
    if (file !== '-') {
      return act<unknown>(async (context) => {
        const report = await exportLogToFile(context, path.resolve(callersFolder(), file));
        return { value: report, text: `Exported ${report.events} events, digest ${report.digest}` };
      })({});
    }
    if (wantsJson()) throw new InvalidArgumentError('With --json name a file: standard output holds the report.');
    const report = await withAdminContext((context) => exportLogToStream(context, process.stdout));
    process.stderr.write(`Exported ${report.events} events, digest ${report.digest}\n`);
  });

log
  .command('import')
  .argument('<file>', 'what log export wrote, or - for standard input')
  .description('reads a whole log into an empty one, and verifies it; goes on with an import that was cut short')
  .action(async (file: string) => {
    const { events, digest, found } = await withImport(file === '-' ? null : path.resolve(callersFolder(), file));
    const text = [
      `${events} events, ${found} of them found there; read back and verified, digest ${digest}`,
      'Read models were dropped: they are built anew when the server starts. Layers, vault and master key are moved apart',
    ];
    print({ value: { events, found, digest }, text: text.join('\n') });
  });

function causeOf(context: AdminContext, command: string): Cause {
  return {
    actor: { kind: 'admin', id: command },
    requestId: context.ids.next<Uuid>(),
    sourceAddressRef: null,
    causationId: null,
  };
}

function accepted<Result extends object>(result: Result | { readonly refused: Refusal }): Result {
  if ('refused' in result) throw new Refused(refusalText(result.refused));
  return result;
}

async function existing(context: AdminContext, username: string): Promise<AccountId> {
  const id = await findAccount(context, username);
  if (id === null) throw new Refused(`There is no account ${JSON.stringify(username)}`);
  return id;
}

/** The first line, without its line feed: what `echo` and a file with one line give. */
async function passwordFromStdin(): Promise<string> {
  return (await text(process.stdin)).split(/\r?\n/, 1)[0] ?? '';
}

function grantList(text: string): readonly Grant[] {
  return text.split(',').map((name) => {
    const grant = GRANTS.find((candidate) => candidate === name.trim());
    if (grant === undefined) throw new InvalidArgumentError(`${JSON.stringify(name)} is no grant.`);
    return grant;
  });
}

function idList(text: string): readonly RepositoryId[] {
  return text.split(',').map((name) => {
    const id = parseUuid<RepositoryId>(name.trim());
    if (id === null) throw new InvalidArgumentError(`${JSON.stringify(name)} is no id.`);
    return id;
  });
}

function instant(text: string): Timestamp {
  const at = new Date(text);
  const parsed = Number.isNaN(at.getTime()) ? null : parseTimestamp(at.toISOString());
  if (parsed === null) throw new InvalidArgumentError('Give a time such as 2030-01-31T00:00:00Z.');
  return parsed;
}

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Help and version were asked for; everything else is a usage fault that commander has explained.
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  } else {
    process.stderr.write(`strata-admin: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
