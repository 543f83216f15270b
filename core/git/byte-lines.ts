/**
 * Splits a stream of bytes at a byte: lines at line feeds, git's `-z` records at NUL.
 *
 * Invariants: no piece takes more than `bytesMax` of memory. The rest of a longer one is dropped, and it says so.
 */

export interface BytePiece {
  /** Without the byte that ended it. Valid until the next call of `take`. */
  readonly bytes: Uint8Array;
  readonly cut: boolean;
}

export class ByteLines {
  readonly #end: number;
  readonly #bytesMax: number;
  #held = new Uint8Array(256);
  #length = 0;
  #cut = false;
  #piece: BytePiece | null = null;

  constructor(end: number, bytesMax: number) {
    this.#end = end;
    this.#bytesMax = bytesMax;
  }

  /** Reads one piece from `start`, or what the chunk has of it. Returns where to go on; `next` returns the piece. */
  take(chunk: Uint8Array, start: number): number {
    const found = chunk.indexOf(this.#end, start);
    const end = found < 0 ? chunk.length : found;
    const room = Math.max(0, this.#bytesMax - this.#length);
    const part = chunk.subarray(start, Math.min(end, start + room));
    const cut = this.#cut || part.length < end - start;
    if (found >= 0 && this.#length === 0) this.#piece = { bytes: part, cut };
    else {
      this.#hold(part);
      this.#cut = cut;
      if (found >= 0) this.#piece = { bytes: this.#held.subarray(0, this.#length), cut };
    }
    if (found >= 0) {
      this.#length = 0;
      this.#cut = false;
    }
    return found < 0 ? end : found + 1;
  }

  /** Returns the piece that the last `take` ended; null if it has not ended. */
  next(): BytePiece | null {
    const piece = this.#piece;
    this.#piece = null;
    return piece;
  }

  #hold(part: Uint8Array): void {
    const length = this.#length + part.length;
    if (length > this.#held.length) {
      const larger = new Uint8Array(Math.max(length, this.#held.length * 2));
      larger.set(this.#held.subarray(0, this.#length));
      this.#held = larger;
    }
    this.#held.set(part, this.#length);
    this.#length = length;
  }
}
