/**
 * `node test/mutations/main.ts [WORD...]`: takes each guard out in turn and sees that its test fails.
 *
 * Must stay true: it works in a copy of the tree; a guard whose test stays green, or whose text is no longer there,
 * is a failure.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { ROOT } from '../architecture/source-tree.ts';
import { EVENTSTOREDB_MUTATIONS } from './eventstoredb.ts';
import type { Mutation } from './mutation.ts';

const MUTATIONS: readonly Mutation[] = EVENTSTOREDB_MUTATIONS;
const COPIED = ['core', 'adapters', 'projections', 'apps', 'test', 'package.json'];
/** A test that hangs without its guard has noticed too. */
const SPAN_MS = 60_000;

interface Outcome {
  readonly red: boolean;
  readonly output: string;
}

/** Runs the named tests; red when one of them failed, or never came to an end. */
async function runTests(copy: string, { test, red }: Mutation): Promise<Outcome> {
  const pattern = red.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const child = spawn(process.execPath, [`--test-name-pattern=${pattern}`, path.join(copy, test)], {
    cwd: copy,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const note = (chunk: Buffer): void => void (output += chunk.toString('utf8'));
  child.stdout.on('data', note);
  child.stderr.on('data', note);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    child.kill('SIGKILL');
  }, SPAN_MS);
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  const named = output.split('\n').some((line) => line.includes('✖') && line.includes(red));
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
