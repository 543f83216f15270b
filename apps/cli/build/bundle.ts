/**
 * Bundles a module of the command line into one file.
 *
 * Invariants: the file runs on Node 20 without any package beside it, and names every package that is in it with its
 * licence.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type BuildOptions, build, type Metafile, type Plugin } from 'esbuild';
import manifest from '../package.json' with { type: 'json' };

const PACKAGE = resolve(import.meta.dirname, '..');
const ROOT = resolve(PACKAGE, '..', '..');

const COMMON_JS: BuildOptions = { format: 'cjs', supported: { 'dynamic-import': false } };

/**
 * Writes the command itself to one file: CommonJS, which Node starts faster than a module. What replays exports is in
 * `replay.cjs` beside it, which Node reads only for `strata audit replay`.
 */
export async function bundleCommand(file: string): Promise<void> {
  await bundle('main.ts', file, { ...COMMON_JS, plugins: [REPLAY_APART] }, '#!/usr/bin/env node\n');
  await bundle('../replay/replay.ts', join(dirname(file), 'replay.cjs'), COMMON_JS, '');
}

const REPLAY_APART: Plugin = {
  name: 'replay-apart',
  setup: ({ onResolve }) => {
    onResolve({ filter: /\/replay\/replay\.ts$/ }, () => ({ path: './replay.cjs', external: true }));
  },
};

/** Writes the client for programs to one file. */
export async function bundleClient(file: string): Promise<void> {
  await bundle('client/client.ts', file, { format: 'esm' }, '');
}

async function bundle(entry: string, file: string, form: BuildOptions, start: string): Promise<void> {
  const options: BuildOptions = {
    entryPoints: [join(PACKAGE, entry)],
    absWorkingDir: PACKAGE,
    bundle: true,
    platform: 'node',
    target: 'node20',
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    charset: 'utf8',
    logLevel: 'warning',
    ...form,
  };
  // The first run tells which packages are inside; the second one writes their licences on top.
  const { metafile } = await build({ ...options, metafile: true, write: false });
  await build({ ...options, outfile: file, banner: { js: `${start}${licences(metafile)}` } });
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
