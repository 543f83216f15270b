/**
 * The bytes of a push's pack for git, which may be asked for again: where git stops reading in the middle, the pack is
 * what git wrote, then what was on its way to git, then what the client still sends.
 *
 * Invariants: memory is bounded, whatever the size of the pack.
 */
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { FastPack } from './held-pack.ts';

/** More than git's input buffer and the pipe to it hold. Internal: git has read what is older. */
const ON_THE_WAY_BYTES_MIN = 1024 * 1024;

export interface SentPack {
  /** The bytes to send to git. */
  bytes(): AsyncIterable<Uint8Array>;
  /**
   * The whole pack, after git has stopped reading and left its unfinished file in this folder; null if there is none.
   */
  again(folder: string): Promise<AsyncIterable<Uint8Array> | null>;
}

/** A pack that is whole, in memory or on disk. */
export function wholePack(bytes: () => AsyncIterable<Uint8Array>): SentPack {
  return { bytes, again: async (folder) => ((await unfinished(folder)) === null ? null : bytes()) };
}

/** The name of the file that git was writing when it stopped; null if it had not begun, or had finished. */
async function unfinished(folder: string): Promise<string | null> {
  return (await readdir(folder)).find((file) => file.startsWith('tmp_pack_')) ?? null;
}

/** A pack that git gets while it arrives. */
export function arrivingPack(arriving: FastPack): SentPack {
  const last: Uint8Array[] = [];
  let lastBytes = 0;
  let sentBytes = 0;
  return {
    bytes: async function* () {
      for await (const chunk of arriving.bytes()) {
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
      const name = await unfinished(folder);
      if (name === null) return null;
      const path = join(folder, name);
      // git adds the bases of a thin pack behind what was sent.
      const writtenBytes = Math.min((await stat(path)).size, sentBytes);
      const skipped = writtenBytes - (sentBytes - lastBytes);
      if (skipped < 0) return null;
      return (async function* () {
        if (writtenBytes > 0) yield* createReadStream(path, { end: writtenBytes - 1 }) as AsyncIterable<Uint8Array>;
        yield Buffer.concat(last).subarray(skipped);
        yield* arriving.rest();
      })();
    },
  };
}
