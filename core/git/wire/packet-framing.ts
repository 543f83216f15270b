/**
 * Watches that bytes are packets while they arrive (gitprotocol-common(5), "pkt-line Format").
 *
 * Invariants: it says no at the first byte that is wrong, so that nothing behind it need be read. It says yes to all
 * that the decoder of pkt-line.ts takes.
 */
import { PACKET_PAYLOAD_BYTES_MAX } from './pkt-line.ts';

const HEADER_BYTES = 4;

/** Returns a function that takes the next bytes, and returns false once they cannot be packets. */
export function createPacketFraming(): (bytes: Uint8Array) => boolean {
  let digits = 0;
  let length = 0;
  let payloadLeft = 0;
  let holds = true;
  return (bytes) => {
    for (let at = 0; holds && at < bytes.length; ) {
      if (payloadLeft > 0) {
        const skipped = Math.min(payloadLeft, bytes.length - at);
        payloadLeft -= skipped;
        at += skipped;
        continue;
      }
      const digit = hexDigit(bytes[at] ?? 0);
      at += 1;
      length = length * 16 + digit;
      digits += 1;
      if (digit < 0) holds = false;
      if (digits < HEADER_BYTES) continue;
      holds &&= length < HEADER_BYTES || length - HEADER_BYTES <= PACKET_PAYLOAD_BYTES_MAX;
      payloadLeft = Math.max(0, length - HEADER_BYTES);
      digits = 0;
      length = 0;
    }
    return holds;
  };
}

/** Returns -1 for a byte that is no digit. */
function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
