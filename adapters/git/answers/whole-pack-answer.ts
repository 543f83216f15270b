/**
 * The answer of upload-pack that is one stored pack, and newer objects behind it, in one stream (gitformat-pack(5)).
 *
 * Invariants: the objects stand in the order of their files, so offsets from one to another hold; the checksum at the
 * end is that of the bytes that were sent. What the file lacks breaks the answer.
 */
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { dataPacket, FLUSH_PACKET } from '../../../core/git/wire/pkt-line.ts';
import { sideBandPackets } from '../../../core/git/wire/side-band.ts';
import { PACK_CHECKSUM_BYTES } from '../../../core/kernel/ids.ts';
import { filePackets } from './file-packets.ts';

const HEADER_BYTES = 12;
const SIGNATURE = 'PACK';
const VERSION = 2;

/** The entries of a pack, without its header and its checksum. */
export interface NewerObjects {
  readonly objectCount: number;
  readonly body: Uint8Array;
}

export interface WholePackAnswer {
  /** The header of the pack that the client gets. */
  readonly start: Uint8Array;
  readonly newer: NewerObjects;
  /** The checksum of that pack, as soon as one client has got it. */
  trailer: Uint8Array | null;
}

/** The header of a pack. */
export function packStart(objectCount: number): Uint8Array {
  const start = Buffer.alloc(HEADER_BYTES);
  start.write(SIGNATURE, 'latin1');
  start.writeUInt32BE(VERSION, 4);
  start.writeUInt32BE(objectCount, 8);
  return start;
}

export function newerOf(pack: Buffer): NewerObjects {
  if (pack.length < HEADER_BYTES + PACK_CHECKSUM_BYTES || !isHeader(pack)) throw new TypeError('git made no pack');
  return { objectCount: pack.readUInt32BE(8), body: pack.subarray(HEADER_BYTES, pack.length - PACK_CHECKSUM_BYTES) };
}

function isHeader(bytes: Buffer): boolean {
  return bytes.toString('latin1', 0, 4) === SIGNATURE && bytes.readUInt32BE(4) === VERSION;
}

export interface Sending {
  readonly protocol: 0 | 1 | 2;
  /** The same as in `UploadPackOptions`. */
  readonly mayOverwrite?: boolean;
}

/** Streams the answer as git does to a client that sent no `have` and is done, on a side band of 64 KiB. */
export async function* sendWholePack(
  packFile: string,
  answer: WholePackAnswer,
  { protocol, mayOverwrite = false }: Sending,
): AsyncGenerator<Uint8Array> {
  const { start, newer } = answer;
  const hash = answer.trailer === null ? createHash('sha1').update(start) : null;
  const file = await open(packFile, 'r');
  try {
    yield dataPacket(protocol === 2 ? 'packfile\n' : 'NAK\n');
    yield sideBandPackets(1, start);
    const end = (await file.stat()).size - PACK_CHECKSUM_BYTES;
    const onRead = hash === null ? null : (bytes: Uint8Array) => void hash.update(bytes);
    yield* filePackets(file, { from: HEADER_BYTES, end, mayOverwrite, onRead });
  } finally {
    await file.close();
  }
  answer.trailer ??= hash?.update(newer.body).digest() ?? null;
  if (answer.trailer === null) throw new TypeError('The checksum of a pack is missing');
  yield sideBandPackets(1, Buffer.concat([newer.body, answer.trailer]));
  yield FLUSH_PACKET;
}
