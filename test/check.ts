/**
 * `npm run check`: every check that works without running the product, and the tests that each checker refuses its bad
 * samples. `npm run check -- lint format` runs the checks whose names contain one of the words.
 *
 * Invariants: it prints each check's name, result and seconds, and the whole output of a failed one. It exits with
 * 0 only when at least one check ran and all passed.
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { type Check, checksOf } from './architecture/checks.ts';
import { ROOT } from './architecture/source-tree.ts';

interface Outcome {
  readonly passed: boolean;
  readonly output: string;
}

function run(check: Check): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = spawn(check.command, check.args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const collect = (text: string): void => void (output += text);
    child.stdout.setEncoding('utf8').on('data', collect);
    child.stderr.setEncoding('utf8').on('data', collect);
    child.on('error', (error) => resolve({ passed: false, output: `${check.command}: ${error.message}` }));
    child.on('close', (code, signal) => {
      const ending = signal === null ? '' : `\nended by ${signal}`;
      resolve({ passed: code === 0, output: output + ending });
    });
  });
}

async function report(check: Check): Promise<boolean> {
  const start = performance.now();
  const { passed, output } = await run(check);
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`${passed ? 'passed' : 'FAILED'}  ${check.name.padEnd(24)} ${seconds.padStart(5)} s`);
  if (!passed) console.log(`\n${output.trim()}\n`);
  return passed;
}

const words = process.argv.slice(2);
const checks = checksOf(ROOT).filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
const waiting = [...checks];
const failed: string[] = [];

async function work(): Promise<void> {
  for (let check = waiting.shift(); check !== undefined; check = waiting.shift()) {
    if (!(await report(check))) failed.push(check.name);
  }
}

await Promise.all(Array.from({ length: availableParallelism() }, work));
if (checks.length === 0) console.log(`no check is named ${words.join(' or ')}`);
console.log(`${checks.length - failed.length} checks passed, ${failed.length} failed`);
process.exitCode = checks.length > 0 && failed.length === 0 ? 0 : 1;
