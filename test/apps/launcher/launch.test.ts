/**
 * The launcher on small test projects, with the real npm. Each has its packages packed beside it, so
 * that nothing is downloaded.
 *
 * Invariants: no case touches this project's node_modules, and each runs with an empty home directory.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { NODE_PACKAGES } from '../../../apps/launcher/node-choice.mjs';
import { LAUNCHER_OPTIONS } from '../../support/server-command.ts';

const launcher = join(import.meta.dirname, '..', '..', '..', 'apps', 'launcher');
const scratch = mkdtempSync(join(tmpdir(), 'strata-launcher-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

function write(file: string, text: string): string {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

/** Packs a package that exports its version; returns its entry in the lock file. */
function pack(root: string, name: string, version: string, flags: object = {}) {
  const folder = join(root, 'packed');
  write(join(folder, 'package', 'package.json'), JSON.stringify({ name, version, type: 'module', exports: './a.js' }));
  write(join(folder, 'package', 'a.js'), `export default '${version}';\n`);
  const file = `${name}-${version}.tgz`;
  const packed = spawnSync('tar', ['-czf', join(root, file), '-C', folder, 'package']);
  assert.equal(packed.status, 0, String(packed.stderr));
  rmSync(folder, { recursive: true });
  const digest = createHash('sha512')
    .update(readFileSync(join(root, file)))
    .digest('base64');
  return { version, resolved: `file:${file}`, integrity: `sha512-${digest}`, ...flags };
}

/** Writes package.json and its lock file: `ground` is a production package, `tool` a development one. */
function lockVersions(root: string, ground: string, tool: string): void {
  const dependencies = { ground: `file:ground-${ground}.tgz` };
  const devDependencies = { tool: `file:tool-${tool}.tgz` };
  const self = { name: 'sample', version: '1.0.0', dependencies, devDependencies };
  const packages = {
    '': self,
    'node_modules/ground': pack(root, 'ground', ground),
    'node_modules/tool': pack(root, 'tool', tool, { dev: true }),
  };
  const { name, version } = self;
  write(join(root, 'package.json'), JSON.stringify({ ...self, type: 'module' }));
  write(
    join(root, 'package-lock.json'),
    JSON.stringify({ name, version, lockfileVersion: 3, requires: true, packages }),
  );
}

/** A project with two packages and entries that print what they see. */
function project(prefix = 'project-'): string {
  const root = mkdtempSync(join(scratch, prefix));
  cpSync(launcher, join(root, 'apps', 'launcher'), { recursive: true });
  lockVersions(root, '1.0.0', '1.0.0');
  const tell = 'console.log(JSON.stringify({ ground, args: process.argv.slice(2), ppid: process.ppid }));';
  write(join(root, 'apps', 'server.ts'), `import ground from 'ground';\n${tell}\n`);
  write(join(root, 'test', 'run.ts'), `import 'tool';\nimport ground from 'ground';\n${tell}\n`);
  return root;
}

interface Running {
  readonly ended: Promise<Ended>;
  readonly pid: number;
  kill(signal: NodeJS.Signals): void;
  /** Resolves with standard output when it holds the text. */
  said(text: string): Promise<string>;
}

function launch(root: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Running {
  return launchBy(process.execPath, [join(root, 'apps', 'launcher', 'launch.cjs'), ...args], root, env);
}

/** Makes the launcher with an entry the script `start` of a project's package.json. */
function scriptStart(root: string, entry: string): void {
  const file = join(root, 'package.json');
  const scripts = { start: `node apps/launcher/launch.cjs ${entry}` };
  write(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), scripts }));
}

function launchBy(program: string, args: readonly string[], root: string, env: NodeJS.ProcessEnv): Running {
  const home = join(root, 'home');
  mkdirSync(home, { recursive: true });
  const child = spawn(program, args, {
    cwd: root,
    env: { PATH: process.env['PATH'], HOME: home, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  const said = (text: string) =>
    new Promise<string>((resolve, reject) => {
      const look = () => void (stdout.includes(text) && resolve(stdout));
      child.stdout.on('data', look);
      child.on('close', () => reject(new Error(`ended without saying ${text}: ${stdout}${stderr}`)));
      look();
    });
  return { ended, pid: child.pid ?? 0, kill: (signal) => void child.kill(signal), said };
}

/** Launches with an npm that removes the installed packages and never ends; resolves when that npm runs. */
async function launchWithEndlessNpm(root: string): Promise<{ running: Running; npm: number }> {
  const bin = join(root, 'endless');
  const pidFile = join(root, 'npm.pid');
  const script = [
    '#!/bin/sh',
    'rm -rf node_modules',
    `echo $$ > ${pidFile}.new`,
    `mv ${pidFile}.new ${pidFile}`,
    'exec sleep 600',
  ];
  write(join(bin, 'npm'), `${script.join('\n')}\n`);
  chmodSync(join(bin, 'npm'), 0o755);
  const running = launch(root, ['apps/server.ts'], { PATH: `${bin}:${process.env['PATH']}` });
  while (!existsSync(pidFile)) await new Promise((resolve) => setTimeout(resolve, 20));
  return { running, npm: Number(readFileSync(pidFile, 'utf8')) };
}

/** A Node that cannot replace itself, as before 22.15. */
const OLDER_NODE = { NODE_OPTIONS: '--import=data:text/javascript,delete%20process.execve' };

/** A process that says to be of another machine, and of another version of Node. */
function fakedProcess(machine: { readonly platform: string; readonly arch: string }, node: string): NodeJS.ProcessEnv {
  const versions = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${node}' } });`;
  const script = Object.entries(machine).map(
    ([name, value]) => `Object.defineProperty(process, '${name}', { value: '${value}' });`,
  );
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(versions + script.join(''))}` };
}

describe('installing', () => {
  test('installs on the first start, prints one line, and prints nothing on the second', async () => {
    const root = project();
    const first = await launch(root, ['test/run.ts', 'a', '--b']).ended;
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stderr, /^strata: installing packages \(nothing is installed\)/);
    assert.deepEqual(JSON.parse(first.stdout).args, ['a', '--b']);
    const second = await launch(root, ['test/run.ts']).ended;
    assert.equal(second.code, 0, second.stderr);
    assert.equal(second.stderr, '');
  });

  test('installs and starts in a folder whose name means something to a shell, and with a broken .gitconfig', async () => {
    const root = project('my "odd" $HOME `id` & \'co\' checkout-');
    scriptStart(root, 'apps/server.ts');
    write(join(root, 'home', '.gitconfig'), '[broken\n');
    const { code, stdout, stderr } = await launchBy('npm', ['--silent', 'start', '--', '$a', '`b`'], root, {}).ended;
    assert.equal(code, 0, stderr);
    assert.deepEqual(JSON.parse(stdout).args, ['$a', '`b`']);
  });

  test('says before anything else that Node loads no module below a backslash', async () => {
    const root = project('back\\slash-');
    scriptStart(root, 'apps/server.ts');
    const said = `strata: Node loads no module from below a folder whose name holds a backslash: move ${root} elsewhere\n`;
    for (const [program, args] of [
      ['npm', ['--silent', 'start']],
      [process.execPath, [join(root, 'apps', 'launcher', 'launch.cjs'), 'apps/server.ts']],
    ] as const) {
      const { code, stdout, stderr } = await launchBy(program, args, root, {}).ended;
      assert.deepEqual([code, stdout, stderr], [1, '', said]);
    }
    assert.equal(existsSync(join(root, 'node_modules')), false);
  });

  test('installs again when the lock file names another version', async () => {
    const root = project();
    await launch(root, ['apps/server.ts']).ended;
    lockVersions(root, '1.1.0', '1.0.0');
    const ended = await launch(root, ['apps/server.ts']).ended;
    assert.match(ended.stderr, /ground is 1\.0\.0 rather than 1\.1\.0/);
    assert.equal(JSON.parse(ended.stdout).ground, '1.1.0');
  });

  test('accepts an install without development packages, and adds them only for tests', async () => {
    const root = project();
    const npm = spawnSync('npm', ['ci', '--omit=dev'], { cwd: root, env: { ...process.env, HOME: root } });
    assert.equal(npm.status, 0, String(npm.stderr));
    const server = await launch(root, ['apps/server.ts']).ended;
    assert.equal(server.code, 0, server.stderr);
    assert.equal(server.stderr, '');
    lockVersions(root, '1.2.0', '1.0.0');
    await launch(root, ['apps/server.ts']).ended;
    assert.equal(existsSync(join(root, 'node_modules', 'tool')), false, 'an update keeps them left out');
    const tests = await launch(root, ['test/run.ts'], { NODE_ENV: 'production' }).ended;
    assert.match(tests.stderr, /tool is missing/);
    assert.equal(tests.code, 0, tests.stderr);
  });

  test('installs the packages of the command line for its own entries and for tests, not for other ones', async () => {
    const root = project();
    const commandLine = join(root, 'apps', 'cli');
    mkdirSync(commandLine);
    lockVersions(commandLine, '1.0.0', '1.0.0');
    const entry = `import tool from 'tool';\nconsole.log(tool);\n`;
    write(join(commandLine, 'checkout.ts'), entry);
    assert.equal((await launch(root, ['apps/server.ts']).ended).code, 0);
    assert.ok(!existsSync(join(commandLine, 'node_modules')));
    const started = await launch(root, ['apps/cli/checkout.ts']).ended;
    assert.deepEqual([started.code, started.stdout], [0, '1.0.0\n'], started.stderr);
    rmSync(join(commandLine, 'node_modules'), { recursive: true });
    assert.equal((await launch(root, ['test/run.ts']).ended).code, 0);
    assert.ok(existsSync(join(commandLine, 'node_modules', 'tool')));
  });

  test('installs the packages of the command line with those of a first `npm start`, which goes on without', async () => {
    const server = (): { readonly root: string; readonly commandLine: string } => {
      const root = project();
      const commandLine = join(root, 'apps', 'cli');
      mkdirSync(commandLine);
      lockVersions(commandLine, '1.0.0', '1.0.0');
      write(join(root, 'apps', 'server', 'main.ts'), "import ground from 'ground';\nconsole.log(ground);\n");
      return { root, commandLine };
    };
    const start = ['apps/server/main.ts'];
    const { root, commandLine } = server();
    const first = await launch(root, start).ended;
    assert.deepEqual([first.code, first.stdout], [0, '1.0.0\n'], first.stderr);
    assert.ok(existsSync(join(commandLine, 'node_modules', 'tool')));
    rmSync(join(commandLine, 'node_modules'), { recursive: true });
    const later = await launch(root, start).ended;
    assert.deepEqual([later.code, later.stderr, existsSync(join(commandLine, 'node_modules'))], [0, '', false]);

    const production = server();
    assert.equal((await launch(production.root, start, { NODE_ENV: 'production' }).ended).code, 0);
    assert.ok(!existsSync(join(production.commandLine, 'node_modules')));

    const cut = server();
    // Other contents than npm has seen, so that its cache does not help.
    lockVersions(cut.commandLine, '1.0.0', '9.9.9');
    rmSync(join(cut.commandLine, 'tool-9.9.9.tgz'));
    const without = await launch(cut.root, start).ended;
    assert.deepEqual([without.code, without.stdout], [0, '1.0.0\n']);
    assert.match(without.stderr, /^strata: the command line is not installed yet: `npm ci/m);
  });

  test('installs once for two concurrent launches', async () => {
    const root = project();
    const ended = await Promise.all([1, 2, 3].map(() => launch(root, ['apps/server.ts']).ended));
    assert.deepEqual(
      ended.map(({ code }) => code),
      [0, 0, 0],
      ended.map(({ stderr }) => stderr).join('\n'),
    );
    assert.equal(ended.filter(({ stderr }) => stderr.includes('installing packages')).length, 1);
  });

  test('repeats an install that was killed half-way, despite the lock that it left', async () => {
    const root = project();
    const { running, npm } = await launchWithEndlessNpm(root);
    running.kill('SIGKILL');
    process.kill(npm, 'SIGKILL');
    await running.ended;
    const ended = await launch(root, ['apps/server.ts']).ended;
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stderr, /installing packages/);
  });

  test('stopped during an install, stops npm too', async () => {
    const { running, npm } = await launchWithEndlessNpm(project());
    running.kill('SIGTERM');
    assert.equal((await running.ended).code, 1);
    assert.throws(() => process.kill(npm, 0), { code: 'ESRCH' });
  });

  test('leaves packages alone that are linked from another checkout, and prints that', async () => {
    const [lender, borrower] = [project(), project()];
    await launch(lender, ['apps/server.ts']).ended;
    symlinkSync(join(lender, 'node_modules'), join(borrower, 'node_modules'));
    lockVersions(borrower, '2.0.0', '1.0.0');
    const ended = await launch(borrower, ['apps/server.ts']).ended;
    assert.match(ended.stderr, /is a link, left as it is though ground is 1\.0\.0 rather than 2\.0\.0/);
    assert.equal(JSON.parse(ended.stdout).ground, '1.0.0');
  });

  test('prints the reason when npm fails, and does not start the entry', async () => {
    const root = project();
    rmSync(join(root, 'ground-1.0.0.tgz'));
    const ended = await launch(root, ['apps/server.ts']).ended;
    assert.equal(ended.code, 1);
    assert.match(ended.stderr, /ENOENT[^]*strata: `npm ci .*` ended with exit code/);
    assert.equal(ended.stdout, '');
  });
});

describe('running the entry', () => {
  const root = project();
  beforeAll(async () => assert.equal((await launch(root, ['apps/server.ts']).ended).code, 0));

  for (const [kind, env] of [
    ['a Node that replaces itself', {}],
    ['an older Node', OLDER_NODE],
  ] as const) {
    describe(`from ${kind}`, () => {
      test("passes on arguments, the exit code and the user's working directory", async () => {
        const entry = 'console.log(process.env.INIT_CWD); process.exit(Number(process.argv[2]));\n';
        write(join(root, 'apps', 'exit.ts'), entry);
        const ended = await launch(root, ['apps/exit.ts', '7'], { ...env, INIT_CWD: '/elsewhere' }).ended;
        assert.deepEqual([ended.code, ended.stdout, ended.stderr], [7, '/elsewhere\n', '']);
      });

      test('puts the tools of node_modules first on the path', async () => {
        write(join(root, 'apps', 'path.ts'), 'console.log(process.env.PATH);\n');
        const ended = await launch(root, ['apps/path.ts'], env).ended;
        assert.equal(ended.stdout.split(':')[0], join(root, 'node_modules', '.bin'));
      });

      test('passes a signal to the entry, which decides how it ends', async () => {
        const entry = "process.on('SIGTERM', () => { console.log('closed'); process.exit(3); });\n";
        write(join(root, 'apps', 'close.ts'), `${entry}setInterval(() => {}, 1000);\nconsole.log('ready');\n`);
        const running = launch(root, ['apps/close.ts'], env);
        await running.said('ready');
        running.kill('SIGTERM');
        const ended = await running.ended;
        assert.deepEqual([ended.code, ended.stdout], [3, 'ready\nclosed\n']);
      });

      test('ends by the signal that ended the entry', async () => {
        write(join(root, 'apps', 'wait.ts'), "setInterval(() => {}, 1000);\nconsole.log('ready');\n");
        const running = launch(root, ['apps/wait.ts'], env);
        await running.said('ready');
        running.kill('SIGHUP');
        assert.equal((await running.ended).signal, 'SIGHUP');
      });
    });
  }

  for (const [kind, env] of [
    ['a Node that replaces itself', {}],
    ['an older Node', OLDER_NODE],
  ] as const) {
    test(`ends the entry of \`npm start\` when npm is ended, from ${kind}`, async () => {
      const entry = "process.on('SIGTERM', () => { console.log('closed'); process.exit(); });\n";
      const seen = 'console.log(`ready ${process.pid} ${JSON.stringify(process.execArgv)}`);\n';
      write(join(root, 'apps', 'serve.ts'), `${entry}setInterval(() => {}, 1000);\n${seen}`);
      scriptStart(root, 'apps/serve.ts');
      const running = launchBy('npm', ['start'], root, env);
      const said = await running.said('ready');
      running.kill('SIGTERM');
      const ended = await running.ended;
      assert.match(ended.stdout, /closed/);
      for (const option of LAUNCHER_OPTIONS) assert.ok(said.includes(`"${option}"`), option);
      assert.doesNotMatch(said, /parent\.mjs/, 'children of the entry would watch a parent that is not theirs');
    });
  }

  test('keeps an entry running in the background whose shell has ended', async () => {
    const entry = "setTimeout(() => { console.log('still here'); process.exit(); }, 2500);\nconsole.log('ready');\n";
    write(join(root, 'apps', 'stay.ts'), entry);
    const running = launchBy('sh', ['-c', 'node apps/launcher/launch.cjs apps/stay.ts & sleep 0.5'], root, {});
    assert.match((await running.ended).stdout, /still here/);
  });

  test('leaves no process between the caller and the entry', async () => {
    const ended = await launch(root, ['apps/server.ts']).ended;
    assert.equal(JSON.parse(ended.stdout).ppid, process.pid);
  });
});

describe('the packaged Node', () => {
  for (const [machine, name] of Object.entries(NODE_PACKAGES)) {
    const [platform = '', arch = ''] = machine.split('-');
    test(`runs the entry on ${machine}, with a warning if it lacks security fixes, unless a newer one runs`, async () => {
      const root = project();
      assert.equal((await launch(root, ['apps/server.ts']).ended).code, 0);
      write(join(root, 'apps', 'which.ts'), 'console.log(process.env.PACKAGED ?? "own");\n');
      const folder = join(root, 'node_modules', name);
      const binary = write(join(folder, 'bin', 'node'), `#!/bin/sh\nPACKAGED=yes exec '${process.execPath}' "$@"\n`);
      chmodSync(binary, 0o755);
      for (const [packaged, running, runs, warning] of [
        ['24.0.0', '20.20.2', 'yes', /^strata: Node 24\.0\.0 \(.*bin\/node\) lacks security fixes: .*\n$/],
        ['24.14.1', '20.20.2', 'yes', /^$/],
        ['26.10.0', '24.21.0', 'yes', /^$/],
        ['24.0.0', '24.21.0', 'own', /^$/],
        ['24.21.0', '27.0.0', 'yes', /^$/],
      ] as const) {
        write(join(folder, 'package.json'), JSON.stringify({ name, version: packaged }));
        const ended = await launch(root, ['apps/which.ts'], fakedProcess({ platform, arch }, running)).ended;
        assert.deepEqual([ended.code, ended.stdout], [0, `${runs}\n`], `${packaged} ${running} ${ended.stderr}`);
        assert.match(ended.stderr, warning);
      }
    });
  }
});

test('refuses a git that is missing, too old or broken, and prints what to do', async () => {
  const root = project();
  const bin = join(root, 'old');
  write(join(bin, 'git'), '#!/bin/sh\necho git version 2.39.3\n');
  chmodSync(join(bin, 'git'), 0o755);
  const old = await launch(root, ['apps/server.ts'], { PATH: bin }).ended;
  assert.equal(old.code, 1);
  assert.match(old.stderr, /git version 2\.39\.3 is too old: git 2\.39\.4 or newer is needed\. Install it/);
  write(join(bin, 'git'), '#!/bin/sh\necho fatal: no such library >&2\nexit 128\n');
  const broken = await launch(root, ['apps/server.ts'], { PATH: bin }).ended;
  assert.deepEqual([broken.code, broken.stderr], [1, 'strata: git cannot be run: fatal: no such library\n']);
  const missing = await launch(root, ['apps/server.ts'], { PATH: join(root, 'nothing') }).ended;
  assert.match(missing.stderr, /git cannot be run: git 2\.39\.4 or newer is needed/);
});
