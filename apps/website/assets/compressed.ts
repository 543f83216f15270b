/**
 * The assets in the codings that browsers take.
 *
 * Invariants: each asset is compressed once in each coding, at the first request for it, as far as the library can: the
 * assets are few, and what is made is kept for as long as the process runs. Only zlib's threads compress.
 */
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { KIB } from '../../../core/kernel/byte-units.ts';
import { acceptedCoding } from '../../front-door/accepted-coding.ts';
import type { Asset } from './files.ts';

/** Shorter assets are sent as they are. Internal: no client chooses what they hold. */
const COMPRESSED_ASSET_BYTES_MIN = KIB;

type Coding = 'br' | 'gzip';

const COMPRESS: Readonly<Record<Coding, (bytes: Buffer) => Promise<Buffer>>> = {
  br: promisify(brotliCompress),
  gzip: (bytes) => promisify(gzip)(bytes, { level: constants.Z_BEST_COMPRESSION }),
};

const made = new Map<string, Promise<Buffer>>();

/** Returns the asset in the coding that the client wants most; `coding` is null for the plain bytes. */
export async function encodedAsset(
  { path, bytes }: Asset,
  acceptEncoding: string | undefined,
): Promise<{ readonly bytes: Buffer; readonly coding: Coding | null }> {
  const [br, gzipped] = [acceptedCoding(acceptEncoding, 'br'), acceptedCoding(acceptEncoding, 'gzip')];
  const coding = br >= gzipped ? 'br' : 'gzip';
  if (Math.max(br, gzipped) === 0 || bytes.length < COMPRESSED_ASSET_BYTES_MIN) return { bytes, coding: null };
  const key = `${coding} ${path}`;
  let compressed = made.get(key);
  if (compressed === undefined) {
    compressed = COMPRESS[coding](bytes);
    made.set(key, compressed);
    compressed.catch(() => made.delete(key));
  }
  return { bytes: await compressed, coding };
}
