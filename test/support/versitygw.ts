/**
 * A real S3 server on a folder of its own: versitygw, which `.ci/s3-tools.sh` installs.
 *
 * Invariants: it listens on the loopback interface only and is ended by its pid; the folder holds every object that
 * it acknowledged, however it ends.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { cleanUp, type Ending } from './cleanup.ts';
import { freePort } from './free-port.ts';
import { tempDir } from './temp-dir.ts';
import { findTool } from './tools.ts';

const READY_SPAN_MS = 20_000;

export interface S3Server {
  readonly url: string;
  readonly port: number;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** An empty bucket, and the folder of its objects. */
  readonly bucket: string;
  readonly folder: string;
  /** Sends SIGKILL and waits for the end. */
  kill(): Promise<void>;
  /** Starts it again on the same folder and port. */
  start(): Promise<void>;
}

export interface S3ServerOptions {
  /** Files in PEM, for https. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string };
  /** It finds the bucket's name before this host too. */
  readonly virtualDomain?: string;
}

/** Starts a server, which ends with the test. */
export async function startS3Server(context: Ending, options: S3ServerOptions = {}): Promise<S3Server> {
  const program = findTool('versitygw');
  if (program === null) throw new TypeError('The program versitygw is not installed');
  const root = await tempDir(context);
  const port = await freePort();
  const [bucket, region] = ['layers', 'us-east-1'];
  const keys = { accessKeyId: 'AKIATESTSERVER000001', secretAccessKey: 'secret-of-the-test-server-0123456789abcd' };
  const folder = path.join(root, bucket);
  await mkdir(folder);
  const { tls, virtualDomain } = options;
  const url = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`;
  const words = ['--health', '/healthz', '--quiet', '--region', region, '-p', `127.0.0.1:${port}`];
  if (tls !== undefined) words.push('--cert', tls.certFile, '--key', tls.keyFile);
  if (virtualDomain !== undefined) words.push('--virtual-domain', virtualDomain);
  // Its own programs must not read its user's settings.
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: root,
    ROOT_ACCESS_KEY_ID: keys.accessKeyId,
    ROOT_SECRET_ACCESS_KEY: keys.secretAccessKey,
  };
  let child: ChildProcess | null = null;

  async function start(): Promise<void> {
    const started = spawn(program ?? '', [...words, 'posix', '--disable-object-lock-file', root], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child = started;
    let written = '';
    for (const stream of [started.stdout, started.stderr])
      stream.on('data', (text: Buffer) => (written += String(text)));
    for (const deadline = Date.now() + READY_SPAN_MS; !(await isServing(port)); ) {
      if (started.exitCode !== null || Date.now() > deadline) throw new Error(`versitygw does not serve:\n${written}`);
      await sleep(20);
    }
  }

  async function kill(): Promise<void> {
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  cleanUp(context, kill);
  await start();
  return { url, port, region, bucket, folder, ...keys, kill, start };
}

/** Whether it accepts connections: with TLS, its certificate is for the tests that use it. */
async function isServing(port: number): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
