/**
 * `npm run client:pack [FOLDER]`: packs the command line and its client into one tarball for `npm install -g`.
 *
 * Must stay true: the package needs no other package and no build where it is installed, and runs on Node 20. Every
 * package that is bundled is named in the bundle with its licence.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { build, type BuildOptions, type Metafile } from 'esbuild';
import manifest from '../package.json' with { type: 'json' };

const PACKAGE = resolve(import.meta.dirname, '..');
const ROOT = resolve(PACKAGE, '..', '..');

/** Modules of CommonJS in the bundle require modules of Node. */
const REQUIRE = `import { createRequire as strataRequire } from 'node:module';const require = strataRequire(import.meta.url);`;

async function bundle(entry: string, file: string): Promise<void> {
  const options: BuildOptions = {
    entryPoints: [join(PACKAGE, entry)],
    absWorkingDir: PACKAGE,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    charset: 'utf8',
    logLevel: 'warning',
  };
  // The first run tells which packages are inside; the second one writes their licences on top.
  const { metafile } = await build({ ...options, metafile: true, write: false });
  const shebang = entry === 'main.ts' ? '#!/usr/bin/env node\n' : '';
  await build({ ...options, outfile: file, banner: { js: `${shebang}${licences(metafile)}\n${REQUIRE}` } });
}

/** The folders of the packages in a bundle, below the package's own folder. */
function packagesIn(metafile: Metafile): readonly string[] {
  const found = Object.keys(metafile.inputs).flatMap((file) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? []);
  return [...new Set(found)].toSorted();
}

function licences(metafile: Metafile): string {
  const parts = packagesIn(metafile).map((folder) => {
    const at = join(PACKAGE, folder);
    const { name, version, license } = readManifest(join(at, 'package.json'));
    const file = readdirSync(at).find((entry) => /^licen[cs]e/i.test(entry));
    if (file === undefined) throw new Error(`${name} has no licence in its package`);
    return `${name} ${version} (${license})\n\n${readFileSync(join(at, file), 'utf8').trim()}`;
  });
  const own = `Strata ${manifest.version} (${manifest.license})\n\n${readFileSync(join(ROOT, 'LICENSE'), 'utf8').trim()}`;
  return `/*! This file holds:\n\n${[own, ...parts].join('\n\n---\n\n').replaceAll('*/', '* /')}\n*/`;
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
}

function readManifest(file: string): Manifest {
  return JSON.parse(readFileSync(file, 'utf8')) as Manifest;
}

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
    bin: { strata: 'strata.mjs' },
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
try {
  await bundle('main.ts', join(staging, 'strata.mjs'));
  await bundle('client/client.ts', join(staging, 'client.mjs'));
  declare(join(staging, 'types', 'client'));
  writeFileSync(join(staging, 'package.json'), `${JSON.stringify(packedManifest(), null, 2)}\n`);
  cpSync(join(ROOT, 'LICENSE'), join(staging, 'LICENSE'));
  const guide = join(ROOT, 'docs', 'cli.md');
  if (existsSync(guide)) cpSync(guide, join(staging, 'README.md'));
  mkdirSync(target, { recursive: true });
  const packed = run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', target], staging);
  process.stdout.write(`${join(target, packed.trim().split('\n').at(-1) ?? '')}\n`);
} finally {
  rmSync(staging, { recursive: true, force: true });
}
