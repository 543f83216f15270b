/** Names and packs the objects that the service makes itself. */
import type { ObjectType } from '../git/objects.ts';
import type { ObjectId } from '../kernel/ids.ts';
import type { StoredBlob } from './new-contents.ts';

export interface NewObject {
  readonly type: ObjectType;
  readonly bytes: Uint8Array;
}

export interface NewObjects {
  /** Returns the id; null if the bytes show an attack on SHA-1, whose object git refuses as well. */
  name(object: NewObject): ObjectId | null;
  /** Returns the pack of these objects, as a client pushes it. */
  pack(objects: readonly (NewObject | StoredBlob)[]): AsyncIterable<Uint8Array>;
}
