/**
 * Verifies an export of an account's log: form, order, revisions, openings, leaves, edges, tree and signature.
 *
 * Invariants:
 * - it takes one line at a time, and its memory grows with the number of the log's streams and of its keys, and with
 *   nothing else;
 * - every change of an entry is named by its line, or, if entry and leaf were forged together, by the checkpoints
 *   between which it lies. An opening that was left out is an erasure, and no fault;
 * - what cannot be decided never hides what is wrong: all else is checked before it is told;
 * - nothing of the service is imported: what is checked here was written against the documents alone.
 */
import { canonicalText, isArray, isObject, type Json, type JsonObject, parseJson } from './canonical.ts';
import { type Checkpoint, parseCheckpoint, type VerifierKey } from './checkpoint.ts';
import { checkEntry, createEntryOrder, type EntryOrder } from './entry.ts';
import { createKeyChain, type KeyChain, type RevokedKey } from './keys.ts';
import { createEdges, type Edges, type ProvedRange, sliceEnding } from './slice.ts';
import { emptyRange, type Hash, hashOfBase64, type Range, rangeOf, rootOf, withLeaf, withRange } from './tree.ts';

/** UTF-16 code units of a message, which may quote the file. */
const MESSAGE_LENGTH_MAX = 1_000;

/** A message may quote what the file says, which must not write lines of its own to a terminal. */
function shownText(text: string): string {
  return text.slice(0, MESSAGE_LENGTH_MAX).replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '\ufffd');
}

/** What is wrong, and on which line, counted from 1. */
export class VerifyError extends Error {
  override readonly name = 'VerifyError';
  readonly line: number;
  constructor(line: number, message: string) {
    super(`line ${line}: ${shownText(message)}`);
    this.line = line;
  }
}

export interface VerifyOptions {
  /** Null: signatures are not checked. */
  readonly keys: readonly VerifierKey[] | null;
  /** Checkpoints that were kept, in any order. */
  readonly older: readonly Checkpoint[];
  /** A stolen key; it needs an older checkpoint of exactly the size that it counts up to. */
  readonly revoked?: RevokedKey | null;
  /** Leaves out older checkpoints of other logs: several exports are verified with them. */
  readonly ofSeveral?: boolean;
  /** The range that was asked for, as far as it is known; it must be the one that is proved. */
  readonly asked?: { readonly since: string | null; readonly until: string | null };
}

export interface Verified {
  readonly checkpoint: Checkpoint;
  /** The sequences of the entries: from the first up to but not including the last. */
  readonly from: number;
  readonly to: number;
  readonly isWhole: boolean;
  readonly openings: number;
  /** Lines beside the entries, which show the slice's neighbours. */
  readonly guards: number;
  /** Null for a slice of form 1, which may hide entries at its edges. */
  readonly range: ProvedRange | null;
  readonly isSigned: boolean;
  /** The older checkpoints that it continues. */
  readonly older: readonly Checkpoint[];
  /** Why it is not verified although nothing is wrong with it; empty if it is. */
  readonly undecided: readonly string[];
}

/** A longer line is refused: an entry has at most about 1 MiB, and its openings some kilobytes. */
export const LINE_LENGTH_MAX = 8 * 1024 * 1024;

const FORM_2 = 'checkpoint,form,from,guards,left,right,since,until';
const ENDINGS = ['checkpoint', 'checkpoint,from,left,right', FORM_2];

export interface Verifier {
  /** Takes the next line, without its line feed. Throws VerifyError. */
  line(text: string): void;
  /** Takes the end of the file. */
  end(): Verified;
}

/** What was read so far. */
interface Reading {
  readonly keys: VerifyOptions['keys'];
  readonly revoked: RevokedKey | null;
  readonly chain: KeyChain;
  /** The smallest first. */
  readonly older: readonly Checkpoint[];
  readonly sizes: ReadonlySet<number>;
  readonly ofSeveral: boolean;
  readonly asked: VerifyOptions['asked'];
  readonly order: EntryOrder;
  readonly edges: Edges;
  readonly undecided: string[];
  /** The entries as they were when the log had the size of an older checkpoint. */
  readonly prefixes: Map<number, Range>;
  /** What entries say of older checkpoints: that the service accepted their loss. By size and root. */
  readonly lost: Map<string, string>;
  /** The number of the line that is being read. */
  line: number;
  entries: Range | null;
  openings: number;
  verified: Verified | null;
}

export function createVerifier({ keys, older, revoked = null, ofSeveral = false, asked }: VerifyOptions): Verifier {
  const reading: Reading = {
    keys,
    revoked,
    chain: createKeyChain({ named: keys ?? [], revoked }),
    ofSeveral,
    asked,
    older: older.toSorted((a, b) => a.size - b.size),
    sizes: new Set(older.map(({ size }) => size)),
    order: createEntryOrder(),
    edges: createEdges((message, line) => new VerifyError(line ?? reading.line, message)),
    undecided: [],
    prefixes: new Map(),
    lost: new Map(),
    line: 0,
    entries: null,
    openings: 0,
    verified: null,
  };
  return {
    line(text) {
      reading.line += 1;
      if (reading.verified !== null) throw fault(reading, 'it stands behind the checkpoint');
      const value = parseLine(reading, text);
      const names = Object.keys(value).toSorted().join();
      if (names === 'entry,leaf,openings' || names === 'entry,guard,leaf') takeEntry(reading, value, text);
      else if (ENDINGS.includes(names)) takeEnd(reading, value, text);
      else throw fault(reading, 'it is neither an entry nor a checkpoint');
    },
    end() {
      if (reading.verified !== null) return reading.verified;
      throw new VerifyError(reading.line + 1, 'the export ends without a checkpoint: it was cut off');
    },
  };
}

function fault({ line }: Reading, message: string): VerifyError {
  return new VerifyError(line, message);
}

function parseLine(reading: Reading, text: string): JsonObject {
  if (text.length > LINE_LENGTH_MAX) throw fault(reading, `it is longer than ${LINE_LENGTH_MAX} characters`);
  let value: Json;
  try {
    value = parseJson(text);
  } catch {
    throw fault(reading, 'it is no JSON');
  }
  if (!isObject(value)) throw fault(reading, 'it is no JSON object');
  return value;
}

function takeEntry(reading: Reading, value: JsonObject, text: string): void {
  const { entry, leaf, openings = null, guard } = value;
  const isGuard = guard !== undefined;
  if (!isObject(entry) || typeof leaf !== 'string' || !(isGuard ? guard === true : isObject(openings))) {
    throw fault(reading, 'it has no entry, leaf and openings');
  }
  const checked = checkEntry({ entry, leaf, openings: isObject(openings) ? openings : null }, text);
  if (typeof checked === 'string') throw fault(reading, checked);
  const named = hashOfBase64(leaf);
  if (named === null) throw fault(reading, 'its leaf is no hash in base64');
  if (checked.leaf !== named) throw fault(reading, 'its leaf is not the hash of its entry');
  const range: Range = reading.entries ?? emptyRange(checked.sequence);
  if (checked.sequence !== range.end) throw outOfPlace(reading, checked.sequence, range);
  const disorder = reading.order.add(entry, checked, reading.line);
  if (disorder !== null) throw fault(reading, disorder);
  const endorsed = reading.chain.add(entry, checked.sequence);
  if (endorsed !== null) throw fault(reading, endorsed);
  reading.edges.add(checked, isGuard, reading.line);
  const grown = withLeaf(range, named);
  for (const prefix of [range, grown]) if (reading.sizes.has(prefix.end)) reading.prefixes.set(prefix.end, prefix);
  reading.entries = grown;
  noteLoss(reading, entry);
  reading.openings += checked.openings;
}

/** Only of older checkpoints, so that no export makes this grow. The first entry of a loss counts. */
function noteLoss({ older, lost }: Reading, { type, data, sequence }: JsonObject): void {
  if (type !== 'LogTailLost' || data === undefined || !isObject(data)) return;
  const { size, root, reason } = data;
  const hash = typeof root === 'string' ? hashOfBase64(root) : null;
  const found = older.find((one) => one.size === size && one.root === hash);
  if (found === undefined) return;
  const name = lossName(found);
  const words = `entry ${JSON.stringify(sequence)} (LogTailLost) accepts that loss: ${JSON.stringify(reason)}`;
  if (!lost.has(name)) lost.set(name, words);
}

function lossName({ size, root }: Checkpoint): string {
  return `${size} ${root}`;
}

/** Names the entry that accepts the loss of an older checkpoint, if there is one. */
function withLoss({ lost }: Reading, old: Checkpoint, message: string): string {
  const words = lost.get(lossName(old));
  return words === undefined ? message : `${message}; ${words}`;
}

/** The first line says where a slice begins; the second entry of a log tells if the first one is not what it says. */
function outOfPlace(reading: Reading, sequence: number, { begin, end }: Range): VerifyError {
  if (reading.line === 2 && sequence === 1) return new VerifyError(1, `it has sequence ${begin} in the place of 0`);
  return fault(reading, `it has sequence ${sequence} in the place of ${end}`);
}

function takeEnd(reading: Reading, value: JsonObject, text: string): void {
  const { keys, entries, order, openings } = reading;
  const { checkpoint: note } = value;
  const checkpoint = typeof note === 'string' ? parseCheckpoint(note) : null;
  if (checkpoint === null) throw fault(reading, 'its checkpoint is not that of an account');
  const isWhole = Object.keys(value).length === 1;
  const parts = isWhole ? wholeOf(entries, checkpoint) : sliceOf(value, entries, checkpoint);
  if (typeof parts === 'string') throw fault(reading, parts);
  const { left, own, right } = parts;
  const isSigned = isSignedBy(reading, checkpoint, own, 'the checkpoint');
  if (isWhole && own.begin !== 0) throw new VerifyError(1, 'the export begins behind sequence 0');
  const other = order.accountFault(checkpoint.account);
  if (other !== null) throw new VerifyError(other.line, other.message);
  const range = rangeShown(reading, value, checkpoint.size);
  const { proved, continued } = provePrefixes(reading, checkpoint, parts);
  if (rootOf(withRange(withRange(left, own), right)) !== checkpoint.root) {
    const changed = changedBetween(Math.max(own.begin, proved), own.end, own);
    throw fault(reading, `the entries are not those that the checkpoint signs: ${changed}`);
  }
  if (!isCanonical(value, text)) throw fault(reading, 'it is not canonical JSON (RFC 8785)');
  if (keys !== null && isWhole && !reading.chain.isRooted()) {
    reading.undecided.push(
      "the first key of the log is not one of the given keys: give the first line of the service's list",
    );
  }
  requirePin(reading, checkpoint);
  compareWithAsked(reading, range, own.end === checkpoint.size);
  const { undecided } = reading;
  const { guards } = reading.edges;
  const ofFile = { checkpoint, from: own.begin, to: own.end, isWhole, openings, guards };
  reading.verified = { ...ofFile, range, isSigned, older: continued, undecided };
}

function isCanonical(value: JsonObject, text: string): boolean {
  try {
    return canonicalText(value) === text;
  } catch (error) {
    // It has no canonical text.
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** A number of entries pins no content: only a checkpoint that was kept does. */
function requirePin({ revoked, older, undecided }: Reading, { origin }: Checkpoint): void {
  if (revoked === null || older.some((old) => old.origin === origin && old.size === revoked.after)) return;
  undecided.push(
    `no kept checkpoint of this log has exactly the ${revoked.after} entries after which the key is revoked`,
  );
}

/** Throws for a wrong signature; that of nobody who is known leaves the verdict open. */
function isSignedBy(reading: Reading, checkpoint: Checkpoint, shown: Range, name: string): boolean {
  const signing = reading.chain.signing(checkpoint, shown);
  if (signing.state === 'wrong') throw fault(reading, `${name} is not signed: ${signing.why}`);
  // Without keys the verdict says so already.
  if (reading.keys === null) return false;
  if (signing.state === 'unknown') reading.undecided.push(`${name} is not signed by a known key: ${signing.why}`);
  return signing.state === 'signed';
}

/** Returns the log times that the file proves; null for a slice of form 1. */
function rangeShown(reading: Reading, value: JsonObject, size: number): ProvedRange | null {
  const { edges } = reading;
  const { form, checkpoint: _checkpoint, ...rest } = value;
  if (form !== undefined) {
    const ending = sliceEnding(value);
    if (ending === null) throw fault(reading, 'its form, guards, since and until are not those of a slice of form 2');
    return edges.ofSlice(ending, size);
  }
  if (edges.guards > 0) throw fault(reading, 'it is not the end of a slice of form 2, whose guards stand before it');
  return Object.keys(rest).length === 0 ? edges.ofWhole() : null;
}

/** A file proves the range that it has, never the one that was asked for. */
function compareWithAsked(reading: Reading, range: ProvedRange | null, isLogsEnd: boolean): void {
  const { since = null, until = null } = reading.asked ?? {};
  if (since === null && until === null) return;
  if (range === null) {
    reading.undecided.push('a slice of form 1 proves no range');
    return;
  }
  if (since !== null && since !== range.since) {
    const begin = range.since === null ? "the log's start" : range.since;
    throw fault(reading, `it proves the log from ${begin} on, and not from ${since} on`);
  }
  if (until === null || until === range.until) return;
  const isBeyond = isLogsEnd && (range.until === null || until > range.until);
  if (!isBeyond) throw fault(reading, `it proves the log until ${range.until}, and not until ${until}`);
  const end = range.until === null ? 'has no entry' : `ends with an entry of ${range.until}`;
  reading.undecided.push(`the log ${end}, which proves nothing of the time until ${until}`);
}

/** Says which lines hold the entries from one sequence up to another. */
function changedBetween(from: number, to: number, { begin }: Range): string {
  return `of lines ${from - begin + 1} to ${to - begin}, some entry was changed with its leaf`;
}

interface Prefixes {
  /** Up to which sequence older checkpoints prove the entries. */
  readonly proved: number;
  readonly continued: readonly Checkpoint[];
}

function provePrefixes(reading: Reading, checkpoint: Checkpoint, { left, own }: Parts): Prefixes {
  let proved = 0;
  const continued: Checkpoint[] = [];
  for (const old of reading.older) {
    const name = `the older checkpoint of ${old.size} entries`;
    if (reading.ofSeveral && old.origin !== checkpoint.origin) continue;
    if (old.origin !== checkpoint.origin) {
      throw fault(reading, `${name} is of ${old.origin}, and this one of ${checkpoint.origin}`);
    }
    isSignedBy(reading, old, own, name);
    if (old.size > checkpoint.size) {
      const message = `the log has lost entries: it had ${old.size}, and now ${checkpoint.size}`;
      throw fault(reading, withLoss(reading, old, message));
    }
    const prefix = old.size === own.begin ? emptyRange(own.begin) : reading.prefixes.get(old.size);
    const before = prefix === undefined ? wholeAt(checkpoint, old) : rootOf(withRange(left, prefix));
    if (before === null) {
      reading.undecided.push(`${name} ends outside of this slice, which cannot show whether it agrees`);
      continue;
    }
    if (before !== old.root) {
      const changed = changedBetween(Math.max(own.begin, proved), old.size, own);
      const message = `${name} does not agree: ${changed}, or the log was rewritten`;
      throw fault(reading, withLoss(reading, old, message));
    }
    proved = old.size;
    continued.push(old);
  }
  return { proved, continued };
}

/** A checkpoint of the same size needs no entries: the two must say the same. */
function wholeAt(checkpoint: Checkpoint, old: Checkpoint): Hash | null {
  return old.size === checkpoint.size ? checkpoint.root : null;
}

/** The leaves of the checkpoint's tree: those before the export's entries, its own, and those behind. */
interface Parts {
  readonly left: Range;
  readonly own: Range;
  readonly right: Range;
}

function wholeOf(entries: Range | null, { size }: Checkpoint): Parts | string {
  const own = entries ?? emptyRange(0);
  if (own.end !== size) return `the checkpoint is of ${size} entries, and the export has ${own.end}`;
  return { left: emptyRange(0), own, right: emptyRange(own.end) };
}

function sliceOf(value: JsonObject, entries: Range | null, { size }: Checkpoint): Parts | string {
  const { from, left, right } = value;
  if (typeof from !== 'number' || !Number.isSafeInteger(from) || from < 0) return 'its `from` is no sequence';
  const own = entries ?? emptyRange(from);
  if (own.begin !== from) return `it says that the slice begins at ${from}, which begins at ${own.begin}`;
  const [before, behind] = [hashesOf(left), hashesOf(right)];
  const first = before === null ? null : rangeOf(0, from, before);
  const last = behind === null || own.end > size ? null : rangeOf(own.end, size, behind);
  if (first === null || last === null) return 'its `left` and `right` are not the hashes of the rest of the tree';
  return { left: first, own, right: last };
}

function hashesOf(value: Json | undefined): readonly Hash[] | null {
  if (value === undefined || !isArray(value)) return null;
  const hashes = value.map((text) => (typeof text === 'string' ? hashOfBase64(text) : null));
  return hashes.every((hash) => hash !== null) ? hashes : null;
}
