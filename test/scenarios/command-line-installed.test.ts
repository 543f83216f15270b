/**
 * The command line, packed and installed as a person installs it, on the oldest Node that it supports: signs in, works
 * with git through the credential helper, and signs out.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { ROOT } from '../architecture/source-tree.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { type CommandLine, commandLine, oldestNode } from '../support/command-line.ts';
import { type Account, admin, api, createAccount, type Finished, type Strata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

describe('The installed command line', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let cli: CommandLine;
  let tarball: string;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
    const folder = await tempDir(ending);
    const packed = spawnSync(process.execPath, [path.join(ROOT, 'apps/cli/build/pack.ts'), folder], {
      encoding: 'utf8',
    });
    assert.equal(packed.status, 0, packed.stderr);
    tarball = packed.stdout.trim();
    const prefix = path.join(folder, 'prefix');
    const args = ['install', '--global', '--offline', '--silent', '--prefix', prefix, tarball];
    const installed = spawnSync('npm', args, { encoding: 'utf8', cwd: folder, env: { ...process.env, HOME: folder } });
    assert.equal(installed.status, 0, installed.stderr);
    const program = path.join(prefix, 'bin', 'strata');
    cli = await commandLine(ending, strata, { command: [oldestNode() ?? process.execPath, program] });
  });

  /** Signs in as a person does who grants the login on another device. */
  async function signIn(
    args: readonly string[],
    { decision = 'grant', env = {} }: { decision?: 'grant' | 'deny'; env?: Readonly<Record<string, string>> } = {},
  ): Promise<Finished> {
    const [name = '', ...rest] = cli.command;
    const login = ['login', '--hostname', 'bench', '--poll-seconds', '0.2', ...args];
    const child = spawn(name, [...rest, ...login], { env: { ...cli.env, ...env }, stdio: 'pipe' });
    let [shown, errors] = ['', ''];
    child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
    const code = new Promise<string>((resolve, reject) => {
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        shown += text;
        const found = /code: ([A-Z]{4}-\d{4})/.exec(shown)?.[1];
        if (found !== undefined) resolve(found);
      });
      child.once('close', () => reject(new Error(`It showed no code: ${shown}${errors}`)));
    });
    const ended = once(child, 'close');
    const decided = await admin(strata, ['device', decision, '--username', 'ada', '--code', await code]);
    assert.equal((decided as { hostname: string }).hostname, 'bench');
    assert.match(shown, /\/access-tokens\/create\?auth_session_id=/);
    const [status] = (await ended) as [number | null];
    return { code: status, stdout: shown, stderr: errors };
  }

  test('is a small package without dependencies', async () => {
    assert.ok((await stat(tarball)).size < 1024 * 1024);
    assert.match(await cli.done(['--version']), /^\d+\.\d+\.\d+\n$/);
    const newest = await commandLine(ending, strata, {
      command: [process.execPath, ...cli.command.slice(1)],
      env: { SERVICE_TOKEN: ada.token },
    });
    assert.equal(await newest.done(['repo', 'list']), '');
  });

  test('is a library with types, for programs', async (context) => {
    const folder = await tempDir(context);
    const installed = spawnSync('npm', ['install', '--offline', '--silent', '--no-save', tarball], {
      ...{ encoding: 'utf8', cwd: folder, env: { ...process.env, HOME: folder } },
    });
    assert.equal(installed.status, 0, installed.stderr);
    const program = [
      `import { createClient } from 'strata-cli';`,
      `const client = createClient({ baseUrl: '${strata.url}', token: '${ada.token}' });`,
      `const { pagination } = await client.call('listRepositories', { query: { limit: 1 } });`,
      'console.log(pagination.limit);',
    ];
    await writeFile(
      path.join(folder, 'right.mts'),
      `declare const console: { log(value: number): void };\n${program.join('\n')}`,
    );
    await writeFile(path.join(folder, 'wrong.mts'), program.join('\n').replace('limit: 1', 'limited: 1'));
    await writeFile(path.join(folder, 'run.mjs'), program.join('\n'));
    const compile = (file: string) => {
      const args = [
        '--ignoreConfig',
        '--noEmit',
        '--module',
        'nodenext',
        '--target',
        'es2022',
        '--strict',
        '--types',
        '',
        file,
      ];
      return spawnSync(path.join(ROOT, 'node_modules/.bin/tsc'), args, { encoding: 'utf8', cwd: folder });
    };
    const right = compile('right.mts');
    assert.equal(right.status, 0, right.stdout);
    assert.match(compile('wrong.mts').stdout, /'limited' does not exist/);
    const [node = ''] = cli.command;
    assert.equal(spawnSync(node, ['run.mjs'], { encoding: 'utf8', cwd: folder }).stdout, '1\n');
  });

  test('is not signed in at first, and says how to sign in', async () => {
    const { code, stdout, stderr } = await cli.run(['repo', 'list']);
    assert.deepEqual([code, stdout], [3, '']);
    assert.match(stderr, /Not signed in to http:\/\/localhost:\d+\nstrata login/);
  });

  test('says that a login was denied, and stores nothing', async () => {
    const denied = await signIn([], { decision: 'deny' });
    assert.deepEqual([denied.code, denied.stderr], [1, 'error: The login was denied\n']);
    await assert.rejects(stat(cli.configFile), { code: 'ENOENT' });
  });

  test('revokes a token that it cannot store', async () => {
    const tokens = async (): Promise<readonly string[]> => {
      const { body } = await api(strata, ada.token, 'GET', '/v1/access-tokens');
      return (body as { access_tokens: { id: string }[] }).access_tokens.map(({ id }) => id);
    };
    const before = await tokens();
    const env = { SERVICE_CONFIG: path.join(tarball, 'config.toml') };
    const { code, stderr } = await signIn([], { env });
    assert.equal(code, 2, stderr);
    assert.match(stderr, /^error: .*config\.toml cannot be written: /);
    assert.deepEqual(await tokens(), before);
  });

  test('signs in, and git clones and pushes without another question', async () => {
    assert.match((await signIn(['--setup-git'])).stdout, /as ada\n/);
    const config = await readFile(cli.configFile, 'utf8');
    assert.equal((await stat(cli.configFile)).mode & 0o777, 0o600);
    assert.match(config, /username = "ada"/);
    assert.match(await cli.done(['whoami']), /^account\tada\n/);
    const made = await cli.json<{ clone_url: string }>(['repo', 'create', 'engine']);
    assert.deepEqual(made, (await api(strata, ada.token, 'GET', '/v1/repos/ada/engine')).body);
    const cloned = await cli.program(['git', 'clone', '--quiet', made.clone_url]);
    assert.equal(cloned.code, 0, cloned.stderr);
    const work = path.join(cli.home, 'work', 'engine');
    const script =
      'echo hello >README && git add README && git commit --quiet -m One && git push --quiet origin HEAD:main';
    const pushed = await cli.program(['sh', '-c', script], { cwd: work });
    assert.equal(pushed.code, 0, pushed.stderr);
    const { repositories } = await cli.json<{ repositories: { full_name: string; default_branch: string }[] }>([
      'repo',
      'list',
    ]);
    assert.deepEqual(
      repositories.map(({ full_name, default_branch }) => [full_name, default_branch]),
      [['ada/engine', 'main']],
    );
    assert.equal(await cli.done(['repo', 'url'], { cwd: work }), `${made.clone_url}\n`);
  });

  test('signs out: the token is revoked and forgotten', async () => {
    const token = /token = "(strata_\w+)"/.exec(await readFile(cli.configFile, 'utf8'))?.[1] ?? '';
    assert.equal((await api(strata, token, 'GET', '/v1/account/usage')).status, 200);
    assert.match(await cli.done(['logout']), /^Signed out of /);
    assert.equal((await api(strata, token, 'GET', '/v1/account/usage')).status, 401);
    assert.ok(!(await readFile(cli.configFile, 'utf8')).includes(token));
    assert.equal((await cli.run(['whoami'])).code, 3);
  });
});
