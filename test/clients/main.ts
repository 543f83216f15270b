/**
 * `npm run clients`: what other people's Git clients do against a real server, and the words that they show when it
 * refuses. `npm run clients -- git jgit` runs those alone. docs/clients.md has a table that it printed.
 *
 * Invariants: the server is made for the run and removed after it. Each client is in the table, also one that this
 * machine cannot run. It exits with 0 only if every cell is as it must be, at least one client was run, and in CI every
 * client that CI can install.
 */

import { cp } from 'node:fs/promises';
import path from 'node:path';
import type { Ending } from '../support/cleanup.ts';
import { createOwnEnding } from '../support/own-ending.ts';
import {
  type Account,
  commitFile,
  createAccount,
  createRepository,
  createToken,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
  startStrata,
} from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import { chooseTestGit } from '../support/test-git.ts';
import { CLIENTS, type Client } from './catalogue.ts';
import { cellOf, missingRow } from './cells.ts';
import { askDriver, type DriverCommand } from './client.ts';
import { NotInstalled } from './installing.ts';
import { OPERATIONS, type Scene } from './operations.ts';
import { type Cell, countCells, type Row, renderTable } from './table.ts';

const COMMITS = 60;
/** A machine with two cores has one for the server. */
const CLIENTS_AT_ONCE = 2;

interface Matrix {
  readonly ending: Ending;
  readonly strata: Strata;
  readonly account: Account;
  readonly readOnlyToken: string;
  /** The work tree that every client's repository is filled from. */
  readonly template: string;
}

async function main(names: readonly string[]): Promise<number> {
  chooseTestGit();
  const known = CLIENTS.map(({ name }) => name);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    process.stderr.write(`No client is named ${unknown.join(', ')}; there are ${known.join(', ')}\n`);
    return 2;
  }
  const chosen = CLIENTS.filter(({ name }) => names.length === 0 || names.includes(name));
  const { ending, end } = createOwnEnding();
  try {
    return report(await rowsOf(ending, chosen));
  } finally {
    await end();
  }
}

interface Prepared {
  readonly client: Client;
  /** Null if this machine cannot run it, for the reason. */
  readonly driver: DriverCommand | null;
  readonly why: string;
}

/** One after the other, since compilers take all of a machine, before the server is started. */
async function prepare(client: Client): Promise<Prepared> {
  try {
    return { client, driver: await client.install(), why: '' };
  } catch (error) {
    if (!(error instanceof NotInstalled)) throw error;
    return { client, driver: null, why: error.message };
  }
}

async function rowsOf(ending: Ending, chosen: readonly Client[]): Promise<Row[]> {
  const prepared: Prepared[] = [];
  for (const client of chosen) prepared.push(await prepare(client));
  const strata = await startStrata(ending, { log: 'postgres' });
  const account = await createAccount(strata, 'ada');
  const { token: readOnlyToken } = await createToken(strata, 'ada', ['--grants', 'GIT_HTTP_READ']);
  const matrix = { ending, strata, account, readOnlyToken, template: await newTemplate(ending) };
  const rows: Row[] = [];
  const waiting = [...prepared.entries()];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      rows[next[0]] = await rowOf(matrix, next[1]);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS_AT_ONCE }, work));
  return rows;
}

async function rowOf(matrix: Matrix, { client, driver, why }: Prepared): Promise<Row> {
  if (driver === null) return missingRow(client, why, process.env['CI'] === 'true');
  const version = await versionOf(driver);
  const scene = await sceneOf(matrix, client, driver);
  const cells: Cell[] = [];
  for (const operation of OPERATIONS) cells.push(await cellOf(client, operation, scene));
  const manner = client.manner === undefined ? '' : `, ${client.manner}`;
  return { client: `${client.manner === undefined ? client.name : 'git'} ${version}${manner}`, cells };
}

/** A driver that fails here fails its cells too, where the reason is shown. */
async function versionOf(driver: DriverCommand): Promise<string> {
  const told = await askDriver(driver, { operation: 'version' }).catch(() => null);
  return told?.outcome === 'ok' ? (told.version ?? 'unknown') : 'unknown';
}

/** Each client has a repository of its own. */
async function sceneOf(
  { ending, strata, account, readOnlyToken, template }: Matrix,
  client: Client,
  driver: DriverCommand,
): Promise<Scene> {
  const judgeUrl = await createRepository(strata, account, client.name);
  const folder = await tempDir(ending);
  const source = path.join(folder, 'source');
  await cp(template, source, { recursive: true });
  await git(source, ['push', '--quiet', '--mirror', judgeUrl]);
  const mirror = path.join(folder, 'mirror');
  await git(folder, ['init', '--quiet', '--bare', mirror]);
  let folders = 0;
  const urlOf = (name: string): string => {
    const url = new URL(gitUrl(strata, account, name));
    [url.username, url.password] = ['', ''];
    return url.href;
  };
  return {
    ...{ url: urlOf(client.name), judgeUrl, unknownUrl: urlOf('nowhere'), readOnlyToken, source, mirror },
    ...{ username: account.username, token: account.token },
    cloned: path.join(folder, 'cloned'),
    shallow: path.join(folder, 'shallow'),
    newFolder: () => path.join(folder, `new-${(folders += 1)}`),
    ask: (request) => askDriver(driver, request),
  };
}

/** A repository with branches, both kinds of tags, a merge, a link and a program. */
async function newTemplate(ending: Ending): Promise<string> {
  const source = await newWorkTree(ending);
  for (let count = 1; count < COMMITS; count += 1) {
    await commitFile(source, `folder/${count % 7}`, `${count}\n`.repeat(count));
  }
  await git(source, ['tag', 'light', 'HEAD~3']);
  await git(source, ['tag', '-a', '-m', 'One', 'v1', 'HEAD~5']);
  await git(source, ['branch', 'next', 'HEAD~4']);
  await git(source, ['branch', 'deep/branch', 'HEAD~2']);
  const program = (await git(source, ['hash-object', '-w', '--stdin'], '#!/bin/sh\n')).trim();
  const link = (await git(source, ['hash-object', '-w', '--stdin'], 'README')).trim();
  const entries = ['--cacheinfo', `100755,${program},program`, '--cacheinfo', `120000,${link},link`];
  await git(source, ['update-index', '--add', ...entries]);
  await git(source, ['commit', '--quiet', '-m', 'A program and a link']);
  const tree = (await git(source, ['rev-parse', 'HEAD^{tree}'])).trim();
  const merge = (await git(source, ['commit-tree', tree, '-p', 'HEAD', '-p', 'next', '-m', 'Merge'])).trim();
  await git(source, ['update-ref', 'refs/heads/main', merge]);
  return source;
}

function report(rows: readonly Row[]): number {
  const names = OPERATIONS.map(({ name }) => name);
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
