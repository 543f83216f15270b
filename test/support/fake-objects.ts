/** An object database that accepts every pack and answers as the test configured it. */
import { createHash } from 'node:crypto';
import type { ObjectType } from '../../core/git/objects.ts';
import { type PackRefusal, PackRefusedError } from '../../core/git/pack-refusal.ts';
import { OBJECT_ID_DIGITS, type ObjectId } from '../../core/kernel/ids.ts';
import type {
  CommittedObjects,
  ObjectDatabase,
  Quarantine,
  ReceivePackOptions,
} from '../../core/ports/object-database.ts';
import type { Layer } from '../../core/repository/layer.ts';

export interface FakeObjects {
  readonly database: ObjectDatabase;
  /** The types of objects that are not commits; null for objects that are in no pack and no layer. */
  readonly types: Map<ObjectId, ObjectType | null>;
  /** Maps an annotated tag to the object that it peels to. */
  readonly peeled: Map<ObjectId, ObjectId>;
  /** The dates of commits. */
  readonly seconds: Map<ObjectId, number>;
  /** Pairs `ancestor descendant`, by object id. */
  readonly ancestry: Set<string>;
  /** The number of objects in the next packs. */
  objectCount: number;
  /** The size of the next layers. */
  layerSizeBytes: number;
  /** The refusal of the next packs; null accepts them. */
  refusal: PackRefusal | null;
  /** The refusal of the next packs, found while their layers are stored; null accepts them. */
  lateRefusal: PackRefusal | null;
  /** The refusal of the moves of the next pushes; null compares them. */
  movesRefusal: PackRefusal | null;
  recheck: (objects: CommittedObjects) => Promise<PackRefusal | null>;
  onInstall: (layer: Layer) => Promise<void> | void;
  readonly received: Pick<ReceivePackOptions, 'objects' | 'packSizeBytesMax' | 'objectCountMax'>[];
  readonly installed: Layer[];
  /** Whether the next packs hold what their tips do not reach. */
  leftOver: boolean;
  /** The tips of each call of `keepReached`. */
  readonly keptTips: (readonly ObjectId[])[];
  discarded: number;
  tipsCalls: number;
  /** The number of quarantines neither installed nor discarded. */
  open: number;
}

const PACK = 'e'.repeat(OBJECT_ID_DIGITS);

export function createFakeObjects(): FakeObjects {
  const unused = (): never => {
    throw new Error('A push does not read');
  };

  function quarantine(): Quarantine {
    let ended = false;
    let pack = PACK;
    objects.open += 1;
    const end = (): boolean => {
      if (ended) return false;
      ended = true;
      objects.open -= 1;
      return true;
    };
    return {
      get pack() {
        return pack;
      },
      objectCount: objects.objectCount,
      receivedBytes: 100,
      tips: async (ids) => {
        objects.tipsCalls += 1;
        return ids.map((id) => {
          const type = objects.types.has(id) ? (objects.types.get(id) ?? null) : 'commit';
          const target = objects.peeled.get(id);
          return type === null
            ? null
            : { id, type, peeled: target === undefined ? null : { id: target, type: 'commit' } };
        });
      },
      commitSeconds: async (ids) => new Map(ids.map((id) => [id, objects.seconds.get(id) ?? 0])),
      compareMoves: async (moves) =>
        objects.movesRefusal ?? moves.map(({ before, after }) => objects.ancestry.has(`${before} ${after}`)),
      diff: unused,
      layer: async (updates, description) => {
        const head = Buffer.from(`${JSON.stringify(description)}\n${updates.join('\n')}\n`);
        const bytes = Buffer.concat([head, Buffer.alloc(Math.max(0, objects.layerSizeBytes - head.length))]);
        return {
          sizeBytes: bytes.length,
          sha256: () => createHash('sha256').update(bytes).digest('hex'),
          body: async function* () {
            if (objects.lateRefusal !== null) throw new PackRefusedError(objects.lateRefusal);
            yield bytes;
          },
        };
      },
      leavesOver: async () => objects.leftOver,
      keepReached: async (tips) => {
        objects.keptTips.push(tips);
        pack = String(objects.keptTips.length).padStart(OBJECT_ID_DIGITS, '0');
      },
      recheck: (committed) => objects.recheck(committed),
      install: async (layer) => {
        if (!end()) return;
        await objects.onInstall(layer);
        objects.installed.push(layer);
      },
      discard: async () => {
        if (end()) objects.discarded += 1;
      },
    };
  }

  const objects: FakeObjects = {
    database: {
      receive: async ({ pack, signal, objects: committed, packSizeBytesMax, objectCountMax, onEndOfInput }) => {
        objects.received.push({ objects: committed, packSizeBytesMax, objectCountMax });
        for await (const _chunk of pack) signal.throwIfAborted();
        onEndOfInput?.();
        return objects.refusal ?? quarantine();
      },
      open: unused,
      heldAnswer: unused,
      drop: unused,
    },
    types: new Map(),
    peeled: new Map(),
    seconds: new Map(),
    ancestry: new Set(),
    objectCount: 3,
    layerSizeBytes: 1_000,
    refusal: null,
    lateRefusal: null,
    movesRefusal: null,
    recheck: async () => null,
    onInstall: () => undefined,
    received: [],
    installed: [],
    leftOver: false,
    keptTips: [],
    discarded: 0,
    tipsCalls: 0,
    open: 0,
  };
  return objects;
}
