/**
 * Verifies an export of an account's log: form, order, revisions, openings, leaves, tree and signature.
 *
 * Invariants:
 * - it takes one line at a time, and its memory grows with the number of the log's streams and with nothing else;
 * - every change of an entry is named by its line, or, if entry and leaf were forged together, by the checkpoints
 *   between which it lies. An opening that was left out is an erasure, and no fault;
 * - nothing of the service is imported: what is checked here was written against the documents alone.
 */
import { canonicalText, isArray, isObject, type Json, type JsonObject, parseJson } from './canonical.ts';
import { type Checkpoint, parseCheckpoint, signatureFault, type VerifierKey } from './checkpoint.ts';
import { checkEntry, createEntryOrder, type EntryOrder } from './entry.ts';
import { emptyRange, type Hash, hashOfBase64, type Range, rangeOf, rootOf, withLeaf, withRange } from './tree.ts';

/** What is wrong, and on which line, counted from 1. */
export class VerifyError extends Error {
  override readonly name = 'VerifyError';
  readonly line: number;
  constructor(line: number, message: string) {
    super(`line ${line}: ${message}`);
    this.line = line;
  }
}

export interface VerifyOptions {
  /** Null: signatures are not checked. */
  readonly keys: readonly VerifierKey[] | null;
  /** Checkpoints that were kept, in any order. */
  readonly older: readonly Checkpoint[];
}

export interface Verified {
  readonly checkpoint: Checkpoint;
  /** The sequences of the entries: from the first up to but not including the last. */
  readonly from: number;
  readonly to: number;
  readonly isWhole: boolean;
  readonly openings: number;
}

/** A longer line is refused: an entry has at most about 1 MiB, and its openings some kilobytes. */
export const LINE_LENGTH_MAX = 8 * 1024 * 1024;

const ENDINGS = ['checkpoint', 'checkpoint,from,left,right'];

export interface Verifier {
  /** Takes the next line, without its line feed. Throws VerifyError. */
  line(text: string): void;
  /** Takes the end of the file. */
  end(): Verified;
}

/** What was read so far. */
interface Reading {
  readonly keys: VerifyOptions['keys'];
  /** The smallest first. */
  readonly older: readonly Checkpoint[];
  readonly sizes: ReadonlySet<number>;
  readonly order: EntryOrder;
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

export function createVerifier({ keys, older }: VerifyOptions): Verifier {
  const reading: Reading = {
    keys,
    older: older.toSorted((a, b) => a.size - b.size),
    sizes: new Set(older.map(({ size }) => size)),
    order: createEntryOrder(),
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
      if (names === 'entry,leaf,openings') takeEntry(reading, value, text);
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
  const { entry, leaf, openings } = value;
  if (!isObject(entry) || typeof leaf !== 'string' || !isObject(openings)) {
    throw fault(reading, 'it has no entry, leaf and openings');
  }
  const checked = checkEntry({ entry, leaf, openings }, text);
  if (typeof checked === 'string') throw fault(reading, checked);
  const named = hashOfBase64(leaf);
  if (named === null) throw fault(reading, 'its leaf is no hash in base64');
  if (checked.leaf !== named) throw fault(reading, 'its leaf is not the hash of its entry');
  const range: Range = reading.entries ?? emptyRange(checked.sequence);
  if (checked.sequence !== range.end) throw outOfPlace(reading, checked.sequence, range);
  const disorder = reading.order.add(entry, checked, reading.line);
  if (disorder !== null) throw fault(reading, disorder);
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
  const unsigned = keys === null ? null : signatureFault(checkpoint, keys);
  if (unsigned !== null) throw fault(reading, `the checkpoint is not signed: ${unsigned}`);
  const isWhole = Object.keys(value).length === 1;
  const parts = isWhole ? wholeOf(entries, checkpoint) : sliceOf(value, entries, checkpoint);
  if (typeof parts === 'string') throw fault(reading, parts);
  const { left, own, right } = parts;
  if (isWhole && own.begin !== 0) throw new VerifyError(1, 'the export begins behind sequence 0');
  const other = order.accountFault(checkpoint.account);
  if (other !== null) throw new VerifyError(other.line, other.message);
  const proved = provePrefixes(reading, checkpoint, parts);
  if (rootOf(withRange(withRange(left, own), right)) !== checkpoint.root) {
    const changed = changedBetween(Math.max(own.begin, proved), own.end, own);
    throw fault(reading, `the entries are not those that the checkpoint signs: ${changed}`);
  }
  if (canonicalText(value) !== text) throw fault(reading, 'it is not canonical JSON (RFC 8785)');
  reading.verified = { checkpoint, from: own.begin, to: own.end, isWhole, openings };
}

/** Says which lines hold the entries from one sequence up to another. */
function changedBetween(from: number, to: number, { begin }: Range): string {
  return `of lines ${from - begin + 1} to ${to - begin}, some entry was changed with its leaf`;
}

/** Returns up to which sequence older checkpoints prove the entries. */
function provePrefixes(reading: Reading, checkpoint: Checkpoint, { left, own }: Parts): number {
  let proved = 0;
  for (const old of reading.older) {
    const name = `the older checkpoint of ${old.size} entries`;
    const unsigned = reading.keys === null ? null : signatureFault(old, reading.keys);
    if (unsigned !== null) throw fault(reading, `${name} is not signed: ${unsigned}`);
    if (old.origin !== checkpoint.origin) {
      throw fault(reading, `${name} is of ${old.origin}, and this one of ${checkpoint.origin}`);
    }
    if (old.size > checkpoint.size) {
      const message = `the log has lost entries: it had ${old.size}, and now ${checkpoint.size}`;
      throw fault(reading, withLoss(reading, old, message));
    }
    const prefix = old.size === own.begin ? emptyRange(own.begin) : reading.prefixes.get(old.size);
    const before = prefix === undefined ? wholeAt(checkpoint, old) : rootOf(withRange(left, prefix));
    if (before === null)
      throw fault(reading, `${name} ends outside of this slice, which cannot show whether it agrees`);
    if (before !== old.root) {
      const changed = changedBetween(Math.max(own.begin, proved), old.size, own);
      const message = `${name} does not agree: ${changed}, or the log was rewritten`;
      throw fault(reading, withLoss(reading, old, message));
    }
    proved = old.size;
  }
  return proved;
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
