/**
 * The process that runs a cloud in its own network (network.ts): versitygw as IAM and STS and as S3, and the way
 * between them and the test.
 *
 * Invariants: it ends, with both servers, when its standard input does.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type ListenOptions, type NetConnectOpts } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PUBLIC_ADDRESS } from './network.ts';

const [program = '', root = ''] = process.argv.slice(2);
const [S3_PORT, IAM_PORT] = [7_070, 7_071];
const READY_SPAN_MS = 30_000;
const children: ChildProcess[] = [];

function run(words: readonly string[]): void {
  const child = spawn(program, ['--health', '/healthz', '--quiet', ...words], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  child.once('exit', end);
  children.push(child);
}

function end(): void {
  for (const child of children) child.kill('SIGKILL');
  process.exit();
}

/** Carries every connection to another place. */
async function carry(from: ListenOptions, to: NetConnectOpts): Promise<void> {
  const server = createServer((client) => {
    const upstream = connect(to);
    const cut = (): void => {
      client.destroy();
      upstream.destroy();
    };
    client.on('error', cut).on('close', cut).pipe(upstream);
    upstream.on('error', cut).on('close', cut).pipe(client);
  });
  server.listen(from);
  await once(server, 'listening');
}

async function isServing(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/healthz`)).ok;
  } catch {
    return false;
  }
}

async function ready(port: number): Promise<void> {
  for (const deadline = Date.now() + READY_SPAN_MS; !(await isServing(port)); await sleep(50)) {
    if (Date.now() > deadline) throw new Error(`Nothing serves on port ${port}`);
  }
}

process.stdin.once('end', end).resume();
const sockets = path.join(root, 'private.sock');
const iam = ['iam', '--dir', path.join(root, 'iam'), '--private-ports', sockets, '--disable-oidc-thumbprint-autofetch'];
run(['-p', `127.0.0.1:${IAM_PORT}`, ...iam]);
await ready(IAM_PORT);
const store = ['posix', '--disable-object-lock-file', path.join(root, 's3')];
run(['--region', 'us-east-1', '-p', `127.0.0.1:${S3_PORT}`, '--iam-standalone-endpoint', sockets, ...store]);
await ready(S3_PORT);
// The test's issuer, at the one address and port at which a token service looks for it.
await carry({ host: PUBLIC_ADDRESS, port: 443 }, { path: path.join(root, 'issuer.sock') });
await carry({ path: path.join(root, 's3.sock') }, { host: '127.0.0.1', port: S3_PORT });
await carry({ path: path.join(root, 'iam.sock') }, { host: '127.0.0.1', port: IAM_PORT });
process.stdout.write('ready\n');
