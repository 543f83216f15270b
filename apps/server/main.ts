/**
 * `npm start`: runs the server. With `--version` it prints that and ends.
 *
 * Invariants: the log line at the start names the host and port. What is not a line of the log is printed on a
 * terminal only, so that programs can read the output. A signal drains the requests under way before the
 * database closes, and a failure that nobody caught ends the process in the same order, with another exit code than 0.
 * A failed start prints the reason, for an expected one in one line, and leaves nothing running; a part that cannot be
 * reached yet is waited for (waiting-start.ts).
 */
import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DestinationStream, Logger } from 'pino';
import { DirectoryInUseError } from '../../adapters/node/directory-lock.ts';
import { LogImportError } from '../../adapters/postgres/log-import.ts';
import { NewerDatabaseError } from '../../adapters/postgres/migrate.ts';
import { DatabaseRoleError } from '../../adapters/postgres/serving-role.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { type ComposedServer, composeServer } from './compose.ts';
import { greeting } from './greeting.ts';
import { createLogger } from './logger.ts';
import { dropProxyVariables } from './proxy-variables.ts';
import { readSettings, type Settings } from './settings.ts';
import { SettingsError } from './settings-reader.ts';
import { takeStrayFailures } from './stray-failures.ts';
import { composeWhenReachable, listen } from './waiting-start.ts';

/** Requests under way may take this long after a signal; a second signal ends them immediately. */
const DRAIN_MS = 30_000;
/** After a failure that nobody caught, they may take only this long. */
const FAILED_DRAIN_MS = 2_000;
/** Closing the parts may take this long after that, and the process this long to end afterwards. */
const CLOSE_MS = 20_000;
const END_MS = 10_000;
const GREETING_PAUSE_MS = 1_000;

async function main(): Promise<void> {
  if (process.argv.includes('--version')) {
    process.stdout.write(`${packageJson.version}\n`);
    return;
  }
  dropProxyVariables(process.env);
  const settings = readSettings(process.env, process.env['INIT_CWD'] ?? process.cwd());
  const log = createLogger(settings.logLevel, await terminalDestination());
  for (const { name, nearest } of settings.misspelt) {
    log.warn({ name, nearest }, `${name} is no setting, and has no effect: did you mean ${nearest}?`);
  }
  const server = await composeWhenReachable({
    settings,
    log,
    pause: sleep,
    monotonicMs: () => performance.now(),
    compose: () => composeServer(settings, log),
  });
  await listen(server.http, settings).catch(async (error: unknown) => {
    // Above all the embedded PostgreSQL, which outlives this process.
    await server.stop();
    throw error;
  });
  server.runRecord.begin();
  const port = portOf(server.http);
  log.info(
    { port, host: settings.host, dataDir: settings.dataDir, readyMs: Math.round(performance.now()) },
    'Strata is ready',
  );

  // The read models of a first start log that they begin: the greeting stands below these lines.
  const ending = createEnding(server, log);
  if (process.stdout.isTTY) {
    setTimeout(() => greet(server, settings, ending), GREETING_PAUSE_MS);
  }
  takeStrayFailures({ log, count: server.countStray, end: ending.fail });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, ending.stop);
  const { renewCertificate } = server;
  // On a terminal it means that the terminal is closed.
  const onHangUp = renewCertificate === null || process.stdout.isTTY ? ending.stop : renewCertificate;
  process.on('SIGHUP', (signal) => void Promise.resolve(onHangUp(signal)).catch(() => undefined));
  tellLauncher(ending);
}

/** A log that cannot be read at this moment keeps nobody from reading where the server is. */
function greet(server: ComposedServer, settings: Settings, ending: Ending): void {
  const write = (hasAccount: boolean): void => {
    if (!ending.begun()) process.stdout.write(greeting(settings, hasAccount));
  };
  server.hasAccount().then(write, () => write(true));
}

interface Ending {
  begun(): boolean;
  /** Drains and ends with 0; the second signal ends what is under way immediately. */
  stop(signal: NodeJS.Signals): void;
  /** Ends with 1 after a failure that nobody caught: what is under way gets little time. */
  fail(reason: 'uncaught-exception' | 'unhandled-rejection'): void;
}

function createEnding(server: ComposedServer, log: Logger): Ending {
  let begun = false;
  const end = (drainMs: number): void => {
    begun = true;
    const drained = setTimeout(() => server.http.closeAllConnections(), drainMs);
    const closed = setTimeout(() => endNow(log, 'A part did not close in time'), drainMs + CLOSE_MS);
    server.stop().then(
      () => {
        for (const deadline of [drained, closed]) clearTimeout(deadline);
        log.info({}, 'Stopped');
        if (process.exitCode === 1) process.exit();
        setTimeout(() => endNow(log, 'Something kept the process running'), END_MS).unref();
      },
      (error: unknown) => {
        server.runRecord.end('close-failed');
        log.fatal({ err: error }, 'Stopping failed');
        process.exitCode = 1;
      },
    );
  };
  return {
    begun: () => begun,
    stop(signal) {
      if (begun) {
        log.warn({ signal }, 'Stopping immediately');
        server.http.closeAllConnections();
        return;
      }
      server.runRecord.end('stopped');
      log.info({ signal }, 'Stopping: requests under way are finished first');
      end(DRAIN_MS);
    },
    fail(reason) {
      // Also the last word on a stop under way.
      server.runRecord.end(reason);
      process.exitCode = 1;
      if (!begun) end(FAILED_DRAIN_MS);
    },
  };
}

/** Under the launcher (apps/launcher/supervise.mjs), says that the server is ready, and ends with it. */
function tellLauncher(ending: Ending): void {
  if (process.send === undefined) return;
  process.on('disconnect', () => ending.begun() || ending.stop('SIGTERM'));
  // The listener would keep the process running after its end.
  process.channel?.unref();
  process.send('ready');
}

/** Ends a process whose stop hangs. That loses nothing: all that was acknowledged is durable. */
function endNow(log: Logger, why: string): void {
  log.fatal({}, `${why}: ending the process`);
  process.exit(1);
}

/** Returns null when standard output is no terminal: then the formatter is not even loaded. */
async function terminalDestination(): Promise<DestinationStream | null> {
  if (!process.stdout.isTTY) return null;
  const { createTerminalDestination } = await import('./terminal-log.ts');
  return createTerminalDestination(process.stdout);
}

/** Returns the port that the server listens on. */
function portOf(http: Server): number {
  const address = http.address();
  if (address === null || typeof address === 'string') throw new TypeError('The server listens on no port');
  return address.port;
}

main().catch((error: unknown) => {
  const expected = [SettingsError, LogImportError, DatabaseRoleError, NewerDatabaseError, DirectoryInUseError].some(
    (kind) => error instanceof kind,
  );
  const text = error instanceof Error ? (expected ? error.message : (error.stack ?? error.message)) : String(error);
  process.stderr.write(`${text}\n`);
  process.exit(1);
});
