/**
 * `npm run demo`: a server that is full from its first minute, to look at and to take screenshots of.
 *
 * Invariants: it works in a data directory of its own, never in that of `npm start`, and everything listens on the
 * loopback interface. A folder that was not filled to its end is not served.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { selfSignedCertificate } from '../support/self-signed-certificate.ts';
import { SERVER_COMMAND } from '../support/server-command.ts';
import { DEMO, fillDemo } from './fill.ts';
import { startReceiver } from './receiver.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const WORKING_DIRECTORY = process.env['INIT_CWD'] ?? process.cwd();
const DATA_DIR = path.resolve(WORKING_DIRECTORY, process.env['STRATA_DATA_DIR'] ?? './data-demo');
const PORT = Number(process.env['STRATA_PORT'] ?? 8080);
const READY_SPAN_MS = 60_000;

/** Written when the folder is full: where the demo's own receiver of webhooks listens, with its certificate. */
const MADE = z.object({ receiverPort: z.number(), cert: z.string(), key: z.string() });
type Made = z.output<typeof MADE>;

async function main(): Promise<void> {
  await mkdir(DATA_DIR, { recursive: true });
  const file = path.join(DATA_DIR, 'demo.json');
  const known = existsSync(file) ? MADE.parse(JSON.parse(await readFile(file, 'utf8'))) : null;
  if (known === null && (await readdir(DATA_DIR)).length > 0) {
    throw new Error(`${DATA_DIR} is no finished demo: remove the folder, or name another with STRATA_DATA_DIR`);
  }
  const certificate = known ?? selfSignedCertificate();
  const receiver = await startReceiver(certificate, known?.receiverPort ?? 0);
  const made: Made = { ...certificate, receiverPort: receiver.port };
  const authority = path.join(DATA_DIR, 'receiver.pem');
  await writeFile(authority, made.cert);
  const env = {
    ...Object.fromEntries(
      Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    ),
    ...{ STRATA_DATA_DIR: DATA_DIR, STRATA_PORT: String(PORT), STRATA_ALLOW_PRIVATE_TARGETS: 'true' },
    ...{ STRATA_BYO_REQUIRES_PLAN: 'false' },
    NODE_EXTRA_CA_CERTS: authority,
  };
  if (known === null) process.stdout.write(`Making the demo in ${DATA_DIR}\n`);
  // The log is for who asks for it. Why a server does not start is on its standard error.
  const isQuiet = process.env['STRATA_LOG_LEVEL'] === undefined;
  const server = spawn(process.execPath, SERVER_COMMAND, {
    cwd: ROOT,
    env,
    stdio: ['inherit', isQuiet ? 'ignore' : 'inherit', 'inherit'],
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // A terminal sends Ctrl-C to the server as well; a second SIGINT would make it stop immediately.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) server.kill(signal);
    });
  }
  const ended = once(server, 'exit');
  try {
    const url = `http://localhost:${PORT}`;
    await untilReady(url, server);
    if (known === null) {
      const kind = `https://localhost:${made.receiverPort}/hooks`;
      // No server listens on the discard port.
      await fillDemo({ env, url }, { kind, dead: 'https://localhost:9' });
      await writeFile(file, JSON.stringify(made), { mode: 0o600 });
    }
    const rows = { Address: `${url}/sign-in`, Name: DEMO.username, Password: DEMO.password };
    process.stdout.write(inBox(Object.entries(rows).map(([label, text]) => `${label.padEnd(8)}  ${text}`)));
  } catch (error) {
    server.kill('SIGTERM');
    throw error;
  } finally {
    await ended;
    receiver.close();
  }
  process.exitCode = server.exitCode ?? 1;
}

function inBox(lines: readonly string[]): string {
  const width = Math.max(...lines.map(({ length }) => length));
  const bar = '─'.repeat(width + 4);
  const rows = lines.map((line) => `│  ${line.padEnd(width)}  │\n`);
  return `\n┌${bar}┐\n${rows.join('')}└${bar}┘\n\n`;
}

async function untilReady(url: string, server: ChildProcess): Promise<void> {
  const deadline = Date.now() + READY_SPAN_MS;
  while (Date.now() < deadline) {
    if (server.exitCode !== null) throw new Error('The server ended before the demo was filled');
    const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(1_000) }).catch(() => null);
    if (answer?.status === 200) return;
    await sleep(100);
  }
  throw new Error('The server is not ready');
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
