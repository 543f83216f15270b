/**
 * `npm run api-clients`: makes clients of the API with other people's generators, compiles them, lets each decode the
 * answers of `recorded.json`, and makes thirteen calls with it to a real server. `npm run api-clients -- python ogen`
 * tries those alone. docs/clients.md has a table that it printed.
 *
 * Invariants: nothing is generated or installed inside the project. Each generator is in the table, also one that this
 * machine cannot run. It exits with 0 only if every cell is as it must be and at least one generator was tried.
 */

import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type DriverCommand, runDriver } from '../clients/client.ts';
import { NotInstalled } from '../clients/installing.ts';
import { type Cell, countCells, type Row, renderTable } from '../clients/table.ts';
import type { Ending } from '../support/cleanup.ts';
import { createOwnEnding } from '../support/own-ending.ts';
import { createAccount, createRepository, git, newWorkTree, type Strata, startStrata } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import { GENERATORS, type Generator } from './catalogue.ts';
import { liveCalls, RECORDED, startRecorded } from './expected.ts';

interface Scene {
  readonly ending: Ending;
  readonly strata: Strata;
  /** The address of a server that answers what was recorded. */
  readonly recorded: string;
}

async function main(names: readonly string[]): Promise<number> {
  const known = GENERATORS.map(({ name }) => name);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    process.stderr.write(`No generator is named ${unknown.join(', ')}; there are ${known.join(', ')}\n`);
    return 2;
  }
  const { ending, end } = createOwnEnding();
  try {
    const strata = await startStrata(ending, { log: 'postgres' });
    const scene = { ending, strata, recorded: await startRecorded(ending) };
    const rows: Row[] = [];
    // One after the other, since compilers take all of a machine.
    for (const generator of GENERATORS) {
      if (names.length === 0 || names.includes(generator.name)) rows.push(await rowOf(scene, generator));
    }
    return report(rows);
  } finally {
    await end();
  }
}

async function rowOf(scene: Scene, generator: Generator): Promise<Row> {
  const client = `${generator.maker}, ${generator.name}`;
  try {
    const driver = await made(scene, generator);
    return { client, cells: [{ is: 'ok' }, ...(await answeredCells(scene, generator, driver))] };
  } catch (error) {
    if (error instanceof NotInstalled) return { client, notRun: error.message };
    const failed: Cell = { is: 'failed', why: error instanceof Error ? error.message : String(error) };
    return { client, cells: [failed, failed, failed] };
  }
}

async function made({ ending, strata }: Scene, { document, make }: Generator): Promise<DriverCommand> {
  const folder = await tempDir(ending);
  const file = path.join(folder, 'document.json');
  await writeFile(file, await (await fetch(`${strata.url}/v1/${document}`)).text());
  return make({ folder, document: file });
}

async function answeredCells({ ending, strata, recorded }: Scene, { name }: Generator, driver: DriverCommand) {
  const account = await createAccount(strata, name);
  const source = await newWorkTree(ending);
  await git(source, ['push', '--quiet', await createRepository(strata, account, 'engine'), 'main']);
  const request = { server: strata.url, recorded, token: account.token };
  const { code, stdout, stderr } = await runDriver(driver, request);
  if (code !== 0) {
    const failed: Cell = { is: 'failed', why: stderr.replaceAll(account.token, '<token>').trim().slice(-2_000) };
    return [failed, failed];
  }
  const answer: unknown = JSON.parse(stdout);
  const of = (part: string): unknown => (answer as Readonly<Record<string, unknown>>)[part];
  return [cellOf(of('recorded'), RECORDED), cellOf(of('calls'), liveCalls(name))];
}

function cellOf(found: unknown, expected: object): Cell {
  if (isDeepStrictEqual(found, expected)) return { is: 'ok' };
  return { is: 'failed', why: `${JSON.stringify(found)} in place of ${JSON.stringify(expected)}` };
}

function report(rows: readonly Row[]): number {
  const names = ['compiles', 'recorded answers', 'calls'];
  process.stdout.write(renderTable(names, rows));
  for (const row of rows) {
    if ('notRun' in row) continue;
    for (const [index, cell] of row.cells.entries()) {
      if (cell.is === 'failed') process.stdout.write(`\nFAILED ${row.client}, ${names[index]}: ${cell.why}\n`);
    }
  }
  const { passed, failed } = countCells(rows);
  process.stdout.write(`\n${passed} passed, ${failed} failed\n`);
  return failed === 0 && passed > 0 ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
