/**
 * Signs the head of an account's log. Commit point: the checkpoint's object in the platform's layer store.
 *
 * Invariants: no two signatures contradict each other. The last checkpoint lies outside the log's database, and a
 * tree that does not continue it is never signed: a database that was restored or failed over may have lost its tail.
 * A log is signed by the key that it endorsed last, or by the first one if it endorses none.
 * The new checkpoint is durable before anybody gets it, and only then the one before it is removed. A log that does not
 * continue its last checkpoint is signed again only after the operator gave that checkpoint up (accept-tail-loss.ts).
 */
import { base64OfHex } from '../../audit/base64.ts';
import {
  type Checkpoint,
  checkpointText,
  originOf,
  readCheckpoint,
  type Signer,
  signedNote,
  signerOf,
  type TreeHead,
  verifierKeyText,
} from '../../audit/checkpoint.ts';
import { consistencyRanges, inclusionRanges, type LeafRange, rangeHash, subtreesOf } from '../../audit/tree.ts';
import type { Digest } from '../../kernel/digest.ts';
import type { LogPosition } from '../../kernel/envelope.ts';
import { type AccountId, type Timestamp, uuid } from '../../kernel/ids.ts';
import { shareRead } from '../../kernel/shared-read.ts';
import { singleChunk } from '../../kernel/single-chunk.ts';
import { type AccountLogReader, CheckpointError, type Hash } from '../../ports/account-log.ts';
import { type LayerStore, LayerStoreError } from '../../ports/layer-store.ts';
import { type LogKey, LogKeysError, type NoteSigning } from '../../ports/log-keys.ts';
import { type LayerKey, layerKey } from '../../repository/layer.ts';
import { isRevoked, type ListedKey, type LogKeyRing, listedKeys } from './log-keys.ts';

/** A checkpoint is some 250 bytes; its origin holds a host name of at most 253. Internal: no checkpoint reaches it. */
const CHECKPOINT_SIZE_BYTES_MAX = 2_048;

export interface CheckpointContext {
  readonly readModels: AccountLogReader;
  readonly digest: Digest;
  readonly signing: NoteSigning;
  readonly keys: LogKeyRing;
  /** The platform's store. */
  readonly store: LayerStore;
  /**
   * Called before each signing: records what belongs into the log before that. Returns a position that holds it; null
   * if there was nothing to record.
   */
  readonly recordActs: (account: AccountId) => Promise<LogPosition | null>;
  /** Returns the line of the key that the first `size` entries endorsed last; null if they endorse none. */
  readonly endorsedKey: (account: AccountId, size: number) => Promise<string | null>;
}

/** Somebody put something else in the place of a checkpoint. */
export class UnreadableCheckpointError extends LayerStoreError {
  constructor(account: AccountId, cause: TypeError) {
    super('layer-store-unavailable', `The checkpoint of ${account} cannot be read`, { cause });
  }
}

export interface SignedCheckpoint extends Checkpoint {
  /** The signed note. */
  readonly note: string;
}

/** The last checkpoint that was signed, as it is kept outside the log's database. */
export interface KeptCheckpoint extends SignedCheckpoint {
  readonly signedAt: Timestamp;
  readonly signer: Signer;
  /** Whether the log as it is now continues it. If not, nothing is signed, and an operator must act. */
  readonly continued: boolean;
}

/** What an account's log is now, and the last checkpoint of it; null if none was signed. */
export interface AccountRecord {
  readonly head: TreeHead;
  readonly last: KeptCheckpoint | null;
}

export interface Checkpoints {
  /** Signs the log as it is now, at least up to the position. Throws `CheckpointError`. */
  sign(account: AccountId, position: LogPosition): Promise<SignedCheckpoint>;
  /** Compares the log, at least up to the position, with its last checkpoint. Signs nothing. */
  recordOf(account: AccountId, position: LogPosition): Promise<AccountRecord>;
  /** Returns all public keys, one a line, in the form that verifiers take. */
  verifierKeys(): Promise<string>;
  /** Returns what is published of each key, the oldest first. */
  listKeys(): Promise<readonly ListedKey[]>;
}

export function createCheckpoints(context: CheckpointContext): Checkpoints {
  /** One signing of an account runs at a time, and whoever waits shares the next. */
  const signings = new Map<AccountId, { readonly sign: () => Promise<SignedCheckpoint>; waiting: number }>();
  return {
    async sign(account, position) {
      await context.readModels.accountLogCaughtUp(position);
      const entry = signings.get(account) ?? { sign: shareRead(() => signHead(context, account)), waiting: 0 };
      signings.set(account, entry);
      entry.waiting += 1;
      try {
        return await entry.sign();
      } finally {
        entry.waiting -= 1;
        if (entry.waiting === 0) signings.delete(account);
      }
    },
    async recordOf(account, position) {
      await context.readModels.accountLogCaughtUp(position);
      return readRecord(context, account);
    },
    async verifierKeys() {
      const keys = await context.keys();
      return keys.map((key) => `${verifierKeyText(context.digest, key)}\n`).join('');
    },
    listKeys: async () => listedKeys(context, await context.keys()),
  };
}

async function signHead(context: CheckpointContext, account: AccountId): Promise<SignedCheckpoint> {
  const { readModels, digest, signing, store, recordActs } = context;
  const recorded = await recordActs(account);
  if (recorded !== null) await readModels.accountLogCaughtUp(recorded);
  const { size } = await readModels.logPrefix(account, null);
  const root = await hashOf(context, account, { begin: 0, end: size });
  const key = await keyInForce(context, account, size);
  const checkpoint = { origin: originOf(key.name, account), size, root };
  const note = signedNote(digest, checkpoint, key, signing.sign(key, checkpointText(checkpoint)));
  const before = await storedSizes(store, account);
  await requireContinuation(context, account, checkpoint, before.at(-1));
  if (before.at(-1) !== size) {
    const bytes = new TextEncoder().encode(note);
    // Another node's may be there, or one of this node from before its log was exchanged. Not every bucket keeps a put
    // from replacing that, so what is there is read before it and after it, whatever the put says.
    await requireContinuation(context, account, checkpoint, size);
    await store.put(keyOf(account, size), singleChunk(bytes), bytes.length);
    await requireContinuation(context, account, checkpoint, size);
  }
  for (const older of before) if (older < size) await store.delete(keyOf(account, older));
  return { ...checkpoint, note };
}

/**
 * Returns the key that the first `size` entries put in force, whatever newer one this node knows: a checkpoint by
 * another key would refute the log. Throws `LogKeysError` if it was revoked, and nothing could be recorded since.
 */
async function keyInForce(
  { keys, digest, endorsedKey }: CheckpointContext,
  account: AccountId,
  size: number,
): Promise<LogKey> {
  const line = await endorsedKey(account, size);
  for (const isFresh of [false, true]) {
    const all = await keys(isFresh);
    const found = line === null ? all[0] : all.find((key) => verifierKeyText(digest, key) === line);
    if (found !== undefined && !isRevoked(found, all)) return found;
  }
  const what = line === null ? 'The first key' : `The key ${line}`;
  throw new LogKeysError('log-keys-unavailable', `${what} is in force in the log of ${account}, and cannot sign`);
}

/** Throws unless the checkpoint of this size, if there is one, is of a prefix of the log that is to be signed. */
async function requireContinuation(
  context: CheckpointContext,
  account: AccountId,
  checkpoint: Checkpoint,
  size: number | undefined,
): Promise<void> {
  if (size === undefined) return;
  const last = await readStored(context.store, account, size);
  if (last === null) return;
  const { size: entries, root } = checkpoint;
  if (last.size > entries) throw contradiction(account, last.size, `has only ${entries} entries`);
  const before = last.size === entries ? root : await hashOf(context, account, { begin: 0, end: last.size });
  if (last.root !== before) throw contradiction(account, last.size, 'has another root at that size');
}

function contradiction(account: AccountId, size: number, what: string): CheckpointError {
  return new CheckpointError(
    'log-contradicts-checkpoint',
    `The checkpoint ${keyOf(account, size)} was signed, and the log ${what}`,
  );
}

/** Does what `readStored` does; what somebody put in the place of a checkpoint is an outage of the store. */
async function readKept(
  store: LayerStore,
  account: AccountId,
  size: number,
): Promise<(SignedCheckpoint & { readonly signer: Signer }) | null> {
  try {
    const stored = await readStored(store, account, size);
    return stored === null ? null : { ...stored, signer: signerOf(stored.note) };
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw new UnreadableCheckpointError(account, cause);
  }
}

async function readRecord(context: CheckpointContext, account: AccountId): Promise<AccountRecord> {
  const newest = (await newestCheckpoints(context.store, folderOf(account))).get(account);
  const checkpoint = newest === undefined ? null : await readKept(context.store, account, newest.size);
  // Read last, so that the log is not older than the checkpoint.
  const { size } = await context.readModels.logPrefix(account, null);
  const head = { size, root: await hashOf(context, account, { begin: 0, end: size }) };
  if (newest === undefined || checkpoint === null) return { head, last: null };
  const continued =
    checkpoint.size <= size && checkpoint.root === (await hashOf(context, account, { begin: 0, end: checkpoint.size }));
  return { head, last: { ...checkpoint, signedAt: newest.storedAt, continued } };
}

async function hashOf({ readModels, digest }: CheckpointContext, account: AccountId, range: LeafRange): Promise<Hash> {
  return rangeHash(digest, await readModels.treeHashes(account, subtreesOf(range)));
}

/** The folder of all checkpoints in the platform's store. */
const CHECKPOINTS_FOLDER = 'checkpoints/';
const SIZE_DIGITS = 16;

function keyOf(account: AccountId, size: number): LayerKey {
  return layerKey(`${folderOf(account)}${String(size).padStart(SIZE_DIGITS, '0')}`);
}

function folderOf(account: AccountId): string {
  return `${CHECKPOINTS_FOLDER}${account}/`;
}

const KEY = /^checkpoints\/([^/]+)\/([0-9]{16})$/;

/** Whose log a checkpoint is of, and how many entries it signs. */
export interface CheckpointKey {
  readonly account: AccountId;
  readonly size: number;
}

/** Returns null for another object, such as a checkpoint that the operator gave up as lost. */
function parseCheckpointKey(key: string): CheckpointKey | null {
  const [, account = '', size = ''] = KEY.exec(key) ?? [];
  return account === '' ? null : { account: uuid(account), size: Number(size) };
}

/** Returns the checkpoints in the store that are not lost, in any order. */
export async function* storedCheckpoints(
  store: Pick<LayerStore, 'list'>,
  prefix: string = CHECKPOINTS_FOLDER,
): AsyncGenerator<CheckpointKey & { readonly storedAt: Timestamp }> {
  for await (const { key, storedAt } of store.list(prefix)) {
    const checkpoint = parseCheckpointKey(key);
    if (checkpoint !== null) yield { ...checkpoint, storedAt };
  }
}

export interface StoredCheckpoint {
  /** How many entries it signs. */
  readonly size: number;
  readonly storedAt: Timestamp;
}

/** Returns the newest of those checkpoints of each account: some hundred bytes for each. */
export async function newestCheckpoints(
  store: Pick<LayerStore, 'list'>,
  prefix: string = CHECKPOINTS_FOLDER,
): Promise<ReadonlyMap<AccountId, StoredCheckpoint>> {
  const newest = new Map<AccountId, StoredCheckpoint>();
  for await (const { account, size, storedAt } of storedCheckpoints(store, prefix)) {
    if (size > (newest.get(account)?.size ?? -1)) newest.set(account, { size, storedAt });
  }
  return newest;
}

/**
 * Moves a checkpoint that the log does not continue to `lost/<size>`, so that the log can be signed again. A copy of
 * another lost one of that size may be there, which not every bucket keeps a put from replacing: then the name also has
 * the root. `record` is called between the copy and the removal; after false the checkpoint stays. Repeatable.
 */
export async function giveUpCheckpoint(
  store: LayerStore,
  { account, size, root, note }: SignedCheckpoint & CheckpointKey,
  record: () => Promise<boolean>,
): Promise<void> {
  const bytes = new TextEncoder().encode(note);
  const file = `${folderOf(account)}lost/${String(size).padStart(SIZE_DIGITS, '0')}`;
  for (const key of [layerKey(file), layerKey(`${file}-${root.slice(0, SIZE_DIGITS)}`)]) {
    const there = await textOf(store, key);
    if (there === note) break;
    if (there !== null) continue;
    const stored = await store.put(key, singleChunk(bytes), bytes.length);
    if (stored === 'stored' || (await textOf(store, key)) === note) break;
  }
  if (await record()) await store.delete(keyOf(account, size));
}

/**
 * Returns the sizes of the stored checkpoints, the smallest first. There are few: each signing removes the older ones.
 */
async function storedSizes(store: LayerStore, account: AccountId): Promise<readonly number[]> {
  const stored = await Array.fromAsync(storedCheckpoints(store, folderOf(account)), ({ size }) => size);
  return stored.toSorted((a, b) => a - b);
}

/** Returns null if another node has replaced it: by one that continues it. */
export async function readStored(
  store: LayerStore,
  account: AccountId,
  size: number,
): Promise<SignedCheckpoint | null> {
  const note = await textOf(store, keyOf(account, size));
  return note === null ? null : { ...readCheckpoint(note), note };
}

/** Returns null if there is no such object. */
async function textOf(store: Pick<LayerStore, 'get'>, key: LayerKey): Promise<string | null> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let text = '';
  try {
    for await (const part of await store.get(key, { start: 0, end: CHECKPOINT_SIZE_BYTES_MAX })) {
      text += decoder.decode(part, { stream: true });
    }
    return text;
  } catch (error) {
    if (error instanceof LayerStoreError && error.code === 'layer-not-found') return null;
    throw error;
  }
}

/** A list of hashes that a verifier puts together with what it knows: base64. */
export type Proof = readonly string[];

export interface ProofContext extends Pick<CheckpointContext, 'readModels' | 'digest'> {
  /** The log's head when the proof was asked for. */
  readonly position: LogPosition;
}

async function sizeAt({ readModels, position }: ProofContext, account: AccountId): Promise<number> {
  await readModels.accountLogCaughtUp(position);
  return (await readModels.logPrefix(account, null)).size;
}

/** Returns null if the log has no tree of that size, or that tree no such leaf. */
export async function proveInclusion(
  context: ProofContext,
  account: AccountId,
  { sequence, size }: { readonly sequence: number; readonly size: number },
): Promise<Proof | null> {
  if (sequence >= size || size > (await sizeAt(context, account))) return null;
  return proofOf(context, account, inclusionRanges(sequence, size));
}

/** Returns null if the log has no trees of these sizes, or the first is larger. `from` is at least 1. */
export async function proveConsistency(
  context: ProofContext,
  account: AccountId,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<Proof | null> {
  if (from > to || to > (await sizeAt(context, account))) return null;
  return proofOf(context, account, consistencyRanges(from, to));
}

async function proofOf(
  { readModels, digest }: Pick<CheckpointContext, 'readModels' | 'digest'>,
  account: AccountId,
  ranges: readonly LeafRange[],
): Promise<Proof> {
  const lists = ranges.map(subtreesOf);
  const hashes = await readModels.treeHashes(account, lists.flat());
  let at = 0;
  return lists.map(({ length }) => {
    const own = hashes.slice(at, at + length);
    at += length;
    return base64OfHex(rangeHash(digest, own));
  });
}
