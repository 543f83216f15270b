/**
 * Collects the objects of a commit that the service makes, for the pack of its push.
 *
 * Invariants: they are let go of when the pack was read, which is before its push is checked and stored.
 */
import type { ObjectType } from '../../git/objects.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import type { NewObject, NewObjects } from '../../ports/new-objects.ts';
import type { PackedPush } from './push-refs.ts';

export interface ObjectsToPush {
  /** Returns the id of an object. Throws `ObjectRefused`. */
  name(type: ObjectType, bytes: Uint8Array): ObjectId;
  /** Adds an object, which the pack has once, and returns its id, which is asked of `name` unless it is given. */
  add(type: ObjectType, bytes: Uint8Array, id?: ObjectId): ObjectId;
  /** Returns the part of a push that is about its bytes. Nothing is added from then on. */
  pack(): Pick<PackedPush, 'pack' | 'receivedBytes'>;
}

/** An object that shows an attack on SHA-1. */
export class ObjectRefused extends Error {
  override readonly name = 'ObjectRefused';
}

/** `onSent` is called when the pack was read to its end, or nobody reads it on. */
export function createObjectsToPush(newObjects: NewObjects, onSent: () => void): ObjectsToPush {
  const objects = new Map<ObjectId, NewObject>();
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
    pack() {
      let packed = 0;
      const counted = async function* (): AsyncGenerator<Uint8Array> {
        const sent = [...objects.values()];
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
