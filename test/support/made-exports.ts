/**
 * Makes logs and exports by docs/audit.md alone, right and wrong ones, and says what a verifier must say of each.
 *
 * Invariants: nothing of the service or of a verifier is imported: trees, leaves, guards and signatures are computed
 * here a third time, in the plainest way that the document's words allow.
 */
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { Dice } from './seeded.ts';

type Verdict = 'verified' | 'refuted' | 'undecided';

export interface MadeExport {
  /** What was done to it, for a failure's message. */
  readonly what: string;
  readonly bytes: Buffer;
  /** Null for a change of which only the verifiers' agreement is known. */
  readonly verdict: Verdict | null;
  /** The range that is proved, where the file is right; null of form 1. */
  readonly range: MadeRange | null;
}

export interface MadeRange {
  readonly since: string | null;
  readonly until: string | null;
}

export interface MadeEntry {
  readonly entry: Readonly<Record<string, unknown>> & { readonly occurred_at: string; readonly data: object };
  readonly leaf: Buffer;
  readonly openings: Readonly<Record<string, object>>;
}

export interface MadeLog {
  readonly entries: readonly MadeEntry[];
  /** The first one. */
  readonly signer: Signer;
  /** The later ones, and the entries that endorse them. */
  readonly endorsed: readonly { readonly sequence: number; readonly signer: Signer }[];
  readonly account: string;
}

export interface Signer {
  readonly name: string;
  readonly line: string;
  readonly id: Buffer;
  readonly key: KeyObject;
}

const MINUTE = 60_000;
const sha256 = (...parts: readonly (Buffer | string)[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/** RFC 8785. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`;
}

/** RFC 6962, section 2.1: the definition itself. */
function treeHash(leaves: readonly Buffer[]): Buffer {
  const [only] = leaves;
  if (only === undefined) return sha256('');
  if (leaves.length === 1) return only;
  let half = 1;
  while (2 * half < leaves.length) half *= 2;
  return sha256(Buffer.from([1]), treeHash(leaves.slice(0, half)), treeHash(leaves.slice(half)));
}

/** The perfect subtrees of a range, each as large as it can be. */
function subtreesOf(leaves: readonly Buffer[], begin: number, end: number): readonly string[] {
  if (begin >= end) return [];
  let size = 1;
  while (begin % (2 * size) === 0 && begin + 2 * size <= end) size *= 2;
  const hash = treeHash(leaves.slice(begin, begin + size)).toString('base64');
  return [hash, ...subtreesOf(leaves, begin + size, end)];
}

export function makeSigner(name: string): Signer {
  const { publicKey, privateKey: key } = generateKeyPairSync('ed25519');
  const bytes = Buffer.concat([Buffer.from([1]), publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)]);
  const id = sha256(`${name}\n`, bytes).subarray(0, 4);
  return { name, line: `${name}+${id.toString('hex')}+${bytes.toString('base64')}`, id, key };
}

/** Returns a signed note; `by` may sign in the name of another. */
function signedNote(log: MadeLog, size: number, root: Buffer, by: Pick<Signer, 'name' | 'id' | 'key'>): string {
  const text = `${log.signer.name}/log/${log.account}\n${size}\n${root.toString('base64')}\n`;
  const signature = Buffer.concat([by.id, sign(null, Buffer.from(text), by.key)]).toString('base64');
  return `${text}\n— ${by.name} ${signature}\n`;
}

/** The key in force after this many entries. */
export function signerAt({ signer, endorsed }: MadeLog, size: number): Signer {
  return endorsed.findLast(({ sequence }) => sequence < size)?.signer ?? signer;
}

export function noteOf(log: MadeLog, size: number, by: Signer = signerAt(log, size)): string {
  return signedNote(log, size, treeHash(log.entries.slice(0, size).map(({ leaf }) => leaf)), by);
}

/** The entries that may endorse a key: those of the account's own stream. */
export function placesOfEndorsements({ entries, account }: MadeLog): readonly number[] {
  return entries.flatMap(({ entry }, sequence) => (entry['stream'] === `account-${account}` ? [sequence] : []));
}

interface MadeEndorsement {
  readonly sequence: number;
  readonly signer: Signer;
  /** The key before, as the entry names it. */
  readonly previous?: Signer;
  /** Who signs it; null: nobody does. */
  readonly by?: Signer | null;
}

/** Makes the entry one that endorses a key, and the key the one in force behind it. */
export function withEndorsement(log: MadeLog, { sequence, signer, ...other }: MadeEndorsement): MadeLog {
  const { previous = signerAt(log, sequence), by = previous } = other;
  const named = { key: signer.line, previous: previous.line };
  const signature = by === null ? null : sign(null, Buffer.from(canonical(named)), by.key).toString('base64');
  const entries = log.entries.map((made, index) => {
    if (index !== sequence) return made;
    const data = { ...named, signature };
    const entry = { ...made.entry, type: 'LogKeyEndorsed', source_address_ref: null, data };
    return { entry, leaf: leafOf(entry), openings: {} };
  });
  return { ...log, entries, endorsed: [...log.endorsed, { sequence, signer }] };
}

/** Endorses up to this many keys, one after the other. */
export function rotated(dice: Dice, log: MadeLog, count: number): MadeLog {
  const places = placesOfEndorsements(log);
  const chosen = new Set(places.length === 0 ? [] : Array.from({ length: count }, () => dice.pick(places)));
  return [...chosen]
    .toSorted((a, b) => a - b)
    .reduce((made, sequence) => withEndorsement(made, { sequence, signer: makeSigner(log.signer.name) }), log);
}

/** Whether the file shows every endorsement from the first key on, which alone is given. */
function endorsesAll({ endorsed }: MadeLog, { begin, end }: Pick<Slice, 'begin' | 'end'>): boolean {
  return endorsed.every(({ sequence }) => sequence >= begin && sequence < end);
}

/** The whole log, as an export has it. */
export function wholeExport(log: MadeLog, note: string = noteOf(log, log.entries.length)): Buffer {
  return bytesOf(log.entries.map(entryLine), { checkpoint: note });
}

const hexOf = (dice: Dice, digits: number): string =>
  Array.from({ length: digits }, () => dice.below(16).toString(16)).join('');
const uuidOf = (dice: Dice): string => [8, 4, 4, 4, 12].map((digits) => hexOf(dice, digits)).join('-');
const WORDS = ['', 'plain', 'ä "quoted" \\ back', '\u{1f600}', '\ufb33', '\u2028', '\u0000\u001f\b\f', 'é\u0301'];
const NUMBERS = [0, 1, -1, 1e21, 1e-7, 123456789012345683968, 0.1, 4.5, 2 ** 53, 1e300, 5e-324, 333333333.3333333];

function anyValue(dice: Dice, depth: number): unknown {
  const kind = dice.below(depth > 3 ? 4 : 6);
  if (kind === 0) return dice.pick(WORDS);
  if (kind === 1) return dice.pick(NUMBERS);
  if (kind === 2) return dice.chance(0.5);
  if (kind === 3) return null;
  const several = Array.from({ length: dice.below(4) }, () => anyValue(dice, depth + 1));
  if (kind === 4) return several;
  return Object.fromEntries(several.map((value) => [`${dice.pick(WORDS)}${dice.below(9)}`, value]));
}

/** A log of up to 60 entries, whose nodes' clocks are off by a minute at most. */
export function makeLog(dice: Dice, signer: Signer): MadeLog {
  const account = uuidOf(dice);
  const revisions = new Map<string, number>();
  const repositories = Array.from({ length: 3 }, () => `repository-${uuidOf(dice)}`);
  let at = Date.parse('2026-03-01T00:00:00.000Z') + dice.below(365 * 24 * 60) * MINUTE;
  const entries = Array.from({ length: dice.chance(0.05) ? 0 : 1 + dice.below(60) }, (_, sequence) => {
    // Some come close together, others hours later.
    at += dice.pick([0, 1, 700, 20_000, MINUTE, 3 * MINUTE, 200 * MINUTE]);
    const stream =
      sequence === 0 ? `account-${account}` : dice.pick([...repositories, `account-${account}`, 'username-ada']);
    const last = revisions.get(stream);
    const isClaim = stream.startsWith('username-');
    const revision = last === undefined ? (isClaim ? dice.below(4) : 0) : last + 1 + (isClaim ? dice.below(3) : 0);
    revisions.set(stream, revision);
    const opened = Array.from({ length: dice.below(3) }, () => makeOpening(dice));
    const [one, ...rest] = opened.map(({ ref }) => ref);
    const data = {
      ...(dice.chance(0.3) ? { account } : {}),
      more: anyValue(dice, 0),
      address_refs: rest,
      ...(dice.chance(0.5) ? { inner: { place_ref: one ?? null } } : { url_ref: one ?? null }),
    };
    const entry = {
      ...{ sequence, id: uuidOf(dice), stream, revision, type: isClaim ? 'Claimed' : dice.pick(['Made', 'Moved']) },
      ...{ version: 1 + dice.below(3), occurred_at: timeOf(at + dice.below(2 * MINUTE) - MINUTE) },
      ...{ actor: { kind: 'user', id: uuidOf(dice) }, request_id: dice.pick(WORDS) },
      ...{ source_address_ref: dice.chance(0.5) ? hexOf(dice, 64) : null, causation_id: null, data },
    };
    const shown = opened.filter(() => dice.chance(0.8));
    return {
      entry,
      leaf: leafOf(entry),
      openings: Object.fromEntries(shown.map(({ ref, opening }) => [ref, opening])),
    };
  });
  return { entries, signer, account, endorsed: [] };
}

function makeOpening(dice: Dice): { readonly ref: string; readonly opening: object } {
  const [nonce, value] = [hexOf(dice, 64), dice.pick(WORDS)];
  return { ref: sha256(Buffer.from(nonce, 'hex'), value).toString('hex'), opening: { nonce, value } };
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

function leafOf({ sequence: _sequence, ...hashed }: Readonly<Record<string, unknown>>): Buffer {
  return sha256(Buffer.from([0]), canonical(hashed));
}

/** A slice, as its maker claims it. */
interface Slice {
  readonly begin: number;
  readonly end: number;
  readonly before: number;
  readonly behind: number;
  readonly since: string | null;
  readonly until: string | null;
}

const timeAt = ({ entries }: MadeLog, sequence: number): string => entries[sequence]?.entry.occurred_at ?? '';

/** The log times of the lines from one sequence on. */
function logTimes(log: MadeLog, begin: number, end: number): readonly string[] {
  let latest = '';
  return log.entries.slice(begin, end).map(({ entry }) => {
    if (entry.occurred_at > latest) latest = entry.occurred_at;
    return latest;
  });
}

/** A right slice, with as few guards as it needs or with more. */
function rightSlice(dice: Dice, log: MadeLog): Slice {
  const size = log.entries.length;
  const bound = (): string | null => {
    if (dice.chance(0.2) || size === 0) return dice.chance(0.5) ? null : timeOf(Date.UTC(2027, 6));
    return timeOf(Date.parse(timeAt(log, dice.below(size))) + dice.pick([0, 1, -1, 5 * MINUTE, -5 * MINUTE]));
  };
  const [one, other] = [bound(), bound()];
  const isSwapped = one !== null && other !== null && one > other;
  const [since, until] = isSwapped ? [other, one] : [one, other];
  const slice = sliceOf(log, since, until);
  let { begin, end, before, behind } = slice;
  // More guards are no fault.
  while (since !== null && begin > 0 && dice.chance(0.3) && isOlder(timeAt(log, begin - 1), since)) {
    [begin, before] = [begin - 1, before + 1];
  }
  while (until !== null && end < size && dice.chance(0.3) && isOlder(until, timeAt(log, end))) {
    [end, behind] = [end + 1, behind + 1];
  }
  return { ...slice, begin, end, before, behind };
}

/** The right slice with as few guards as it needs. */
function sliceOf(log: MadeLog, since: string | null, until: string | null): Slice {
  const size = log.entries.length;
  const times = logTimes(log, 0, size);
  const first = since === null ? 0 : times.filter((time) => time < since).length;
  const past = until === null ? size : times.filter((time) => time < until).length;
  let begin = first;
  if (since !== null) while (begin > 0 && !(begin < first && isOlder(timeAt(log, begin), since))) begin -= 1;
  let end = past;
  if (until !== null) while (end < size && !(end > past && isOlder(until, timeAt(log, end - 1)))) end += 1;
  return { begin, end, before: first - begin, behind: end - past, since, until };
}

/** Whether one time is more than two minutes before another. */
function isOlder(one: string, other: string): boolean {
  return Date.parse(other) - Date.parse(one) > 2 * MINUTE;
}

/** The four rules of the document, and that every line is counted once. */
function edgesHold(log: MadeLog, { begin, end, before, behind, since, until }: Slice): boolean {
  const size = log.entries.length;
  const count = end - begin;
  if (before < 0 || behind < 0 || before + behind > count) return false;
  if (count === 0) return size === 0;
  const times = logTimes(log, begin, end);
  const isRight = times.every((time, index) => {
    if (index < before) return since !== null && time < since;
    if (index >= count - behind) return until !== null && time >= until;
    return (since === null || time >= since) && (until === null || time < until);
  });
  const begins = begin === 0 || (before > 0 && since !== null && isOlder(timeAt(log, begin), since));
  const ends = end === size || (behind > 0 && until !== null && isOlder(until, timeAt(log, end - 1)));
  return isRight && begins && ends;
}

function provedBy(log: MadeLog, { begin, end, since, until }: Slice): MadeRange {
  const last = logTimes(log, begin, end).at(-1);
  if (last === undefined) return { since, until: null };
  return { since, until: end === log.entries.length && (until === null || until > last) ? last : until };
}

type Lines = readonly string[];

const entryLine = ({ entry, leaf, openings }: MadeEntry): string =>
  canonical({ entry, leaf: leaf.toString('base64'), openings });
const guardLine = ({ entry, leaf }: MadeEntry): string =>
  canonical({ entry, guard: true, leaf: leaf.toString('base64') });

function sliceLines(log: MadeLog, { begin, end, before, behind }: Slice): Lines {
  return log.entries.slice(begin, end).map((made, index) => {
    const isGuard = index < before || index >= end - begin - behind;
    return isGuard ? guardLine(made) : entryLine(made);
  });
}

type Ending = Readonly<Record<string, unknown>>;

function sliceEnding(log: MadeLog, { begin, end, before, behind, since, until }: Slice): Ending {
  const leaves = log.entries.map(({ leaf }) => leaf);
  const [left, right] = [subtreesOf(leaves, 0, begin), subtreesOf(leaves, end, leaves.length)];
  const checkpoint = noteOf(log, leaves.length);
  return { checkpoint, form: 2, from: begin, guards: { before, behind }, left, right, since, until };
}

const bytesOf = (lines: Lines, ending: Ending | null): Buffer =>
  Buffer.from([...lines, ...(ending === null ? [] : [canonical(ending)])].map((line) => `${line}\n`).join(''));

/**
 * A slice of form 2 up to the log's end, whose first line is one of the sequences from `first` up to `last`; null if
 * the log has none.
 */
export function sliceExport(log: MadeLog, first: number, last: number, note?: string): Buffer | null {
  for (const { entry } of log.entries) {
    const slice = sliceOf(log, entry.occurred_at, null);
    if (slice.begin < first || slice.begin > last) continue;
    const ending = sliceEnding(log, slice);
    return bytesOf(sliceLines(log, slice), note === undefined ? ending : { ...ending, checkpoint: note });
  }
  return null;
}

/** Makes one export of the log, of one of the kinds below. */
export function makeExport(dice: Dice, log: MadeLog, kind: string): MadeExport {
  const slice = rightSlice(dice, log);
  const lines = sliceLines(log, slice);
  const ending = sliceEnding(log, slice);
  const make = KIND_OF[kind];
  if (make === undefined) throw new TypeError(`No kind of export: ${kind}`);
  return make(dice, { log, slice, lines, ending });
}

interface Given {
  readonly log: MadeLog;
  readonly slice: Slice;
  readonly lines: Lines;
  readonly ending: Ending;
}

const refuted = (what: string, lines: Lines, ending: Ending | null): MadeExport => ({
  what,
  bytes: bytesOf(lines, ending),
  verdict: 'refuted',
  range: null,
});

/** A slice whose edges are what its maker says, whether they hold or not: the tree and the signature are right. */
function claimed(what: string, log: MadeLog, slice: Slice): MadeExport {
  const holds = edgesHold(log, slice);
  const range = holds ? provedBy(log, slice) : null;
  const bytes = bytesOf(sliceLines(log, slice), sliceEnding(log, slice));
  const right = endorsesAll(log, slice) ? 'verified' : 'undecided';
  return { what: `${what}: ${JSON.stringify(slice)}`, bytes, verdict: holds ? right : 'refuted', range };
}

function anotherLastLine(dice: Dice, { log, lines, ending }: Given): MadeExport {
  const [left, right] = [ending['left'] as readonly string[], ending['right'] as readonly string[]];
  const size = log.entries.length;
  const other = sha256(String(dice.below(1e9)));
  const signer = signerAt(log, size);
  const signed = (by: number, root: Buffer): string => signedNote(log, size + by, root, signer);
  const root = treeHash(log.entries.map(({ leaf }) => leaf));
  const endings: readonly (Ending | null)[] = [
    null,
    { ...ending, form: 3 },
    { ...ending, form: '2' },
    { ...ending, more: 1 },
    { ...ending, guards: { ...(ending['guards'] as object), more: 1 } },
    { ...ending, from: Number(ending['from']) + 1 },
    { ...ending, left: [...left, other.toString('base64')] },
    { ...ending, right: [...right, other.toString('base64')] },
    { ...ending, left: left.length > 0 ? left.slice(1) : [''] },
    { ...ending, right: right.length > 0 ? right.toReversed().map((hash) => hash.toLowerCase()) : [''] },
    { ...ending, since: '2026-02-30T00:00:00.000Z' },
    { ...ending, until: '2026-01-01T00:00:00Z' },
    { checkpoint: ending['checkpoint'], from: ending['from'], left, right: [...right, ''] },
    { ...ending, checkpoint: signed(0, other) },
    // A proof of one entry more may have the same form: only who signed knows that the number is wrong.
    { ...ending, checkpoint: signed(size + 2, root) },
    { ...ending, checkpoint: `${String(ending['checkpoint']).split('\n\n')[0]}\n\n` },
    { ...ending, checkpoint: signedNote(log, size, root, { ...log.signer, key: makeSigner('x').key }) },
  ];
  const at = dice.below(endings.length);
  return refuted(`last line ${at}`, lines, endings[at] ?? null);
}

const KIND_OF: Readonly<Record<string, (dice: Dice, given: Given) => MadeExport>> = {
  'a slice': (_, { log, slice }) => claimed('a slice', log, slice),
  'a whole log': (_, { log }) => {
    const range = { since: null, until: logTimes(log, 0, log.entries.length).at(-1) ?? null };
    return { what: 'a whole log', bytes: wholeExport(log), verdict: 'verified', range };
  },
  'a slice of form 1': (_, { log, slice, ending }) => {
    const { form: _form, guards: _guards, since: _since, until: _until, ...old } = ending;
    const all = { ...slice, before: 0, behind: 0 };
    const verdict = endorsesAll(log, slice) ? 'verified' : 'undecided';
    return { what: 'form 1', bytes: bytesOf(sliceLines(log, all), old), verdict, range: null };
  },
  'lines cut at the edges': (dice, { log, slice }) => {
    const count = slice.end - slice.begin;
    const front = dice.below(Math.min(3, count) + 1);
    const back = dice.below(Math.min(3, count - front) + 1);
    const cut = { ...slice, begin: slice.begin + front, end: slice.end - back };
    const before = Math.max(0, slice.before - front);
    return claimed('cut', log, { ...cut, before, behind: Math.max(0, slice.behind - back) });
  },
  'entries that are shown as guards, or guards as entries': (dice, { log, slice }) => {
    const [before, behind] = [slice.before + dice.below(3) - 1, slice.behind + dice.below(3) - 1];
    const room = slice.end - slice.begin;
    const kept = Math.min(room, Math.max(0, before));
    return claimed('marks', log, { ...slice, before: kept, behind: Math.min(room - kept, Math.max(0, behind)) });
  },
  'another range': (dice, { log, slice }) => {
    const moved = (at: string | null): string | null => {
      if (at === null) return dice.chance(0.5) ? null : timeOf(Date.UTC(2026, dice.below(12), 1 + dice.below(28)));
      return dice.chance(0.2)
        ? null
        : timeOf(Date.parse(at) + dice.pick([-1, 1]) * dice.pick([0, 1, 1_000, MINUTE, 9 * MINUTE]));
    };
    return claimed('range', log, { ...slice, since: moved(slice.since), until: moved(slice.until) });
  },
  'guards that are counted wrong': (dice, { slice, lines, ending }) => {
    const guards = { before: slice.before + dice.pick([-1, 1]), behind: slice.behind + dice.below(2) };
    return refuted('counts', lines, { ...ending, guards });
  },
  'a line dropped': (dice, given) => {
    const { lines, ending } = given;
    if (lines.length === 0) return anotherLastLine(dice, given);
    return refuted('dropped', lines.toSpliced(dice.below(lines.length), 1), ending);
  },
  'a line moved': (dice, given) => {
    const { lines, ending } = given;
    if (lines.length < 2) return anotherLastLine(dice, given);
    const from = dice.below(lines.length - 1);
    const to = from + 1 + dice.below(lines.length - 1 - from);
    return refuted('moved', lines.toSpliced(from, 1).toSpliced(to, 0, lines[from] ?? ''), ending);
  },
  'a line doubled': (dice, given) => {
    const { lines, ending } = given;
    if (lines.length === 0) return anotherLastLine(dice, given);
    return refuted('doubled', lines.toSpliced(dice.below(lines.length + 1), 0, dice.pick(lines)), ending);
  },
  'an entry forged with its leaf': (dice, given) => {
    const { log, slice } = given;
    if (slice.begin === slice.end) return anotherLastLine(dice, given);
    const at = slice.begin + dice.below(slice.end - slice.begin);
    const entries = log.entries.map((made, sequence) => {
      if (sequence !== at) return made;
      const entry = { ...made.entry, request_id: `forged ${dice.below(9)}` };
      return { ...made, entry, leaf: leafOf(entry) };
    });
    return refuted('forged', sliceLines({ ...log, entries }, slice), given.ending);
  },
  'another last line': anotherLastLine,
  'a signature by a key that nobody knows': (_, { log, slice, lines, ending }) => {
    const root = treeHash(log.entries.map(({ leaf }) => leaf));
    const checkpoint = signedNote(log, log.entries.length, root, makeSigner(log.signer.name));
    const range = provedBy(log, slice);
    return { what: 'unknown key', bytes: bytesOf(lines, { ...ending, checkpoint }), verdict: 'undecided', range };
  },
  'an endorsement that another key signed': (dice, given) => {
    const made = rotated(dice, { ...given.log, endorsed: [] }, 1);
    const [one] = made.endorsed;
    if (one === undefined) return anotherLastLine(dice, given);
    const { sequence, signer } = one;
    const forged = withEndorsement({ ...given.log, endorsed: [] }, { sequence, signer, by: makeSigner('x') });
    return { what: 'forged endorsement', bytes: wholeExport(forged), verdict: 'refuted', range: null };
  },
  'a checkpoint by a key that was replaced': (dice, given) => {
    const made = rotated(dice, { ...given.log, endorsed: [] }, 2);
    if (made.endorsed.length === 0) return anotherLastLine(dice, given);
    const note = noteOf(made, made.entries.length, made.signer);
    return { what: 'replaced key', bytes: wholeExport(made, note), verdict: 'refuted', range: null };
  },
  'a byte changed': (dice, { lines, ending }) => {
    const bytes = bytesOf(lines, ending);
    const at = dice.below(bytes.length);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << dice.below(8));
    // Another range may be right as well, and a key of another id is not known.
    return { what: `byte ${at}`, bytes, verdict: null, range: null };
  },
};

export const MADE_KINDS = Object.keys(KIND_OF);

/** A line as the API shows it: JSON of any form. */
export function shownLine({ entry, leaf, openings }: MadeEntry): object {
  return { entry, leaf: leaf.toString('base64'), openings };
}

/** An entry that somebody changed, with the leaf of what it was or with its own. */
export function forgedEntry(made: MadeEntry, withLeaf: boolean): MadeEntry {
  const entry = { ...made.entry, request_id: 'forged' };
  return { ...made, entry, leaf: withLeaf ? leafOf(entry) : made.leaf };
}

/** RFC 6962, section 2.1.2: that the tree of `from` leaves is a prefix of that of `to` leaves. */
export function consistencyProof({ entries }: MadeLog, from: number, to: number): readonly string[] {
  const proof = (leaves: readonly Buffer[], size: number, isKnown: boolean): readonly Buffer[] => {
    if (size === leaves.length) return isKnown ? [] : [treeHash(leaves)];
    let half = 1;
    while (2 * half < leaves.length) half *= 2;
    const [left, right] = [leaves.slice(0, half), leaves.slice(half)];
    if (size <= half) return [...proof(left, size, isKnown), treeHash(right)];
    return [...proof(right, size - half, false), treeHash(left)];
  };
  const leaves = entries.slice(0, to).map(({ leaf }) => leaf);
  return proof(leaves, from, true).map((hash) => hash.toString('base64'));
}
