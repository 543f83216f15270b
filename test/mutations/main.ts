/**
 * `npm run test:mutations [-- WORD...]`: takes each guard out in turn and checks that its test fails.
 *
 * Invariants: it works in a copy of the tree. A guard whose test still passes, or whose text is no longer in the
 * code, counts as a failure.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { VITEST } from '../architecture/checks.ts';
import { ROOT } from '../architecture/source-tree.ts';
import type { Mutation } from './mutation.ts';
import { MUTATIONS } from './mutations.ts';

const COPIED = ['core', 'adapters', 'projections', 'workflows', 'apps', 'test', 'package.json', '.gitignore'];
/** A test that runs longer than this without its guard counts as failed. */
const SPAN_MS = 90_000;

interface Outcome {
  readonly red: boolean;
  readonly output: string;
}

/** Runs the named tests; red when one of them failed or did not end, or an error escaped from their file. */
async function runTests(copy: string, { test, red }: Mutation): Promise<Outcome> {
  const pattern = red.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const child = spawn(process.execPath, [...VITEST, `--testNamePattern=${pattern}`, test], {
    cwd: copy,
    env: { ...process.env, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const note = (chunk: Buffer): void => void (output += chunk.toString('utf8'));
  child.stdout.on('data', note);
  child.stderr.on('data', note);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    child.kill('SIGTERM');
  }, SPAN_MS);
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  const reasons = [red, 'threw outside its tests'];
  const named = output
    .split('\n')
    .some((line) => line.startsWith(`  ${test}: `) && reasons.some((reason) => line.includes(reason)));
  return { red: late || (code !== 0 && named), output };
}

async function tryWithout(copy: string, mutation: Mutation): Promise<Outcome> {
  const file = path.join(copy, mutation.file);
  const whole = await readFile(file, 'utf8');
  const parts = whole.split(mutation.text);
  if (parts.length !== 2) return { red: false, output: `${mutation.file} holds the text ${parts.length - 1} times` };
  await writeFile(file, parts.join(mutation.by));
  try {
    return await runTests(copy, mutation);
  } finally {
    await writeFile(file, whole);
  }
}

const words = process.argv.slice(2);
const chosen = MUTATIONS.filter(({ without }) => words.every((word) => without.includes(word)));
const copy = await mkdtemp(path.join(os.tmpdir(), 'strata-mutations-'));
let survived = 0;
try {
  for (const name of COPIED) await cp(path.join(ROOT, name), path.join(copy, name), { recursive: true });
  await symlink(path.join(ROOT, 'node_modules'), path.join(copy, 'node_modules'));
  // The test run reads from git which files a test imports, so the copy must be a repository.
  execFileSync('git', ['init', '--quiet'], { cwd: copy });
  for (const mutation of chosen) {
    const { red, output } = await tryWithout(copy, mutation);
    console.log(`${red ? 'red     ' : 'SURVIVED'}  without ${mutation.without}`);
    if (red) continue;
    survived += 1;
    console.log(output.replace(/^/gm, '    '));
  }
} finally {
  await rm(copy, { recursive: true, force: true });
}
console.log(`${chosen.length - survived} of ${chosen.length} guards have a test that fails without them`);
process.exitCode = chosen.length > 0 && survived === 0 ? 0 : 1;
