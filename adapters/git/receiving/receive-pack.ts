/**
 * Receives a push's pack into quarantine: checks its header, then its objects against the committed layers.
 *
 * Invariants: when it does not succeed, it leaves no file, process or lease behind.
 */
import { createHash } from 'node:crypto';
import type { PackRefusal } from '../../../core/git/pack-refusal.ts';
import { PACK_CHECKSUM_BYTES } from '../../../core/kernel/ids.ts';
import { ObjectDatabaseError, type Quarantine, type ReceivePackOptions } from '../../../core/ports/object-database.ts';
import { isDiskFull } from '../cache/disk-space.ts';
import type { CacheLease } from '../cache/layer-cache.ts';
import { unlessAborted } from '../process/unless-aborted.ts';
import { explainRefusal } from './explain-refusal.ts';
import type { IncomingPush } from './incoming-bytes.ts';
import { indexArriving } from './index-arriving.ts';
import { quarantineAlone, quarantineView } from './index-pack.ts';
import { createNearbyObjects } from './nearby-objects.ts';
import { beginBoundsCheck, needsGit, refuseLargeObjects } from './pack-bounds.ts';
import { DISK_FULL, openPackInput, type PackInput, PackTooLargeError, tooLarge } from './pack-input.ts';
import { createQuarantine, openStored, type QuarantineContext } from './quarantine.ts';
import { QuarantineFiles } from './quarantine-files.ts';
import { indexSmallPack } from './small-pack.ts';
import { unfinishedQuarantine } from './unfinished-quarantine.ts';

export async function receivePack(
  context: QuarantineContext,
  options: ReceivePackOptions,
): Promise<Quarantine | PackRefusal> {
  const { signal } = options;
  const input = await unlessAborted(signal, () => openPackInput(options));
  if ('refused' in input) return input;
  const { account } = options.objects.place;
  const incoming = context.incomingBytes.open(account);
  let lease: CacheLease | null = null;
  const files = new QuarantineFiles(context.cache.incoming);
  let kept = false;
  try {
    lease = await context.cache.acquire(options.objects);
    if (input.objectCount === 0) {
      const empty = await unlessAborted(signal, () => readEmptyPack(input, options));
      if ('refused' in empty) return empty;
      const quarantine = await createQuarantine(context, { ...empty, account, stored: null }, lease);
      kept = true;
      return quarantine;
    }
    const quarantine = await receiveInto(context, options, { input, incoming, lease, files });
    if ('refused' in quarantine) await assertNotLost(context, lease);
    kept = !('refused' in quarantine);
    return quarantine;
  } catch (error) {
    // The next push finds a folder that is whole.
    if (lease !== null && !signal.aborted) await context.cache.isLost(lease.folder);
    if (!isDiskFull(error)) throw error;
    await unlessAborted(signal, () => input.drain());
    return DISK_FULL;
  } finally {
    incoming.release();
    if (!kept) {
      lease?.release();
      await files.end();
    }
  }
}

/** A pack is not to blame for what it lacks when committed objects were deleted from the cache since. */
async function assertNotLost({ cache }: QuarantineContext, { folder }: CacheLease): Promise<void> {
  if (!(await cache.isLost(folder))) return;
  throw new ObjectDatabaseError('object-database-unavailable', 'Cached objects were deleted while a push was checked');
}

interface Received {
  readonly input: PackInput;
  readonly incoming: IncomingPush;
  readonly lease: CacheLease;
  readonly files: QuarantineFiles;
}

async function receiveInto(
  context: QuarantineContext,
  options: ReceivePackOptions,
  { input, incoming, lease, files }: Received,
): Promise<Quarantine | PackRefusal> {
  const { git, memory, pushMemory, smallPacks, hash } = context;
  const { signal, packSizeBytesMax } = options;
  const { account } = options.objects.place;
  const folder = () => files.folder();
  const view = quarantineView(lease.folder, folder, account);
  const alone = quarantineAlone(lease.folder, folder, account);
  const explaining = { git, memory, folder, alone, whole: view, signal };
  const indexed = await indexArriving({
    git,
    memory: pushMemory,
    view,
    folder,
    input,
    incoming,
    packSizeBytesMax,
    signal,
    checkSmall: async (pack) => {
      if (hash === null) return null;
      const committed = createNearbyObjects(lease.packs);
      const done = await smallPacks.acquire(account, signal);
      try {
        return await indexSmallPack({ bytes: pack, committed, hash, signal });
      } finally {
        done();
      }
    },
    onEndOfInput: once(options.onEndOfInput),
    explain: (sent, refusal, admission) => explainRefusal({ ...explaining, admission }, sent, refusal),
  });
  if ('refused' in indexed) return indexed;
  const receivedBytes = input.receivedBytes();
  const stored = await openStored(context, indexed, files, {
    count: input.objectCount,
    bytes: receivedBytes,
    isSmall: receivedBytes === input.head.length,
    unreferenced: indexed.unreferenced,
  });
  const checked = { git, pack: stored.pack, sent: indexed.sent, sentObjects: input.objectCount };
  const toCheck = { ...checked, alone, whole: view, signal };
  const bounds = needsGit(toCheck) ? beginBoundsCheck(toCheck) : null;
  const refusal = bounds === null ? await refuseLargeObjects(toCheck) : null;
  if (refusal !== null) return refusal;
  const received = { pack: indexed.pack, account, receivedBytes, stored };
  const quarantine = await createQuarantine(context, received, lease);
  return bounds === null ? quarantine : unfinishedQuarantine(quarantine, bounds, { cache: context.cache, lease });
}

function once(call: (() => void) | undefined): () => void {
  let isCalled = false;
  return () => {
    if (!isCalled) call?.();
    isCalled = true;
  };
}

const HEADER_BYTES = 12;
const EMPTY_PACK_BYTES = HEADER_BYTES + PACK_CHECKSUM_BYTES;

/** Reads a pack without objects: a header and its checksum. A push of tips that are committed already sends one. */
async function readEmptyPack(
  input: PackInput,
  options: ReceivePackOptions,
): Promise<{ readonly pack: string; readonly receivedBytes: number } | PackRefusal> {
  const chunks: Uint8Array[] = [];
  let received = 0;
  try {
    for await (const chunk of input.bytes()) {
      received += chunk.byteLength;
      // More bytes are counted and dropped.
      if (received <= 64 * 1024) chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof PackTooLargeError) return tooLarge(options.packSizeBytesMax);
    throw error;
  }
  const bytes = Buffer.concat(chunks);
  const checksum = createHash('sha1').update(bytes.subarray(0, HEADER_BYTES)).digest();
  if (bytes.length < EMPTY_PACK_BYTES) return { refused: 'pack-broken', detail: 'the pack ends too early' };
  if (!checksum.equals(bytes.subarray(HEADER_BYTES, EMPTY_PACK_BYTES))) {
    return { refused: 'pack-broken', detail: 'the pack does not match its checksum' };
  }
  if (received > EMPTY_PACK_BYTES) return { refused: 'pack-broken', detail: 'something follows the pack' };
  options.onEndOfInput?.();
  return { pack: checksum.toString('hex'), receivedBytes: received };
}
