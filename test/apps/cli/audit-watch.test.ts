/**
 * `strata audit watch` against a service that a test plays: it shows entries that are not those which it signs, or none.
 * How it keeps checkpoints of a real service is in test/scenarios/command-line.test.ts.
 */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, describe, test } from 'vitest';
import { watch } from '../../../apps/cli/commands/audit-watch.ts';
import { Failure } from '../../../apps/cli/session/failure.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { runInProcess } from '../../support/command-in-process.ts';
import {
  consistencyProof,
  forgedEntry,
  type MadeEntry,
  type MadeLog,
  makeLog,
  makeSigner,
  noteOf,
  shownLine,
} from '../../support/made-exports.ts';
import { createDice } from '../../support/seeded.ts';
import { tempDir } from '../../support/temp-dir.ts';

let log: MadeLog;

beforeAll(() => {
  const dice = createDice(5);
  const signer = makeSigner('strata.example');
  do log = makeLog(dice, signer);
  while (log.entries.length < 40);
});

interface Played {
  readonly url: string;
  /** How many entries it has, and signs. */
  size: number;
  /** What it shows of an entry; null for nothing, a text for 500. */
  shown: (made: MadeEntry, sequence: number) => MadeEntry | string | null;
}

const PAGE = 7;

async function play(context: Ending): Promise<Played> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://service');
    const numberOf = (name: string, otherwise: number): number => Number(searchParams.get(name) ?? otherwise);
    if (pathname === '/.well-known/strata-log-keys') return void response.end(`${log.signer.line}\n`);
    if (pathname === '/v1/account/checkpoints/latest') return void response.end(noteOf(log, played.size));
    if (pathname === '/v1/account/proofs/consistency') {
      const hashes = consistencyProof(log, numberOf('from', 0), numberOf('to', 0));
      return void response.end(JSON.stringify({ hashes }));
    }
    const begin = numberOf('after', -1) + 1;
    const end = Math.min(played.size, begin + Math.min(PAGE, numberOf('limit', 100)));
    const shown = log.entries.slice(begin, end).map((made, index) => played.shown(made, begin + index));
    const until = shown.findIndex((one) => one === null || typeof one === 'string');
    const [first] = shown;
    if (typeof first === 'string') return void response.writeHead(500).end(JSON.stringify({ detail: first }));
    const events = shown.slice(0, until < 0 ? shown.length : until).map((made) => shownLine(made as MadeEntry));
    response.end(JSON.stringify({ events, pagination: { next_after: null, has_more: false } }, null, 1));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUp(context, () => {
    server.closeAllConnections();
    server.close();
  });
  const played: Played = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    size: 0,
    shown: (made) => made,
  };
  return played;
}

async function look(context: Ending, played: Played, folder: string): Promise<unknown> {
  const environment = { SERVICE_BASE_URL: played.url, SERVICE_TOKEN: 'a-token' };
  const { error } = await runInProcess(context, watch, { environment, options: { folder } });
  return error;
}

async function kept(folder: string): Promise<readonly string[]> {
  return (await readdir(folder))
    .filter((name) => /^\d+\.txt$/.test(name))
    .toSorted((a, b) => parseInt(a) - parseInt(b));
}

describe('strata audit watch', () => {
  test('verifies the whole log at first, and what is new from every size to every later one', async (context) => {
    const played = await play(context);
    for (let from = 1; from <= 34; from += 3) {
      for (const to of [from + 1, from + 2, 40]) {
        const folder = await tempDir(context);
        for (const size of [from, to]) {
          played.size = size;
          assert.equal(await look(context, played, folder), null, `${from} to ${to}`);
        }
        assert.deepEqual(await kept(folder), [`${from}.txt`, `${to}.txt`]);
      }
    }
  });

  const other = (changed: number, as: (made: MadeEntry) => MadeEntry | string | null): Played['shown'] => {
    return (made, sequence) => (sequence === changed ? as(made) : made);
  };
  for (const [what, as, why] of [
    ['changed', (made: MadeEntry) => forgedEntry(made, false), /entry 25: its leaf is not the hash of its entry/],
    [
      'forged with its leaf',
      (made: MadeEntry) => forgedEntry(made, true),
      /entries 20 to 29 are not those that it signs/,
    ],
    ['of another place', () => log.entries[24] ?? null, /entry 25: it has sequence 24/],
    [
      'opened wrongly',
      (made: MadeEntry) => ({ ...made, openings: { ['0'.repeat(64)]: { nonce: '0'.repeat(64), value: '' } } }),
      /entry 25: the opening of 0+ does not open it/,
    ],
    ['not shown', () => null, /the service shows no entry 25/],
    ['said to be changed', () => 'Entry 25 was changed', /entry 25 is not shown: Entry 25 was changed/],
  ] as const) {
    test(`fails at an entry that is ${what}, keeps the checkpoint as evidence, and stays at the last one`, async (context) => {
      const played = await play(context);
      const folder = await tempDir(context);
      played.size = 20;
      assert.equal(await look(context, played, folder), null);
      played.size = 30;
      played.shown = other(25, as);
      const error = await look(context, played, folder);
      assert.ok(error instanceof Failure, String(error));
      assert.match(error.message, /^THE LOG WAS CHANGED: /);
      assert.match(error.message, why);
      assert.equal(error.status, 1);
      assert.deepEqual(await kept(folder), ['20.txt']);
      assert.equal((await readdir(folder)).filter((name) => name.startsWith('contradicting-30-')).length, 1);
      // What was verified before is not asked for again.
      played.shown = other(5, (made) => forgedEntry(made, false));
      assert.equal(await look(context, played, folder), null);
      assert.notEqual(await look(context, played, await tempDir(context)), null, 'a new folder sees all');
    });
  }
});
