/**
 * Asks a client through its driver: starts the driver, hands it the request, and reads its answer.
 *
 * Invariants: a driver that does not end is ended, by its process id. What is reported of a client holds no token
 * and no path or port of this run, so that a table can be kept.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { type DriverAnswer, type DriverRequest, parseAnswer } from './driver-protocol.ts';

/** A slow machine under load needs seconds; a client that waits without end is what this finds. */
const DRIVER_MS_MAX = 120_000;

/** How a driver is started. */
export interface DriverCommand {
  readonly command: string;
  readonly args: readonly string[];
}

export async function askDriver(driver: DriverCommand, request: DriverRequest): Promise<DriverAnswer> {
  return parseAnswer(await runDriver(driver, request));
}

/** What a program wrote that read the request from its standard input. */
export async function runDriver(
  { command, args }: DriverCommand,
  request: object,
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  const child = spawn(command, [...args], {
    stdio: 'pipe',
    signal: AbortSignal.timeout(DRIVER_MS_MAX),
    killSignal: 'SIGKILL',
    // Credential helpers and settings of who runs this must not answer for the client.
    env: {
      ...process.env,
      HOME: '/nonexistent',
      XDG_CONFIG_HOME: undefined,
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_TERMINAL_PROMPT: '0',
    },
  });
  // A driver that ends without reading its input breaks the pipe; what it wrote tells why.
  child.stdin.on('error', () => undefined);
  child.stdin.end(JSON.stringify(request));
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: code as number | null, stdout, stderr };
}

/** One line of what a client showed, without what only this run has. */
export function shownWords(words: string, { url, token, folder }: Record<'url' | 'token' | 'folder', string>): string {
  const { host, hostname } = new URL(url);
  return words
    .replaceAll(encodeURIComponent(token), '<token>')
    .replaceAll(token, '<token>')
    .replaceAll(folder, '<folder>')
    .replaceAll(host, hostname)
    .replace(/\p{Cc}+/gu, ' ')
    .replace(/ {2,}/g, ' ')
    .trim();
}
