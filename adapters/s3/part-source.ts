/**
 * Cuts the body of a layer into parts of a fixed size.
 *
 * Invariants: the parts together have exactly the size that was announced, else reading them fails; the body is
 * told when nobody reads it any further.
 */

export interface PartSource {
  /** Returns the next part, or null after the last: a body of no bytes has none. */
  next(): Promise<Buffer | null>;
  /** Ends the body early. */
  close(): Promise<void>;
}

export function createPartSource(body: AsyncIterable<Uint8Array>, sizeBytes: number, partBytes: number): PartSource {
  const chunks = body[Symbol.asyncIterator]();
  let rest: Uint8Array = new Uint8Array(0);
  let taken = 0;
  let isAtEnd = false;

  /** Moves the next bytes of the body into the part, until it is full. */
  async function fill(part: Buffer): Promise<void> {
    let filled = 0;
    while (filled < part.length) {
      if (rest.length === 0) {
        const chunk = await chunks.next();
        if (chunk.done === true) throw wrongLength(`has ${taken + filled} bytes`, sizeBytes);
        rest = chunk.value;
      }
      const moved = rest.subarray(0, part.length - filled);
      part.set(moved, filled);
      filled += moved.length;
      rest = rest.subarray(moved.length);
    }
  }

  async function expectEnd(): Promise<void> {
    while (rest.length === 0) {
      const chunk = await chunks.next();
      if (chunk.done === true) {
        isAtEnd = true;
        return;
      }
      rest = chunk.value;
    }
    throw wrongLength('is longer', sizeBytes);
  }

  return {
    next: async () => {
      if (isAtEnd) return null;
      const part = Buffer.allocUnsafe(Math.min(partBytes, sizeBytes - taken));
      await fill(part);
      taken += part.length;
      // The last part is known to be the last before it is sent.
      if (taken === sizeBytes) await expectEnd();
      return part.length === 0 ? null : part;
    },
    close: async () => {
      if (!isAtEnd) await chunks.return?.();
    },
  };
}

function wrongLength(found: string, sizeBytes: number): TypeError {
  return new TypeError(`The body of a layer ${found}, not the ${sizeBytes} bytes announced`);
}
