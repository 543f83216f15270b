/**
 * What git pack-objects says while upload-pack sends its pack. upload-pack passes it on in band 2 (gitprotocol-pack(5))
 * and says on its own standard error only that it died.
 *
 * Invariants: only packets of band 2 count, so nothing in a pack passes for a message. No more than the end of
 * them is kept.
 */

/** What is kept of the messages. Internal: that of a fatal error is the last one, and shorter. */
const KEPT_LENGTH_MAX = 1_000;

const HEADER_BYTES = 4;
const MESSAGES_BAND = 2;

export class PackMessages {
  /** False once the bytes are no packets: a client without the side band gets the bare pack. */
  #arePackets = true;
  #header = '';
  #payloadLeft = 0;
  /** Null before the first byte of a payload. */
  #band: number | null = null;
  #text = '';

  /** Takes the next bytes of the answer. */
  add(chunk: Buffer): void {
    for (let at = 0; this.#arePackets && at < chunk.length; ) {
      at = this.#payloadLeft > 0 ? this.#addPayload(chunk, at) : this.#addHeader(chunk, at);
    }
  }

  /** Progress, whose lines end in a carriage return, becomes lines like all others. */
  text(): string {
    return this.#text.replaceAll('\r', '\n');
  }

  #addHeader(chunk: Buffer, at: number): number {
    const end = Math.min(at + HEADER_BYTES - this.#header.length, chunk.length);
    this.#header += chunk.toString('latin1', at, end);
    if (this.#header.length < HEADER_BYTES) return end;
    this.#arePackets = /^[0-9a-f]{4}$/.test(this.#header);
    this.#payloadLeft = Math.max(0, Number.parseInt(this.#header, 16) - HEADER_BYTES);
    this.#header = '';
    this.#band = null;
    return end;
  }

  #addPayload(chunk: Buffer, at: number): number {
    const end = Math.min(at + this.#payloadLeft, chunk.length);
    const isFirst = this.#band === null;
    if (isFirst) this.#band = chunk[at] ?? null;
    if (this.#band === MESSAGES_BAND) {
      this.#text = `${this.#text}${chunk.toString('latin1', isFirst ? at + 1 : at, end)}`.slice(-KEPT_LENGTH_MAX);
    }
    this.#payloadLeft -= end - at;
    return end;
  }
}
