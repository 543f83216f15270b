/**
 * Collects the objects of a commit that the service makes, for the pack of its push.
 *
 * Invariants: they are let go of when the pack was read, which is before its push is checked and stored; those that lie
 * on the disk are read last, when the others were let go of.
 */
import type { ObjectType } from '../../git/objects.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import type { StoredBlob } from '../../ports/new-contents.ts';
import type { NewObject, NewObjects } from '../../ports/new-objects.ts';
import type { PackedPush } from './push-refs.ts';

export interface ObjectsToPush {
  /** Returns the id of an object. Throws `ObjectRefused`. */
  name(type: ObjectType, bytes: Uint8Array): ObjectId;
  /** Adds an object, which the pack has once, and returns its id, which is asked of `name` unless it is given. */
  add(type: ObjectType, bytes: Uint8Array, id?: ObjectId): ObjectId;
  /** Adds a blob that lies on the disk, and returns its id. */
  addStored(blob: StoredBlob): ObjectId;
  /** Returns the part of a push that is about its bytes. Nothing is added from then on. */
  pack(): Pick<PackedPush, 'pack' | 'receivedBytes'>;
}

/** An object that shows an attack on SHA-1. */
export class ObjectRefused extends Error {
  override readonly name = 'ObjectRefused';
}

/** `onSent` is called when the pack takes no memory any more: the rest lies on the disk, or nobody reads on. */
export function createObjectsToPush(newObjects: NewObjects, onSent: () => void): ObjectsToPush {
  const objects = new Map<ObjectId, NewObject>();
  const stored = new Map<ObjectId, StoredBlob>();
  const name: ObjectsToPush['name'] = (type, bytes) => {
    const id = newObjects.name({ type, bytes });
    if (id === null) throw new ObjectRefused(`A ${type} has the form of an attack on SHA-1`);
    return id;
  };
  return {
    name,
    add(type, bytes, id = name(type, bytes)) {
      objects.set(id, { type, bytes });
      return id;
    },
    addStored(blob) {
      stored.set(blob.id, blob);
      return blob.id;
    },
    pack() {
      let packed = 0;
      const counted = async function* (): AsyncGenerator<Uint8Array> {
        const sent: (NewObject | StoredBlob)[] = [...objects.values()];
        const inMemory = sent.length;
        for (const [id, blob] of stored) {
          if (objects.has(id)) continue;
          const deflated = (): AsyncIterable<Uint8Array> => {
            // The others were read.
            sent.fill(blob, 0, inMemory);
            onSent();
            return blob.deflated();
          };
          sent.push({ ...blob, deflated });
        }
        objects.clear();
        try {
          for await (const chunk of newObjects.pack(sent)) {
            packed += chunk.length;
            yield chunk;
          }
        } finally {
          sent.length = 0;
          onSent();
        }
      };
      return { pack: counted(), receivedBytes: () => packed };
    },
  };
}
