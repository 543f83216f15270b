/**
 * Names and packs new objects in process.
 *
 * Invariants: a pack holds whole objects, each once, and depends on them alone. It is made while it is read, so that no
 * more of it is in memory than one object, and of a stored blob only a piece. Others have the event loop between the
 * objects.
 */
import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { deflate, deflateSync } from 'node:zlib';
import { objectId } from '../../../core/kernel/ids.ts';
import type { StoredBlob } from '../../../core/ports/new-contents.ts';
import type { NewObject, NewObjects } from '../../../core/ports/new-objects.ts';
import { wholeHeader } from './entry-header.ts';
import type { HashObject } from './object-hash.ts';

/** `PACK`, and the version. */
const START = Buffer.from([0x50, 0x41, 0x43, 0x4b, 0, 0, 0, 2]);
/** Larger objects are deflated off the event loop. Internal: both ways give the same bytes. */
const DEFLATE_SYNC_BYTES_MAX = 16 * 1024;
/** Bytes of objects between two turns of the event loop. Internal: it moves only when others have it. */
const TURN_BYTES = 64 * 1024;
/** What an object costs beside its bytes, in as many. */
const OBJECT_COST_BYTES = 2 * 1024;

const deflateLater = promisify<Uint8Array, Buffer>(deflate);

/** Where `hash` is null git alone detects attacks, when the pack is pushed. */
export function createNewObjects(hash: HashObject | null): NewObjects {
  return {
    name: ({ type, bytes }) => {
      const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
      if (hash === null) {
        return objectId(createHash('sha1').update(`${type} ${bytes.length}\0`).update(buffer).digest('hex'));
      }
      try {
        return hash(type, buffer);
      } catch {
        return null;
      }
    },
    pack,
  };
}

async function* pack(objects: readonly (NewObject | StoredBlob)[]): AsyncGenerator<Uint8Array> {
  const sum = createHash('sha1');
  const summed = (bytes: Uint8Array): Uint8Array => {
    sum.update(bytes);
    return bytes;
  };
  const count = Buffer.alloc(4);
  count.writeUInt32BE(objects.length);
  yield summed(Buffer.concat([START, count]));
  let cost = 0;
  for (const object of objects) {
    if (!('bytes' in object)) {
      yield summed(wholeHeader('blob', object.sizeBytes));
      for await (const chunk of object.deflated()) yield summed(chunk);
      continue;
    }
    const { type, bytes } = object;
    cost += bytes.length + OBJECT_COST_BYTES;
    if (cost > TURN_BYTES) {
      cost = 0;
      await nextTurn();
    }
    const deflated = bytes.length > DEFLATE_SYNC_BYTES_MAX ? await deflateLater(bytes) : deflateSync(bytes);
    yield summed(Buffer.concat([wholeHeader(type, bytes.length), deflated]));
  }
  yield sum.digest();
}
