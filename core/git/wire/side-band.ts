/**
 * The side band: data, progress messages and a fatal error in one stream of packets. The first byte of each names its
 * band (gitprotocol-pack(5), "Packfile Data").
 *
 * Invariants: no packet is longer than the negotiated side band allows: 1,000 or 65,520 bytes.
 */
import { encodeUtf8 } from '../utf8.ts';
import { FLUSH_PACKET, packetHeader } from './pkt-line.ts';
import { oneSafeLine } from './safe-line.ts';

/** 1 is the answer itself, 2 text that the client displays after `remote: `, 3 an error that ends the answer. */
export type Band = 1 | 2 | 3;
/** `side-band` has packets of at most 1,000 bytes, `side-band-64k` of 65,520. */
export type SideBandKind = 'side-band' | 'side-band-64k';

/** The four digits of a packet's length, and its band. */
export const SIDE_BAND_HEADER_BYTES = 5;
/** A packet of `side-band-64k`, with its header. Internal: it is the form in which the server writes. */
export const SIDE_BAND_PACKET_BYTES_MAX = 65_520;
const PACKET_BYTES_MAX = { 'side-band': 1_000, 'side-band-64k': SIDE_BAND_PACKET_BYTES_MAX } as const;

/** An empty packet of band 1, which git's server also sends as a keep-alive while a client waits. */
export const KEEP_ALIVE_PACKET = encodeUtf8('0005\u0001');

/** Returns what stands before a payload of this many bytes, in ASCII. */
export function sideBandHeader(band: Band, payloadBytes: number): string {
  return packetHeader(payloadBytes + 1) + String.fromCharCode(band);
}

/** Returns the payload in as many packets of the band as it needs; no packet if it is empty. */
export function sideBandPackets(band: Band, payload: Uint8Array, kind: SideBandKind = 'side-band-64k'): Uint8Array {
  const room = PACKET_BYTES_MAX[kind] - SIDE_BAND_HEADER_BYTES;
  const count = Math.ceil(payload.length / room);
  const packets = new Uint8Array(payload.length + count * SIDE_BAND_HEADER_BYTES);
  let at = 0;
  for (let from = 0; from < payload.length; from += room) {
    const part = payload.subarray(from, from + room);
    packets.set(encodeUtf8(sideBandHeader(band, part.length)), at);
    packets.set(part, at + SIDE_BAND_HEADER_BYTES);
    at += SIDE_BAND_HEADER_BYTES + part.length;
  }
  return packets;
}

/** Yields each chunk on band 1 as it arrives, and then the flush that ends the side band. */
export async function* sideBandStream(
  chunks: AsyncIterable<Uint8Array>,
  kind: SideBandKind = 'side-band-64k',
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of chunks) {
    if (chunk.length > 0) yield sideBandPackets(1, chunk, kind);
  }
  yield FLUSH_PACKET;
}

/** Returns lines that the client displays after `remote: `, made safe for a terminal. */
export function progressPackets(lines: readonly string[], kind: SideBandKind = 'side-band-64k'): Uint8Array {
  return sideBandPackets(2, encodeUtf8(lines.map((line) => `${oneSafeLine(line)}\n`).join('')), kind);
}

/**
 * Returns the error that ends a side band: clients display it and exit. They read nothing after it, so no flush
 * follows.
 */
export function fatalPackets(message: string, kind: SideBandKind = 'side-band-64k'): Uint8Array {
  return sideBandPackets(3, encodeUtf8(`${oneSafeLine(message)}\n`), kind);
}
