/**
 * `npm run client:pack [FOLDER]`: packs the command line and its client into one tarball for `npm install -g`.
 *
 * Invariants: the package needs no other package and no build where it is installed, and runs on Node 20.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import manifest from '../package.json' with { type: 'json' };
import { bundleClient, bundleCommand } from './bundle.ts';

const PACKAGE = resolve(import.meta.dirname, '..');
const ROOT = resolve(PACKAGE, '..', '..');

/** The manifest of the packed package: what was bundled is no dependency any more. */
function packedManifest(): object {
  const { name, version, description, license, type, engines } = manifest;
  return {
    name,
    version,
    description,
    license,
    type,
    engines,
    bin: { strata: 'strata.cjs' },
    exports: { '.': { types: './types/client/client.d.ts', default: './client.mjs' } },
  };
}

function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr, error } = spawnSync(command, [...args], { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} failed: ${error?.message ?? ''}${stdout}${stderr}`);
  return stdout;
}

/** Types of the client for programs in TypeScript. */
function declare(folder: string): void {
  const options = ['--declaration', '--emitDeclarationOnly', '--noEmit', 'false', '--rewriteRelativeImportExtensions'];
  const settings = join(PACKAGE, 'build', 'tsconfig.client.json');
  run(join(ROOT, 'node_modules', '.bin', 'tsc'), ['-p', settings, ...options, '--outDir', folder], PACKAGE);
}

const target = resolve(process.env['INIT_CWD'] ?? process.cwd(), process.argv[2] ?? '.');
const staging = mkdtempSync(join(tmpdir(), 'strata-cli-'));
// Who is ended leaves nothing behind, such as by the end of the server that it packs for.
process.once('SIGTERM', () => {
  rmSync(staging, { recursive: true, force: true });
  process.exit(143);
});
try {
  await bundleCommand(join(staging, 'strata.cjs'));
  await bundleClient(join(staging, 'client.mjs'));
  declare(join(staging, 'types', 'client'));
  writeFileSync(join(staging, 'package.json'), `${JSON.stringify(packedManifest(), null, 2)}\n`);
  cpSync(join(ROOT, 'LICENSE'), join(staging, 'LICENSE'));
  cpSync(join(ROOT, 'docs', 'cli.md'), join(staging, 'README.md'));
  const packed = run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', staging], staging);
  const name = packed.trim().split('\n').at(-1) ?? '';
  mkdirSync(target, { recursive: true });
  // The package appears whole under its name: a server may offer it.
  const whole = join(target, `.${name}.${process.pid}`);
  cpSync(join(staging, name), whole);
  renameSync(whole, join(target, name));
  process.stdout.write(`${join(target, name)}\n`);
} finally {
  rmSync(staging, { recursive: true, force: true });
}
