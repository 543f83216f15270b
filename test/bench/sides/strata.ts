/**
 * The service itself, started as `npm start` starts it, with an account and a token made by strata-admin.
 *
 * Invariants: it has a data directory of its own and no setting except port, folder and log level, so that the
 * bench measures the default installation: embedded PostgreSQL, layers on the file system, durable before the answer.
 */
import { spawn } from 'node:child_process';
import { mkdir, open } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { git } from '../git.ts';
import { findFreePort, waitUntilAnswering } from './ports.ts';
import { BENCH_USERNAME, type Repository, readLogTail, type Side, type SideContext } from './side.ts';

const PASSWORD = 'a long password for the bench';
const ROOT = path.resolve(import.meta.dirname, '../../..');

export async function startStrata(context: SideContext): Promise<Side> {
  const dataFolder = path.join(context.folder, 'data');
  await mkdir(dataFolder, { recursive: true });
  const port = await findFreePort();
  const environment = {
    ...withoutStrataSettings(process.env),
    STRATA_PORT: String(port),
    STRATA_DATA_DIR: dataFolder,
    STRATA_LOG_LEVEL: 'warn',
    STRATA_RATE_FACTOR: '1000',
    NODE_ENV: 'production',
  };
  const logFile = path.join(context.folder, 'server.log');
  const log = await open(logFile, 'w');
  const launch = [path.join(ROOT, 'apps/launcher/launch.cjs'), 'apps/server/main.ts'];
  const server = context.group.start(process.execPath, launch, {
    cwd: ROOT,
    env: environment,
    stdio: ['ignore', log.fd, log.fd],
  });
  await log.close();
  const ended = new Promise<never>((_, reject) => {
    server.once('exit', (status) => {
      reject(new Error(`The server ended with status ${status}:\n${readLogTail(logFile)}`));
    });
  });
  // The server also exits at the end of the bench, when nothing awaits this promise any more.
  ended.catch(() => undefined);
  await Promise.race([waitUntilAnswering(`http://127.0.0.1:${port}/readyz`, (status) => status === 200), ended]);
  const token = await createAccountAndToken(environment);
  return createSide(context, { port, token, logFile });
}

function createSide(
  context: SideContext,
  running: { readonly port: number; readonly token: string; readonly logFile: string },
): Side {
  const { port, token } = running;
  const authorization = `Bearer ${token}`;
  const call = async (method: string, target: string, body?: unknown): Promise<void> => {
    const answer = await fetch(`http://127.0.0.1:${port}${target}`, {
      method,
      headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answerText = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${target} answered ${answer.status}: ${answerText.slice(0, 400)}`);
  };
  const pathOf = (repository: Repository): string => `/v1/repos/${BENCH_USERNAME}/${repository.name}`;
  return {
    label: 'strata',
    role: 'product',
    durability: 'layer and event fsynced',
    group: context.group,
    port,
    username: BENCH_USERNAME,
    password: token,
    rest: { authorization, pathOf },
    async createRepository(name, content) {
      const repository: Repository = { name, path: `/r/${BENCH_USERNAME}/${name}.git` };
      await call('POST', '/v1/repositories', { name, default_branch: (content ?? context.project).defaultBranch });
      if (content !== null) {
        const url = `http://${BENCH_USERNAME}:${token}@127.0.0.1:${port}${repository.path}`;
        const refspecs = ['refs/heads/*:refs/heads/*', 'refs/tags/*:refs/tags/*'];
        await git(['push', '--quiet', url, ...refspecs], { cwd: content.folder });
      }
      return repository;
    },
    removeRepository: (repository) => call('DELETE', pathOf(repository)),
    logTail: () => readLogTail(running.logFile),
  };
}

async function createAccountAndToken(environment: NodeJS.ProcessEnv): Promise<string> {
  const account = ['account', 'create', '--username', BENCH_USERNAME, '--email', 'bench@example.org'];
  await runAdmin([...account, '--password-stdin', '--plan', 'PLATFORM', '--json'], environment, PASSWORD);
  const created = await runAdmin(
    ['token', 'create', '--username', BENCH_USERNAME, '--name', 'bench', '--json'],
    environment,
  );
  const parsed: unknown = JSON.parse(created);
  if (typeof parsed === 'object' && parsed !== null && 'token' in parsed && typeof parsed.token === 'string') {
    return parsed.token;
  }
  throw new Error('strata-admin token create printed no token');
}

async function runAdmin(args: readonly string[], environment: NodeJS.ProcessEnv, input = ''): Promise<string> {
  const child = spawn(process.execPath, [path.join(ROOT, 'apps/admin/main.ts'), ...args], {
    cwd: ROOT,
    env: environment,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const status = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  child.stdin.end(input);
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  if ((await status) !== 0)
    throw new Error(`strata-admin ${args.slice(0, 2).join(' ')} failed: ${errors.slice(-2000)}`);
  return output;
}

function withoutStrataSettings(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('STRATA_')));
}
