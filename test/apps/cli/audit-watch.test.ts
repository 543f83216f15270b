/**
 * `strata audit watch` against a service that a test plays: it shows entries that are not those which it signs, or
 * none. How it keeps checkpoints of a real service is in test/scenarios/command-line.test.ts.
 */
import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
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
  placesOfEndorsements,
  type Signer,
  shownLine,
  signerAt,
  withEndorsement,
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
  /** The log that it has. */
  log: MadeLog;
  /** Who signs in the place of the key in force. */
  signer: Signer | null;
  /** The keys that it lists. */
  listed: readonly Signer[];
}

const PAGE = 7;

async function play(context: Ending): Promise<Played> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://service');
    const numberOf = (name: string, otherwise: number): number => Number(searchParams.get(name) ?? otherwise);
    if (pathname === '/.well-known/strata-log-keys') {
      return void response.end(played.listed.map(({ line }) => `${line}\n`).join(''));
    }
    if (pathname === '/v1/account/checkpoints/latest') {
      return void response.end(noteOf(played.log, played.size, played.signer ?? signerAt(played.log, played.size)));
    }
    if (pathname === '/v1/account/proofs/consistency') {
      const hashes = consistencyProof(played.log, numberOf('from', 0), numberOf('to', 0));
      return void response.end(JSON.stringify({ hashes }));
    }
    const begin = numberOf('after', -1) + 1;
    const end = Math.min(played.size, begin + Math.min(PAGE, numberOf('limit', 100)));
    const shown = played.log.entries.slice(begin, end).map((made, index) => played.shown(made, begin + index));
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
    log,
    signer: null,
    listed: [log.signer],
  };
  return played;
}

async function look(context: Ending, played: Played, folder: string, keys?: readonly Signer[]): Promise<unknown> {
  const environment = { SERVICE_BASE_URL: played.url, SERVICE_TOKEN: 'a-token' };
  const options: Record<string, string> = { folder };
  if (keys !== undefined) {
    options['keys'] = path.join(await tempDir(context), 'given');
    await writeFile(options['keys'], keys.map(({ line }) => `${line}\n`).join(''));
  }
  const { error } = await runInProcess(context, watch, { environment, options });
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

describe('strata audit watch of a log whose keys end', () => {
  const second = makeSigner('strata.example');
  const keysIn = (folder: string): Promise<string> => readFile(path.join(folder, 'keys'), 'utf8');
  /** A log that endorses another key, and the sequence of the entry that does. */
  function endorsing(by?: Signer | null): { readonly made: MadeLog; readonly at: number } {
    const at = placesOfEndorsements(log).find((sequence) => sequence > 3 && sequence < 35) ?? assert.fail('no place');
    return { made: withEndorsement(log, { sequence: at, signer: second, ...(by === undefined ? {} : { by }) }), at };
  }
  async function isEvidence(context: Ending, played: Played, folder: string, keys?: readonly Signer[]): Promise<void> {
    const before = [await kept(folder), await keysIn(folder).catch(() => null)];
    const evidence = async () => (await readdir(folder)).filter((name) => name.startsWith('contradicting-')).length;
    const count = await evidence();
    const error = await look(context, played, folder, keys);
    assert.ok(error instanceof Failure, String(error));
    assert.equal(error.status, 1);
    assert.match(error.message, /^THE LOG WAS CHANGED: /);
    assert.deepEqual([await kept(folder), await keysIn(folder).catch(() => null)], before);
    assert.equal(await evidence(), count + 1);
  }

  test('follows the endorsement of a key, and goes back to none that was replaced', async (context) => {
    const { made, at } = endorsing();
    const played = await play(context);
    played.log = made;
    for (const keys of [undefined, [log.signer]]) {
      const folder = await tempDir(context);
      played.listed = [log.signer, second];
      for (const size of [at, at + 1, 40]) {
        played.size = size;
        assert.equal(await look(context, played, folder, keys), null, `${size}`);
      }
      assert.equal(await keysIn(folder), `# The log endorses this key\n${second.line}\n`);
      played.signer = log.signer;
      await isEvidence(context, played, folder, keys);
      played.signer = null;
      const whole = await tempDir(context);
      assert.equal(await look(context, played, whole, keys), null, 'a new folder sees all');
      assert.equal(await keysIn(whole), await keysIn(folder));
    }
  });

  test('fails at a key that nothing endorses, though the service lists it', async (context) => {
    const played = await play(context);
    const folder = await tempDir(context);
    played.size = 10;
    assert.equal(await look(context, played, folder), null);
    assert.equal(await keysIn(folder), `${log.signer.line}\n`);
    played.listed = [log.signer, second];
    played.signer = second;
    for (const size of [10, 20]) {
      played.size = size;
      await isEvidence(context, played, folder);
    }
    await isEvidence(context, played, await tempDir(context));
  });

  test('goes on after a revocation with the new line alone', async (context) => {
    const { made, at } = endorsing(null);
    const played = await play(context);
    played.log = made;
    const folder = await tempDir(context);
    played.size = at;
    assert.equal(await look(context, played, folder, [log.signer]), null);
    played.size = at + 1;
    await isEvidence(context, played, folder);
    assert.equal(await look(context, played, folder, [second]), null);
    played.size = 40;
    assert.equal(await look(context, played, folder), null);
  });

  test('fails at an endorsement that is forged', async (context) => {
    const { made, at } = endorsing(second);
    const played = await play(context);
    played.log = made;
    const folder = await tempDir(context);
    played.size = at;
    assert.equal(await look(context, played, folder), null);
    played.size = at + 2;
    await isEvidence(context, played, folder);
  });
});
