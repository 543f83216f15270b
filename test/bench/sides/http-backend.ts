/**
 * The peer: git's own HTTP server program behind nginx and fcgiwrap, configured as in good production.
 *
 * Invariants: nothing here slows it down. It has a Unix socket, prepared processes, sendfile, unlimited keep-alive,
 * no access log, credentials checked by plain comparison (a hashed password would cost about 1 ms per request) and
 * packed refs.
 */
import { access, constants, cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import path from 'node:path';
import { git, gitText } from '../git.ts';
import { findFreePort, waitUntilAnswering } from './ports.ts';
import { BENCH_USERNAME, type Repository, readLogTail, type Side, type SideContext } from './side.ts';

const PROGRAM_FOLDERS = ['/usr/sbin', '/usr/bin', '/usr/local/sbin', '/usr/local/bin'];
/** It has the length of the secret of an access token, so that both sides read the same number of bytes. */
const PASSWORD = 'benchmark_'.repeat(6).slice(0, 53);
const CGI_PROCESSES = 8;

export interface HttpBackendPrograms {
  readonly nginx: string;
  readonly fcgiwrap: string;
}

/** Returns null when Debian's package nginx or fcgiwrap is not installed. */
export async function findHttpBackendPrograms(): Promise<HttpBackendPrograms | null> {
  const nginx = await findProgram('nginx');
  const fcgiwrap = await findProgram('fcgiwrap');
  return nginx === null || fcgiwrap === null ? null : { nginx, fcgiwrap };
}

/** What the peer's repositories have beyond git's defaults. */
export interface HttpBackendVariant {
  readonly label: string;
  readonly durability: string;
  /** Names and values for the repository's configuration. */
  readonly config: Readonly<Record<string, string>>;
  /** Whether they are repacked into one pack with a bitmap and a commit-graph, as scheduled maintenance would do. */
  readonly maintained: boolean;
}

export interface HttpBackend {
  /** Returns a side on the same server, with repositories of this variant. */
  sideOf(variant: HttpBackendVariant): Side;
}

export const DEFAULT_VARIANT: HttpBackendVariant = {
  label: 'http-backend',
  durability: 'git defaults',
  config: {},
  maintained: false,
};

/** What git writes is on the disk before it answers, as with this service. */
export const SYNCED_VARIANT: HttpBackendVariant = {
  label: 'http-backend, fsync=all',
  durability: 'core.fsync=all',
  config: { 'core.fsync': 'all' },
  maintained: false,
};

export async function startHttpBackend(programs: HttpBackendPrograms, context: SideContext): Promise<HttpBackend> {
  const { folder, group } = context;
  const repositories = path.join(folder, 'repositories');
  await mkdir(repositories, { recursive: true });
  const port = await findFreePort();
  const socket = path.join(folder, 'fcgiwrap.socket');
  const gitPrograms = await gitText(['--exec-path']);
  await writeFile(path.join(folder, 'htpasswd'), `${BENCH_USERNAME}:{PLAIN}${PASSWORD}\n`);
  const settings = nginxSettings({
    folder,
    port,
    socket,
    repositories,
    cgi: path.join(gitPrograms, 'git-http-backend'),
  });
  await writeFile(path.join(folder, 'nginx.conf'), settings);
  await git(['init', '--quiet', '--bare', '--initial-branch', context.project.defaultBranch, 'template.git'], {
    cwd: folder,
  });

  // fcgiwrap passes its environment on to git; this is what a service manager would set.
  const environment = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' };
  const nginxArguments = [
    '-e',
    path.join(folder, 'nginx.error.log'),
    '-c',
    path.join(folder, 'nginx.conf'),
    '-p',
    folder,
  ];
  group.start(programs.fcgiwrap, ['-c', String(CGI_PROCESSES), '-s', `unix:${socket}`], {
    env: environment,
    stdio: 'ignore',
  });
  await waitForFile(socket);
  group.start(programs.nginx, nginxArguments, { env: environment, stdio: 'ignore' });
  await waitUntilAnswering(`http://127.0.0.1:${port}/`, (status) => status === 401);

  return { sideOf: (variant) => createSide(variant, context, { port, repositories }) };
}

interface Running {
  readonly port: number;
  readonly repositories: string;
}

function createSide(variant: HttpBackendVariant, context: SideContext, running: Running): Side {
  const { port, repositories } = running;
  const { folder, group } = context;
  const folderOf = (repository: Repository): string => path.join(repositories, `${repository.name}.git`);
  return {
    label: variant.label,
    role: 'peer',
    durability: variant.durability,
    group,
    port,
    username: BENCH_USERNAME,
    password: PASSWORD,
    rest: null,
    async createRepository(purpose, content) {
      // Variants share the server, so their names must differ.
      const name = `${purpose}-${variant.label.replace(/[^a-z]+/g, '-')}`;
      const repository: Repository = { name, path: `/r/${BENCH_USERNAME}/${name}.git` };
      const target = folderOf(repository);
      await cp(content?.folder ?? path.join(folder, 'template.git'), target, { recursive: true });
      const config = { 'http.receivepack': 'true', ...variant.config };
      for (const [key, value] of Object.entries(config)) await git(['config', key, value], { cwd: target });
      if (content !== null && variant.maintained) {
        await git(['repack', '-a', '-d', '-b', '-q'], { cwd: target });
        await git(['commit-graph', 'write', '--reachable', '--changed-paths'], { cwd: target });
      }
      return repository;
    },
    removeRepository: (repository) => rm(folderOf(repository), { recursive: true, force: true }),
    logTail: () => readLogTail(path.join(folder, 'nginx.error.log')),
  };
}

function nginxSettings(options: {
  readonly folder: string;
  readonly port: number;
  readonly socket: string;
  readonly repositories: string;
  readonly cgi: string;
}): string {
  const { folder, port, socket, repositories, cgi } = options;
  // When nginx runs as root, it would run its workers as another user, who could not reach the socket.
  const user = process.getuid?.() === 0 ? `user ${userInfo().username};` : '';
  return `
daemon off;
${user}
worker_processes auto;
pid ${folder}/nginx.pid;
error_log ${folder}/nginx.error.log warn;
events { worker_connections 512; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_timeout 300s;
  keepalive_requests 1000000000;
  client_max_body_size 0;
  client_body_buffer_size 1m;
  client_body_timeout 1h;
  client_body_temp_path ${folder}/temp-body;
  fastcgi_temp_path ${folder}/temp-fastcgi;
  proxy_temp_path ${folder}/temp-proxy;
  uwsgi_temp_path ${folder}/temp-uwsgi;
  scgi_temp_path ${folder}/temp-scgi;
  fastcgi_buffers 64 64k;
  fastcgi_read_timeout 1h;
  fastcgi_send_timeout 1h;
  server {
    listen 127.0.0.1:${port} backlog=512;
    auth_basic bench;
    auth_basic_user_file ${folder}/htpasswd;
    location ~ ^/r/${BENCH_USERNAME}(/.*)$ {
      fastcgi_pass unix:${socket};
      fastcgi_param SCRIPT_FILENAME ${cgi};
      fastcgi_param GIT_PROJECT_ROOT ${repositories};
      fastcgi_param GIT_HTTP_EXPORT_ALL 1;
      fastcgi_param GIT_PROTOCOL $http_git_protocol;
      fastcgi_param PATH_INFO $1;
      fastcgi_param QUERY_STRING $query_string;
      fastcgi_param REQUEST_METHOD $request_method;
      fastcgi_param CONTENT_TYPE $content_type;
      fastcgi_param CONTENT_LENGTH $content_length;
      fastcgi_param REMOTE_USER $remote_user;
      fastcgi_param REMOTE_ADDR $remote_addr;
      fastcgi_param SERVER_PROTOCOL $server_protocol;
    }
  }
}
`;
}

async function findProgram(name: string): Promise<string | null> {
  for (const folder of [...(process.env['PATH'] ?? '').split(path.delimiter), ...PROGRAM_FOLDERS]) {
    const file = path.join(folder, name);
    if (folder !== '' && (await isReachable(file, constants.X_OK))) return file;
  }
  return null;
}

async function isReachable(file: string, mode: number): Promise<boolean> {
  return access(file, mode).then(
    () => true,
    () => false,
  );
}

async function waitForFile(file: string): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!(await isReachable(file, constants.F_OK))) {
    if (performance.now() > deadline) throw new Error(`${file} did not appear`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
