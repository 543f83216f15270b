/**
 * Single changes to an export of a rich account, thousands of them: each is caught and its line named, and an opening
 * that was left out is no change. The first of them run in `npm test` (verify.test.ts).
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { afterAll, beforeAll, test } from 'vitest';
import { canonicalText, type JsonObject } from '../../../apps/verifier/canonical.ts';
import { VerifyError, type VerifyOptions } from '../../../apps/verifier/verify.ts';
import { changedBytes, type ExportLine, forged, otherValue } from '../../support/export-changes.ts';
import { createExportedLog, type ExportedLog, kept, verifyText } from '../../support/exported-log.ts';
import { createDice, type Dice } from '../../support/seeded.ts';

const CHANGES = 6_000;
const GROWTHS = 8;

interface Change {
  readonly lines: readonly (string | Buffer)[];
  /** The lines of which one must be named; null for a change that changes nothing. */
  readonly named: { readonly from: number; readonly to: number } | null;
  /** The line that the change is on, where only the lines between two checkpoints can be named. */
  readonly within?: number;
  readonly older?: VerifyOptions['older'];
}

let log: ExportedLog;
let lines: readonly string[];
let theirs: readonly string[];
let opened: readonly number[];
/** Checkpoints of the log as it grew. */
const notes: string[] = [];

beforeAll(async () => {
  log = await createExportedLog();
  for (let n = 0; n < GROWTHS; n += 1) {
    notes.push(await log.checkpoint());
    await log.grow();
  }
  lines = (await log.exported()).split('\n').slice(0, -1);
  opened = [...lines.keys()].slice(0, -1).filter((index) => Object.keys(parsed(index).openings).length > 0);
  const bob = await log.fixture.account('carol');
  const token = await log.fixture.token(bob);
  for (let n = 0; n < 30; n += 1) await log.fixture.token(bob, { name: `token ${n}` });
  theirs = (await log.exported('', token)).split('\n').slice(0, -1);
});
afterAll(() => log.close());

const written = (line: object): string => canonicalText(line as JsonObject);
const at = (number: number): Change['named'] => ({ from: number, to: number });
/** An entry, not the checkpoint. */
const anyEntry = (dice: Dice): number => dice.below(lines.length - 1);
/** An entry with openings. */
const anyOpened = (dice: Dice): number => dice.pick(opened);
const parsed = (index: number): ExportLine => JSON.parse(lines[index] ?? '') as ExportLine;
const replaced = (index: number, ...by: readonly (string | Buffer)[]): readonly (string | Buffer)[] =>
  (lines as readonly (string | Buffer)[]).toSpliced(index, 1, ...by);
/** The first entry's number says where a slice begins, so a first line in another's place may show in the second. */
const fromPlace = (index: number): Change['named'] => ({ from: index + 1, to: index === 0 ? 2 : index + 1 });

const CHANGES_OF: Readonly<Record<string, (dice: Dice) => Change | null>> = {
  'a byte or white space': (dice) => {
    const index = dice.below(lines.length);
    const line = Buffer.from(lines[index] ?? '');
    const changed = changedBytes(dice, line);
    return changed.equals(line) ? null : { lines: replaced(index, changed), named: at(index + 1) };
  },
  'a value, in canonical form': (dice) => {
    const index = anyEntry(dice);
    const line = parsed(index);
    const name = dice.pick(Object.keys(line.entry));
    const changed = written({ ...line, entry: { ...line.entry, [name]: otherValue(dice, line.entry[name]) } });
    return changed === lines[index] ? null : { lines: replaced(index, changed), named: at(index + 1) };
  },
  'the order': (dice) => {
    const [from, to] = [anyEntry(dice), anyEntry(dice)];
    if (from === to) return null;
    const moved = lines.toSpliced(from, 1).toSpliced(to, 0, lines[from] ?? '');
    // Without the first entry at its place it is a slice in order, up to where that entry stands now.
    const named = from === 0 ? { from: 1, to: to + 1 } : fromPlace(Math.min(from, to));
    return { lines: moved, named };
  },
  'a line that was dropped': (dice) => {
    const index = dice.below(lines.length);
    return { lines: replaced(index), named: at(index + 1) };
  },
  'a line that is there twice': (dice) => {
    const [index, place] = [dice.below(lines.length), dice.below(lines.length + 1)];
    const doubled = lines.toSpliced(place, 0, lines[index] ?? '');
    if (index === lines.length - 1) return { lines: doubled, named: { from: place + 1, to: place + 2 } };
    return { lines: doubled, named: place === index ? at(index + 2) : fromPlace(place) };
  },
  'an entry with its leaf': (dice) => {
    const index = anyEntry(dice);
    const line = parsed(index);
    const changed = forged({ ...line, entry: { ...line.entry, request_id: `forged-${dice.below(1_000)}` } });
    const older = notes.filter(() => dice.chance(0.5)).map(kept);
    return { lines: replaced(index, written(changed)), named: at(lines.length), within: index + 1, older };
  },
  'a forged head': (dice) => {
    const { checkpoint } = JSON.parse(lines.at(-1) ?? '') as { readonly checkpoint: string };
    const [origin = '', size = '', root = '', , signature = ''] = checkpoint.split('\n');
    const other = kept(dice.pick(notes)).note.text.split('\n')[2] ?? '';
    const heads = [
      [origin, String(Number(size) + (dice.chance(0.5) ? 1 : -1)), root],
      [origin, size, other],
      [origin.replace(/.$/, (last) => (last === '0' ? '1' : '0')), size, root],
      [origin, size, root],
    ];
    const head = dice.below(heads.length);
    const text = `${(heads[head] ?? []).join('\n')}\n`;
    // Signed by nobody for this text, or by the forger.
    const isResigned = head === 3 || dice.chance(0.5);
    const forger = Buffer.concat([
      Buffer.from(log.keys[0]?.hash ?? '', 'hex'),
      sign(null, Buffer.from(text), generateKeyPairSync('ed25519').privateKey),
    ]);
    const by = isResigned ? `— ${log.keys[0]?.name} ${forger.toString('base64')}` : signature;
    return { lines: replaced(lines.length - 1, written({ checkpoint: `${text}\n${by}\n` })), named: at(lines.length) };
  },
  "another account's entry": (dice) => {
    const index = dice.below(Math.min(theirs.length, lines.length) - 1);
    if (theirs[index] === lines[index]) return null;
    const changed = replaced(index, theirs[index] ?? '');
    // Its leaf is right: so it is its own line, or one whose revision does not follow, or the tree shows it.
    return { lines: changed, named: { from: index + 1, to: lines.length } };
  },
  "another account's log": () => ({ lines: [...theirs.slice(0, -1), lines.at(-1) ?? ''], named: at(theirs.length) }),
  'a tail that was cut off with its checkpoint': (dice) => {
    const first = dice.below(notes.length - 1);
    const short = kept(notes[first] ?? '');
    const end = written({ checkpoint: notes[first] ?? '' });
    const later = kept(dice.pick(notes.slice(first + 1)));
    return { lines: [...lines.slice(0, short.size), end], named: at(short.size + 1), older: [later] };
  },
  'a tail that was cut off': (dice) => {
    const index = dice.below(lines.length);
    const cut = Buffer.from(lines[index] ?? '').subarray(0, dice.below(lines[index]?.length ?? 0));
    return { lines: [...lines.slice(0, index), ...(cut.length === 0 ? [] : [cut])], named: at(index + 1) };
  },
  'an opening of something else': (dice) => {
    const index = anyOpened(dice);
    const line = parsed(index);
    const ref = dice.pick(Object.keys(line.openings));
    const opening = line.openings[ref] ?? { nonce: '', value: '' };
    const other = dice.chance(0.5) ? { value: `${opening.value}x` } : { nonce: opening.nonce.slice(2) };
    const openings = { ...line.openings, [ref]: { ...opening, ...other } };
    return { lines: replaced(index, written({ ...line, openings })), named: at(index + 1) };
  },
  'an opening that was left out': (dice) => {
    const index = anyOpened(dice);
    const line = parsed(index);
    const left = Object.entries(line.openings).filter(() => dice.chance(0.5));
    const openings = Object.fromEntries(left);
    return { lines: replaced(index, written({ ...line, openings })), named: null };
  },
};

async function check(what: string, change: Change): Promise<void> {
  const bytes = Buffer.concat(change.lines.flatMap((line) => [Buffer.from(line), Buffer.from('\n')]));
  const error = await verifyText(bytes, { keys: log.keys, older: change.older ?? [] }).then(
    // Another name or id of a key is nobody's signature, which leaves the verdict open.
    ({ isSigned }) => (isSigned ? null : new VerifyError(change.lines.length, 'no known key signed it')),
    (thrown: unknown) => thrown,
  );
  if (change.named === null) {
    assert.equal(error, null, what);
    return;
  }
  assert.ok(error instanceof VerifyError, `${what} was not found: ${String(error)}`);
  const { from, to } = change.named;
  assert.ok(error.line >= from && error.line <= to, `${what} of lines ${from} to ${to}: ${error.message}`);
  if (change.within === undefined) return;
  const [, first, last] = /of lines (\d+) to (\d+), some entry was changed/.exec(error.message) ?? [];
  assert.ok(
    Number(first) <= change.within && change.within <= Number(last),
    `${what} ${change.within}: ${error.message}`,
  );
}

test('each single change to an export is caught, and its line is named', async () => {
  const dice = createDice(21);
  const tried = new Map<string, number>();
  const kinds = Object.keys(CHANGES_OF);
  for (let n = 0; n < CHANGES; n += 1) {
    const what = dice.pick(kinds);
    const change = CHANGES_OF[what]?.(dice) ?? null;
    if (change === null) continue;
    await check(what, change);
    tried.set(what, (tried.get(what) ?? 0) + 1);
  }
  for (const what of kinds) assert.ok((tried.get(what) ?? 0) > CHANGES / kinds.length / 3, `${what} was hardly tried`);
});
