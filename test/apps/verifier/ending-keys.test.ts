/** Logs whose keys end, made by a third hand: the verifier and the one in docs/verifier say the same of each. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { parseCheckpoint, parseKey, parseKeys } from '../../../apps/verifier/checkpoint.ts';
import { judge } from '../../../apps/verifier/judge.ts';
import { ROOT } from '../../architecture/source-tree.ts';
import {
  type MadeLog,
  makeLog,
  makeSigner,
  noteOf,
  placesOfEndorsements,
  type Signer,
  sliceExport,
  wholeExport,
  withEndorsement,
} from '../../support/made-exports.ts';
import { isThere } from '../../support/optional-suites.ts';
import { createDice } from '../../support/seeded.ts';
import { tempDir } from '../../support/temp-dir.ts';

const hasPython = isThere('python3');
const PROGRAM = path.join(ROOT, 'docs/verifier/verify.py');

/** The keys of a service, in their order, and one that is nobody's. */
const [FIRST, SECOND, THIRD, OTHER] = [0, 1, 2, 3].map(() => makeSigner('strata.example')) as [
  Signer,
  Signer,
  Signer,
  Signer,
];
let log: MadeLog;
/** Sequences of entries of the account's own stream, with others between them. */
let places: readonly [number, number, number];

beforeAll(() => {
  const dice = createDice(37);
  for (;;) {
    log = makeLog(dice, FIRST);
    const found = placesOfEndorsements(log);
    const [a = 0, b = 0, c = 0] = [found[1], found[3], found[5]];
    places = [a, b, c];
    const hasSlices = sliceExport(log, 1, b) !== null && sliceExport(log, b + 1, c) !== null;
    if (c > 0 && c < log.entries.length - 2 && hasSlices) return;
  }
});

interface Case {
  readonly log: MadeLog;
  readonly note?: string;
  /** The sequences that the first line of a slice may have; absent for a whole log. */
  readonly from?: readonly [first: number, last: number];
  /** Null: none are given. */
  readonly keys: readonly Signer[] | null;
  readonly kept?: readonly string[];
  readonly revoked?: { readonly key: Signer; readonly after: number };
}

const endorsing = (sequence: number, signer: Signer, more: { previous?: Signer; by?: Signer | null } = {}) => {
  return (given: MadeLog): MadeLog => withEndorsement(given, { sequence, signer, ...more });
};
const once = (): MadeLog => endorsing(places[0], SECOND)(log);
const twice = (): MadeLog => endorsing(places[1], THIRD)(once());
/** The first key was stolen: nothing endorses the second one. */
const revoked = (): MadeLog => endorsing(places[2], SECOND, { by: null })(log);
const stolen = (): { readonly key: Signer; readonly after: number } => ({ key: FIRST, after: places[1] });
const all = (): number => log.entries.length;
const early = (): readonly [number, number] => [1, places[1]];
const late = (): readonly [number, number] => [places[1] + 1, places[2]];

function exported({ log: made, note, from }: Case): Buffer {
  if (from === undefined) return wholeExport(made, note);
  return sliceExport(made, ...from, note) ?? assert.fail('no such slice');
}

const CASES: readonly (readonly [what: string, status: 0 | 1 | 2, make: () => Case])[] = [
  ['two rotations, from the first key on', 0, () => ({ log: twice(), keys: [FIRST] })],
  ['two rotations, without keys', 2, () => ({ log: twice(), keys: null })],
  ['two rotations, of which only a later key is given', 2, () => ({ log: twice(), keys: [SECOND, THIRD] })],
  [
    'kept checkpoints from before and after a rotation',
    0,
    () => ({ log: once(), keys: [FIRST], kept: [noteOf(once(), places[0]), noteOf(once(), places[0] + 1)] }),
  ],
  [
    'a kept checkpoint by the key that was replaced before it',
    1,
    () => ({ log: once(), keys: [FIRST], kept: [noteOf(once(), places[0] + 1, FIRST)] }),
  ],
  [
    'a kept checkpoint by a key before its endorsement, as older versions signed',
    2,
    () => ({ log: once(), keys: [FIRST], kept: [noteOf(once(), places[0], SECOND)] }),
  ],
  [
    'the same, with the line of that key',
    0,
    () => ({ log: once(), keys: [FIRST, SECOND], kept: [noteOf(once(), places[0], SECOND)] }),
  ],
  ['a later key without an endorsement', 2, () => ({ log, keys: [FIRST], note: noteOf(log, all(), SECOND) })],
  ['the same, given', 0, () => ({ log, keys: [FIRST, SECOND], note: noteOf(log, all(), SECOND) })],
  ['a key that was replaced', 1, () => ({ log: once(), keys: [FIRST], note: noteOf(once(), all(), FIRST) })],
  ['a key that was replaced, without keys', 1, () => ({ log: once(), keys: null, note: noteOf(once(), all(), FIRST) })],
  [
    'a key that is neither given nor endorsed',
    2,
    () => ({ log: once(), keys: [FIRST], note: noteOf(once(), all(), OTHER) }),
  ],
  [
    'a given key that is not the one in force',
    1,
    () => ({ log: once(), keys: [FIRST, OTHER], note: noteOf(once(), all(), OTHER) }),
  ],
  [
    'an endorsement by a key that is not in force',
    1,
    () => ({ log: endorsing(places[1], THIRD, { previous: FIRST })(once()), keys: [FIRST] }),
  ],
  [
    'an endorsement that skips a key',
    1,
    () => ({ log: endorsing(places[1], OTHER, { previous: THIRD })(once()), keys: [FIRST] }),
  ],
  [
    'an endorsement that another key signed',
    1,
    () => ({ log: endorsing(places[0], SECOND, { by: OTHER })(log), keys: [FIRST, SECOND] }),
  ],
  ['an endorsement that nobody signed', 2, () => ({ log: revoked(), keys: [FIRST] })],
  ['the same, with the line of the new key', 0, () => ({ log: revoked(), keys: [FIRST, SECOND] })],
  [
    'a stolen key, up to what was kept, and the line of the new one',
    0,
    () => ({ log: revoked(), keys: [FIRST, SECOND], kept: [noteOf(log, places[1])], revoked: stolen() }),
  ],
  [
    'a stolen key, and no line of the new one',
    2,
    () => ({ log: revoked(), keys: [FIRST], kept: [noteOf(log, places[1])], revoked: stolen() }),
  ],
  ['a stolen key, and nothing kept', 2, () => ({ log: revoked(), keys: [FIRST, SECOND], revoked: stolen() })],
  [
    'a stolen key, and a kept checkpoint of another size',
    2,
    () => ({ log: revoked(), keys: [FIRST, SECOND], kept: [noteOf(log, places[1] - 1)], revoked: stolen() }),
  ],
  [
    'what a stolen key signed beyond what was kept',
    1,
    () => ({ log, keys: [FIRST], kept: [noteOf(log, places[1])], revoked: stolen() }),
  ],
  [
    'an endorsement by a stolen key beyond what was kept, though the new key is given',
    1,
    () => {
      const made = endorsing(places[2], SECOND)(log);
      return { log: made, keys: [FIRST, SECOND], kept: [noteOf(log, places[1])], revoked: stolen() };
    },
  ],
  [
    'an endorsement by a key that was stolen after it',
    0,
    () => ({ log: once(), keys: [FIRST], kept: [noteOf(once(), places[1])], revoked: stolen() }),
  ],
  [
    'a slice that begins before what was kept of a stolen key, and the line of the new one',
    0,
    () => ({ log: revoked(), from: early(), keys: [FIRST, SECOND], kept: [noteOf(log, places[1])], revoked: stolen() }),
  ],
  [
    'a slice that begins behind what was kept of a stolen key',
    2,
    () => ({ log: revoked(), from: late(), keys: [FIRST, SECOND], kept: [noteOf(log, places[1])], revoked: stolen() }),
  ],
  [
    'a slice, a stolen key, and nothing kept',
    2,
    () => ({ log: revoked(), from: early(), keys: [FIRST, SECOND], revoked: stolen() }),
  ],
  [
    'a slice that a stolen key signed beyond what was kept',
    1,
    () => ({ log, from: late(), keys: [FIRST], kept: [noteOf(log, places[1])], revoked: stolen() }),
  ],
  [
    'a slice with an endorsement by a stolen key beyond what was kept',
    1,
    () => {
      const made = endorsing(places[2], SECOND)(log);
      return { log: made, from: late(), keys: [FIRST, SECOND], kept: [noteOf(log, places[1])], revoked: stolen() };
    },
  ],
];

async function second(folder: string, { keys, kept = [], revoked: stolenKey }: Case): Promise<number | null> {
  const args = [path.join(folder, 'log.ndjson')];
  if (keys !== null) args.push('--keys', path.join(folder, 'keys'));
  for (const index of kept.keys()) args.push('--checkpoint', path.join(folder, `kept-${index}`));
  if (stolenKey !== undefined) args.push('--revoke', stolenKey.key.line, '--after', String(stolenKey.after));
  return spawnSync('python3', [PROGRAM, ...args], { encoding: 'utf8' }).status;
}

describe('A log whose keys end', () => {
  for (const [what, status, make] of CASES) {
    test(`with ${what} is ${['verified', 'refuted', 'not decidable'][status]}`, async (context) => {
      const folder = await tempDir(context);
      const made = make();
      const lines = (made.keys ?? []).map(({ line }) => `${line}\n`).join('');
      await writeFile(path.join(folder, 'log.ndjson'), exported(made));
      await writeFile(path.join(folder, 'keys'), lines);
      for (const [index, note] of (made.kept ?? []).entries())
        await writeFile(path.join(folder, `kept-${index}`), note);
      const older = (made.kept ?? []).map((note) => parseCheckpoint(note) ?? assert.fail('no checkpoint'));
      const key = made.revoked === undefined ? null : parseKey(made.revoked.key.line);
      const options = {
        keys: made.keys === null ? null : parseKeys(lines),
        older,
        revoked: key === null || made.revoked === undefined ? null : { key, after: made.revoked.after },
      };
      for await (const judged of judge([path.join(folder, 'log.ndjson')], options)) {
        assert.equal(judged.status, status, JSON.stringify(judged));
      }
      if (hasPython) assert.equal(await second(folder, made), status);
    });
  }
});
