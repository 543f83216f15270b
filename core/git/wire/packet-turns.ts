/**
 * The packets of a complete message, read in turns: a request may take megabytes of short lines, and other
 * requests need the event loop in between.
 *
 * Invariants: whoever reads asks for a turn at each packet, and awaits it when there is one. A short message is read
 * without any.
 */
import type { NextTurn } from '../../kernel/turns.ts';
import { createPacketReader, type PacketReader } from './pkt-line.ts';

/** Bytes of one turn: a thousand lines with an id, which take two milliseconds at most. */
const TURN_BYTES = 64 * 1024;

export interface TurnedPackets extends PacketReader {
  /** Returns what to await before the next packet; null while the turn goes on. */
  turn(): Promise<void> | null;
}

export function createTurnedPackets(message: Uint8Array, nextTurn: NextTurn): TurnedPackets {
  const packets = createPacketReader(message);
  let endsAt = TURN_BYTES;
  return {
    ...packets,
    turn() {
      const taken = packets.takenBytes();
      if (taken < endsAt) return null;
      endsAt = taken + TURN_BYTES;
      return nextTurn();
    },
  };
}
