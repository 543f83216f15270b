/**
 * `npm run fuzz`: a living server, and requests that nobody would send, by the thousand.
 *
 * Invariants: the server is made for the run and removed after it, and everything is on the loopback interface. It
 * exits with 0 only if inputs were sent and no fault was found.
 */
import { renderTable } from '../bench/table.ts';
import { createOwnEnding } from '../support/own-ending.ts';
import { chooseTestGit } from '../support/test-git.ts';
import { optionsOrExplain } from './options.ts';
import { type FuzzResult, fuzz } from './run.ts';
import { MEMORY_BYTES_MAX } from './watch.ts';

async function main(): Promise<number> {
  chooseTestGit();
  const options = optionsOrExplain('fuzz', say);
  if (options === null) return 2;
  say(`Seed ${options.seed}`);
  const { ending, end } = createOwnEnding();
  try {
    const result = await fuzz(ending, options, say);
    await end();
    process.stdout.write(rendered(result));
    return result.inputs > 0 && result.faults.length === 0 ? 0 : 1;
  } finally {
    await end();
  }
}

function rendered(result: FuzzResult): string {
  const { seed, inputs, seconds, kinds, honest, cpuMs, memoryBytesMax, descriptors, faults } = result;
  const hundreds = [2, 3, 4, 5];
  const rows = [...kinds].map(([name, { sent, answered, statuses, tooOften }]) => [
    name,
    ...[sent, answered, ...hundreds.map((hundred) => statuses.get(hundred) ?? 0), tooOften].map(String),
  ]);
  const head = ['input', 'sent', 'answered', ...hundreds.map((hundred) => `${hundred}xx`), '429'];
  return [
    renderTable(head, rows),
    '',
    `Seed ${seed}: ${inputs} inputs in ${seconds.toFixed(0)} s, ${Math.round(inputs / seconds)} a second`,
    `CPU for each ${cpuMs.server.toFixed(2)} ms of the server without PostgreSQL, ${cpuMs.fuzzer.toFixed(2)} ms of the fuzzer`,
    `Memory without PostgreSQL at most ${mebibytes(memoryBytesMax)} MiB, of ${mebibytes(MEMORY_BYTES_MAX)}`,
    `Open descriptors ${descriptors.before} before and ${descriptors.after} after`,
    `An honest client pushed, cloned and read ${honest.rounds} times, at most ${Math.round(honest.longestMs)} ms each`,
    faults.length === 0 ? 'No fault' : `${faults.length} FAULTS:`,
    ...faults.map((fault) => `- ${fault}`),
    '',
  ].join('\n');
}

function mebibytes(bytes: number): number {
  return Math.round(bytes / 2 ** 20);
}

/** Progress goes to standard error, the result to standard output. */
function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

process.exitCode = await main();
