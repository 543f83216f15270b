/**
 * `npm run verifier:pack [FOLDER]`: packs the verifier into one tarball of plain modules for Node 20.
 *
 * Invariants: the modules in the package are these sources without their types, line by line, so that an auditor
 * reads what runs. It needs no other package.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import manifest from '../package.json' with { type: 'json' };

const PACKAGE = resolve(import.meta.dirname, '..');
const ROOT = resolve(PACKAGE, '..', '..');

const target = resolve(process.env['INIT_CWD'] ?? process.cwd(), process.argv[2] ?? '.');
const staging = mkdtempSync(join(tmpdir(), 'strata-verify-'));
try {
  for (const name of readdirSync(PACKAGE).filter((entry) => entry.endsWith('.ts'))) {
    const source = stripTypeScriptTypes(readFileSync(join(PACKAGE, name), 'utf8'));
    const module = source.replaceAll(/(from '\.\/[a-z]+)\.ts'/g, "$1.mjs'");
    writeFileSync(
      join(staging, name.replace(/\.ts$/, '.mjs')),
      name === 'main.ts' ? `#!/usr/bin/env node\n${module}` : module,
    );
  }
  const packed = { ...manifest, bin: { 'strata-verify': 'main.mjs' }, exports: './file.mjs' };
  writeFileSync(join(staging, 'package.json'), `${JSON.stringify(packed, null, 2)}\n`);
  cpSync(join(ROOT, 'LICENSE'), join(staging, 'LICENSE'));
  cpSync(join(ROOT, 'docs/audit.md'), join(staging, 'README.md'));
  mkdirSync(target, { recursive: true });
  const args = ['pack', '--ignore-scripts', '--silent', '--pack-destination', target];
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd: staging, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm pack failed: ${stdout}${stderr}`);
  process.stdout.write(`${join(target, stdout.trim().split('\n').at(-1) ?? '')}\n`);
} finally {
  rmSync(staging, { recursive: true, force: true });
}
