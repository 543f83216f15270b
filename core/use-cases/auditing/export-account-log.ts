/**
 * Exports an account's log, whole or the entries of a time, as lines that an auditor verifies offline (docs/audit.md).
 *
 * Invariants: the export is exactly of the tree that its checkpoint signs, whatever is appended before its end. Its
 * memory does not grow with its length, and between two reads it holds nothing of the database. Each line is canonical
 * JSON.
 */
import { base64OfHex } from '../../audit/base64.ts';
import { type LeafRange, subtreesOf } from '../../audit/tree.ts';
import type { LogPosition } from '../../kernel/envelope.ts';
import type { AccountId, Timestamp } from '../../kernel/ids.ts';
import { canonicalJson, type JsonObject } from '../../kernel/json.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Hash } from '../../ports/account-log.ts';
import type { Checkpoints, SignedCheckpoint } from './checkpoints.ts';
import type { ExportSlots } from './export-slots.ts';
import { type EntriesContext, entriesBefore, entryLines } from './read-entries.ts';

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
}

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

/** Refused with `log-export-limit-reached`. */
export async function openExport(
  context: ExportContext,
  { account, seen, since, until }: WantedExport,
): Promise<OpenExport | { readonly refused: Refusal }> {
  const close = context.exportSlots.take(account);
  if (close === null) return { refused: { code: 'log-export-limit-reached' } };
  try {
    const head = await context.checkpoints.sign(account, seen);
    const isWhole = since === null && until === null;
    const range = isWhole ? { begin: 0, end: head.size } : await rangeOf(context, account, head, { since, until });
    const ending = isWhole ? { checkpoint: head.note } : await sliceEnding(context, account, head, range);
    return { chunks: () => inChunks(lines(context, account, range, ending)), close };
  } catch (error) {
    close();
    throw error;
  }
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

/** The hashes from which, with the leaves of the slice, the signed root is computed. */
async function sliceEnding(
  context: ExportContext,
  account: AccountId,
  { note, size }: SignedCheckpoint,
  { begin, end }: LeafRange,
): Promise<JsonObject> {
  const hashesOf = async (range: LeafRange): Promise<readonly string[]> => {
    const hashes: readonly Hash[] = await context.readModels.treeHashes(account, subtreesOf(range));
    return hashes.map(base64OfHex);
  };
  const [left, right] = [await hashesOf({ begin: 0, end: begin }), await hashesOf({ begin: end, end: size })];
  return { checkpoint: note, from: begin, left, right };
}

async function* lines(
  context: ExportContext,
  account: AccountId,
  { begin, end }: LeafRange,
  ending: JsonObject,
): AsyncGenerator<JsonObject> {
  for (let next = begin; next < end; ) {
    const range = { from: next, to: end, limit: PLACES_READ_AT_ONCE };
    const places = await context.readModels.entryPlaces(account, null, range);
    if (places.length === 0) throw new TypeError(`The log of account ${account} lacks entry ${next}`);
    for await (const { line } of entryLines(context, account, places)) yield line;
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
