/**
 * The pack of a refused push once more, for git to be asked what leads to the object that it refused: git stops reading
 * in the middle, so the pack is what git wrote, then what was on its way to git, then what the client still sends.
 *
 * Must stay true: memory is bounded, whatever the size of the pack.
 */
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { PackInput } from './pack-input.ts';

/** More than git's input buffer and the pipe to it hold. */
const ON_THE_WAY_BYTES_MIN = 1024 * 1024;

export interface SentPack {
  /** The bytes to send to git. */
  bytes(): AsyncGenerator<Uint8Array>;
  /** The whole pack, after git has stopped reading, from the unfinished file in this folder; null if it is not there. */
  again(folder: string): Promise<AsyncGenerator<Uint8Array> | null>;
}

export function createSentPack(input: PackInput): SentPack {
  const last: Uint8Array[] = [];
  let lastBytes = 0;
  let sentBytes = 0;
  return {
    bytes: async function* () {
      for await (const chunk of input.bytes()) {
        last.push(chunk);
        lastBytes += chunk.byteLength;
        sentBytes += chunk.byteLength;
        while (last[0] !== undefined && lastBytes - last[0].byteLength >= ON_THE_WAY_BYTES_MIN) {
          lastBytes -= last[0].byteLength;
          last.shift();
        }
        yield chunk;
      }
    },
    again: async (folder) => {
      const name = (await readdir(folder)).find((file) => file.startsWith('tmp_pack_'));
      if (name === undefined) return null;
      const path = join(folder, name);
      // git adds the bases of a thin pack behind what was sent.
      const writtenBytes = Math.min((await stat(path)).size, sentBytes);
      const skipped = writtenBytes - (sentBytes - lastBytes);
      if (skipped < 0) return null;
      return (async function* () {
        if (writtenBytes > 0) yield* createReadStream(path, { end: writtenBytes - 1 }) as AsyncIterable<Uint8Array>;
        yield Buffer.concat(last).subarray(skipped);
        yield* input.rest();
      })();
    },
  };
}
