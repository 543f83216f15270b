/**
 * `npm run differential`: what git does and what this service does with the same repositories and requests.
 *
 * Invariants: both servers are made for the run and removed after it. It exits with 0 only if cases ran and nothing
 * differed but what meant.ts lists.
 */
import { renderTable } from '../bench/table.ts';
import { optionsOrExplain } from '../fuzz/options.ts';
import { runGit } from '../support/git.ts';
import { createOwnEnding } from '../support/own-ending.ts';
import { chooseTestGit } from '../support/test-git.ts';
import { MEANT } from './meant.ts';
import { compareWithGit, type Differences } from './run.ts';

async function main(): Promise<number> {
  chooseTestGit();
  const options = optionsOrExplain('differential', say);
  if (options === null) return 2;
  say(`Seed ${options.seed}, ${runGit(['version']).toString().trim()}`);
  const { ending, end } = createOwnEnding();
  try {
    const found = await compareWithGit(ending, options, say);
    await end();
    process.stdout.write(rendered(options.seed, found));
    return found.cases > 0 && found.faults.length === 0 ? 0 : 1;
  } finally {
    await end();
  }
}

function rendered(seed: number, { cases, seconds, kinds, meant, faults }: Differences): string {
  return [
    renderTable(
      ['what git did', 'cases'],
      [...kinds].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, count]) => [name, String(count)]),
    ),
    '',
    renderTable(
      ['meant difference', 'cases'],
      MEANT.map(({ name }) => [name, String(meant.get(name) ?? 0)]),
    ),
    '',
    `Seed ${seed}: ${cases} cases in ${seconds.toFixed(0)} s`,
    faults.length === 0 ? 'No difference that is not meant' : `${faults.length} DIFFERENCES:`,
    ...faults.map((fault) => `- ${fault}`),
    '',
  ].join('\n');
}

/** Progress goes to standard error, the result to standard output. */
function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

process.exitCode = await main();
