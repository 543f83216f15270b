/**
 * Exports an account's log, whole or the entries of a time, as lines that an auditor verifies offline (docs/audit.md).
 *
 * Invariants: the export is exactly of the tree that its checkpoint signs, whatever is appended before its end. Its
 * memory does not grow with its length, and between two reads it holds nothing of the database. Each line is canonical
 * JSON. A slice shows its neighbours as guards, so that it cannot be cut without a verifier's notice.
 */
import { base64OfHex } from '../../audit/base64.ts';
import { guardLine } from '../../audit/entry.ts';
import { type LeafRange, subtreesOf } from '../../audit/tree.ts';
import type { LogPosition } from '../../kernel/envelope.ts';
import { type AccountId, plusMs, type Timestamp, timestamp } from '../../kernel/ids.ts';
import { canonicalJson, type JsonObject } from '../../kernel/json.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Hash } from '../../ports/account-log.ts';
import type { Checkpoints, SignedCheckpoint } from './checkpoints.ts';
import type { ExportSlots } from './export-slots.ts';
import { type EntriesContext, entriesBefore, entryLines, FIRST_INSTANT } from './read-entries.ts';

export interface ExportContext extends EntriesContext {
  readonly exportSlots: ExportSlots;
  readonly checkpoints: Pick<Checkpoints, 'sign'>;
}

export interface WantedExport {
  readonly account: AccountId;
  /** The export includes the log up to this position. */
  readonly seen: LogPosition;
  /** Log times, inclusive and exclusive. Without both the export is whole. */
  readonly since: Timestamp | null;
  readonly until: Timestamp | null;
  /** The form of a slice. Absent: 2. */
  readonly form?: SliceForm;
}

/** 1: without guards, for verifiers of versions before form 2. */
export type SliceForm = 1 | 2;

export interface OpenExport {
  /** UTF-8, in parts of some lines each. */
  readonly chunks: () => AsyncGenerator<Uint8Array>;
  /** Must be called, however the export ends. */
  readonly close: () => void;
}

/** Places that are read together: each takes some hundred bytes. */
const PLACES_READ_AT_ONCE = 1_000;
/** UTF-16 code units that are sent together. Internal: the chunks together are the same bytes. */
const CHUNK_LENGTH_MIN = 64 * 1024;

/**
 * Twice how far a node's clock may be off when it appends. What came before an event in the log was written before it,
 * so an event that is older than `since` by more than this has nothing of `since` before it. Internal: it is part of
 * the form of a slice (docs/audit.md).
 */
const GUARD_MS = 120_000;

/** Refused with `log-export-limit-reached`. */
export async function openExport(
  context: ExportContext,
  { account, seen, since, until, form = 2 }: WantedExport,
): Promise<OpenExport | { readonly refused: Refusal }> {
  const close = context.exportSlots.take(account);
  if (close === null) return { refused: { code: 'log-export-limit-reached' } };
  try {
    const head = await context.checkpoints.sign(account, seen);
    const parts =
      since === null && until === null ? wholeOf(head) : await sliceOf(context, head, { account, since, until, form });
    return { chunks: () => inChunks(lines(context, account, parts)), close };
  } catch (error) {
    close();
    throw error;
  }
}

/** What an export has: a guard shows an entry without its openings. */
interface ExportParts {
  /** The guards before the entries end where these begin. */
  readonly shown: LeafRange;
  readonly entries: LeafRange;
  readonly ending: JsonObject;
}

function wholeOf({ size, note }: SignedCheckpoint): ExportParts {
  const all = { begin: 0, end: size };
  return { shown: all, entries: all, ending: { checkpoint: note } };
}

type WantedSlice = Required<Omit<WantedExport, 'seen'>>;

async function sliceOf(context: ExportContext, head: SignedCheckpoint, wanted: WantedSlice): Promise<ExportParts> {
  const { account, since, until, form } = wanted;
  const entries = await rangeOf(context, account, head, { since, until });
  const shown = form === 1 ? entries : await guardedRange(context, head, wanted, entries);
  const { from, ...hashes } = await placeInTree(context, account, head, shown);
  if (form === 1) return { shown, entries, ending: { checkpoint: head.note, from, ...hashes } };
  const guards = { before: entries.begin - shown.begin, behind: shown.end - entries.end };
  return { shown, entries, ending: { checkpoint: head.note, form, from, guards, ...hashes, since, until } };
}

/**
 * Returns the entries with their guards: back to one that is older than `since` by more than `GUARD_MS`, forward to one
 * that is as much later than `until`, or to the log's ends.
 *
 * They are found by log times, which the model knows. An entry's own time is never later than its log time, and where
 * the log time rises it is the entry's own.
 */
async function guardedRange(
  context: ExportContext,
  { size }: SignedCheckpoint,
  { account, since, until }: WantedSlice,
  { begin, end }: LeafRange,
): Promise<LeafRange> {
  const older = since === null ? 0 : await entriesBefore(context, account, movedBy(since, -GUARD_MS));
  // Where `until` comes before `since`, the entry at the end is the first one of `since`, and so late enough.
  const later =
    until === null ? size : Math.max(end, await entriesBefore(context, account, movedBy(until, GUARD_MS + 1)));
  return { begin: Math.min(begin, Math.max(0, older - 1)), end: Math.min(size, later + 1) };
}

const LAST_INSTANT = timestamp('9999-12-31T23:59:59.999Z');

/** Returns an instant of the years 1 to 9999. */
function movedBy(at: Timestamp, spanMs: number): Timestamp {
  if (spanMs < 0) return at < plusMs(FIRST_INSTANT, -spanMs) ? FIRST_INSTANT : plusMs(at, spanMs);
  return at > plusMs(LAST_INSTANT, -spanMs) ? LAST_INSTANT : plusMs(at, spanMs);
}

/** Returns the entries of a time, as far as the checkpoint has them. */
async function rangeOf(
  context: ExportContext,
  account: AccountId,
  { size }: SignedCheckpoint,
  { since, until }: Pick<WantedExport, 'since' | 'until'>,
): Promise<LeafRange> {
  const begin = since === null ? 0 : Math.min(size, await entriesBefore(context, account, since));
  const end = until === null ? size : Math.min(size, await entriesBefore(context, account, until));
  return { begin, end: Math.max(begin, end) };
}

/** Returns the hashes from which, with the leaves of the slice, the signed root is computed. */
async function placeInTree(
  context: ExportContext,
  account: AccountId,
  { size }: SignedCheckpoint,
  { begin, end }: LeafRange,
): Promise<{ readonly from: number; readonly left: readonly string[]; readonly right: readonly string[] }> {
  const hashesOf = async (range: LeafRange): Promise<readonly string[]> => {
    const hashes: readonly Hash[] = await context.readModels.treeHashes(account, subtreesOf(range));
    return hashes.map(base64OfHex);
  };
  const [left, right] = [await hashesOf({ begin: 0, end: begin }), await hashesOf({ begin: end, end: size })];
  return { from: begin, left, right };
}

async function* lines(
  context: ExportContext,
  account: AccountId,
  { shown, entries, ending }: ExportParts,
): AsyncGenerator<JsonObject> {
  for (let next = shown.begin; next < shown.end; ) {
    const range = { from: next, to: shown.end, limit: PLACES_READ_AT_ONCE };
    const places = await context.readModels.entryPlaces(account, null, range);
    if (places.length === 0) throw new TypeError(`The log of account ${account} lacks entry ${next}`);
    for await (const { place, event, line } of entryLines(context, account, places)) {
      const isGuard = place.sequence < entries.begin || place.sequence >= entries.end;
      yield isGuard ? guardLine(event, place.sequence, place.leaf) : line;
    }
    next += places.length;
  }
  yield ending;
}

async function* inChunks(source: AsyncIterable<JsonObject>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  let text = '';
  for await (const line of source) {
    text += `${canonicalJson(line)}\n`;
    if (text.length < CHUNK_LENGTH_MIN) continue;
    yield encoder.encode(text);
    text = '';
  }
  if (text !== '') yield encoder.encode(text);
}
