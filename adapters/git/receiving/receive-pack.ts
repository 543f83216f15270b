/**
 * Takes a push's pack: its header judged, its objects checked against the committed layers, all in quarantine.
 *
 * Must stay true: whatever ends it but success, no file, process or lease is left.
 */
import { createHash } from 'node:crypto';
import type { PackRefusal, Quarantine, ReceivePackOptions } from '../../../core/ports/object-database.ts';
import { indexPack, quarantineView, unlessAborted } from './index-pack.ts';
import type { CacheLease } from '../layer-cache.ts';
import { isDiskFull } from '../cache/layer-fetch.ts';
import { openPackInput, type PackInput, PackTooLargeError, tooLarge } from './pack-input.ts';
import { createQuarantine, type QuarantineContext } from './quarantine.ts';

const DISK_FULL: PackRefusal = { refused: 'disk-full', detail: 'the server has no room left' };

export async function receivePack(
  context: QuarantineContext,
  options: ReceivePackOptions,
): Promise<Quarantine | PackRefusal> {
  const { signal } = options;
  const input = await unlessAborted(signal, openPackInput(options));
  if ('refused' in input) return input;
  let lease: CacheLease | null = null;
  let folder: string | null = null;
  let kept = false;
  try {
    lease = await context.cache.acquire(options.objects);
    if (input.objectCount === 0) {
      const empty = await unlessAborted(signal, readEmptyPack(input, options));
      if ('refused' in empty) return empty;
      const quarantine = await createQuarantine(context, { ...empty, folder: null }, lease);
      kept = true;
      return quarantine;
    }
    folder = await context.cache.incoming.take();
    const quarantine = await receiveInto(context, options, input, lease, folder);
    kept = !('refused' in quarantine);
    return quarantine;
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    await unlessAborted(signal, input.drain());
    return DISK_FULL;
  } finally {
    if (!kept) {
      lease?.release();
      if (folder !== null) await context.cache.incoming.remove(folder);
    }
  }
}

async function receiveInto(
  context: QuarantineContext,
  options: ReceivePackOptions,
  input: PackInput,
  lease: CacheLease,
  folder: string,
): Promise<Quarantine | PackRefusal> {
  const indexed = await indexPack(context.git, {
    view: quarantineView(lease.folder, folder),
    input,
    packSizeBytesMax: options.packSizeBytesMax,
    signal: options.signal,
    onEndOfInput: options.onEndOfInput,
  });
  if ('refused' in indexed) return indexed;
  return createQuarantine(context, { pack: indexed.pack, receivedBytes: input.receivedBytes(), folder }, lease);
}

/** A push of tips that are here already brings a pack of no objects: a header and its checksum. */
async function readEmptyPack(
  input: PackInput,
  options: ReceivePackOptions,
): Promise<{ readonly pack: string; readonly receivedBytes: number } | PackRefusal> {
  const chunks: Uint8Array[] = [];
  let received = 0;
  try {
    for await (const chunk of input.bytes()) {
      received += chunk.byteLength;
      // What is too much is counted and dropped.
      if (received <= 64 * 1024) chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof PackTooLargeError) return tooLarge(options.packSizeBytesMax);
    throw error;
  }
  const bytes = Buffer.concat(chunks);
  const checksum = createHash('sha1').update(bytes.subarray(0, 12)).digest();
  if (bytes.length < 32) return { refused: 'pack-broken', detail: 'the pack ends too early' };
  if (!checksum.equals(bytes.subarray(12, 32))) {
    return { refused: 'pack-broken', detail: 'the pack does not match its checksum' };
  }
  if (received > 32) return { refused: 'pack-broken', detail: 'something follows the pack' };
  options.onEndOfInput?.();
  return { pack: checksum.toString('hex'), receivedBytes: received };
}
