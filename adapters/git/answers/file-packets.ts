/**
 * The bytes of a file in packets of a side band of 64 KiB: each is read to where it is sent from, behind the header of
 * its packet, so nothing copies it.
 *
 * Invariants: every reader has a buffer of its own, which is written over only after that reader asked for what is
 * next, and only if it said that it is done with the last bytes by then.
 */
import type { FileHandle } from 'node:fs/promises';
import {
  SIDE_BAND_HEADER_BYTES,
  SIDE_BAND_PACKET_BYTES_MAX,
  sideBandHeader,
} from '../../../core/git/wire/side-band.ts';

/** This many wait in memory for each reader, and some are slow. */
const PACKETS = 4;
/** The bytes of the payload of one packet. Internal: it is the form in which the server writes. */
const PAYLOAD_BYTES_MAX = SIDE_BAND_PACKET_BYTES_MAX - SIDE_BAND_HEADER_BYTES;

export interface FilePacketsOptions {
  readonly from: number;
  readonly end: number;
  /** Whether the reader is done with the bytes that it got when it asks for the next. */
  readonly mayOverwrite: boolean;
  /** Gets the bytes of the file, in their order. */
  readonly onRead: ((bytes: Uint8Array) => void) | null;
}

/** Yields the bytes from `from` to `end`, which must be in the file, in packets of band 1. */
export async function* filePackets(
  file: FileHandle,
  { from, end, mayOverwrite, onRead }: FilePacketsOptions,
): AsyncGenerator<Uint8Array> {
  let buffer = newBuffer();
  for (let at = from; at < end; ) {
    const { bytesRead } = await file.readv(payloadsOf(buffer, end - at), at);
    if (bytesRead === 0) throw new Error(`A file ended at byte ${at}, before byte ${end}`);
    at += bytesRead;
    const payloads = payloadsOf(buffer, bytesRead);
    for (const payload of payloads) onRead?.(payload);
    yield framed(buffer, payloads);
    if (!mayOverwrite && at < end) buffer = newBuffer();
  }
}

function newBuffer(): Buffer {
  return Buffer.allocUnsafeSlow(PACKETS * SIDE_BAND_PACKET_BYTES_MAX);
}

/** The places of the next `bytes`, as far as the buffer has room. */
function payloadsOf(buffer: Buffer, bytes: number): readonly Buffer[] {
  const payloads: Buffer[] = [];
  for (let left = bytes; left > 0 && payloads.length < PACKETS; left -= PAYLOAD_BYTES_MAX) {
    const start = payloads.length * SIDE_BAND_PACKET_BYTES_MAX + SIDE_BAND_HEADER_BYTES;
    payloads.push(buffer.subarray(start, start + Math.min(left, PAYLOAD_BYTES_MAX)));
  }
  return payloads;
}

/** Writes the headers: what was read may be less than was asked for. */
function framed(buffer: Buffer, payloads: readonly Buffer[]): Buffer {
  let end = 0;
  for (const [index, { length }] of payloads.entries()) {
    const start = index * SIDE_BAND_PACKET_BYTES_MAX;
    buffer.write(sideBandHeader(1, length), start, 'latin1');
    end = start + SIDE_BAND_HEADER_BYTES + length;
  }
  return buffer.subarray(0, end);
}
