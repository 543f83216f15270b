/**
 * Layers in memory, for tests.
 *
 * Invariants: a layer's bytes are copied in and out, so that no caller can change what a key holds.
 */
import { type Timestamp, timestamp } from '../../../core/kernel/ids.ts';
import { type LayerStore, LayerStoreError } from '../../../core/ports/layer-store.ts';
import { type LayerKey, layerKey, type StoredLayer } from '../../../core/repository/layer.ts';

interface Kept {
  readonly bytes: Uint8Array;
  readonly storedAt: Timestamp;
}

/** Makes a new, empty layer store; `now` is its clock. */
export function createMemoryLayerStore(now: () => Timestamp = wallClock): LayerStore {
  const layers = new Map<LayerKey, Kept>();
  return {
    put: async (key, body, sizeBytes) => {
      const bytes = await collect(body, sizeBytes);
      if (layers.has(layerKey(key))) return 'exists';
      layers.set(key, { bytes, storedAt: now() });
      return 'stored';
    },
    get: async (key, range) => {
      const bytes = layers.get(key)?.bytes;
      if (bytes === undefined) throw new LayerStoreError('layer-not-found', `There is no layer ${key}`);
      const { start, end } = range ?? { start: 0, end: bytes.byteLength };
      const satisfiable = Number.isSafeInteger(start) && start >= 0 && start < Math.min(end, bytes.byteLength);
      if (range !== undefined && !satisfiable) {
        const held = `${key} holds ${bytes.byteLength} bytes, not ${start} to ${end}`;
        throw new LayerStoreError('range-not-satisfiable', held);
      }
      return once(bytes.slice(start, end));
    },
    head: async (key) => {
      const kept = layers.get(key);
      return kept === undefined ? null : stored(key, kept);
    },
    delete: async (key) => {
      layers.delete(key);
    },
    list: async function* (prefix) {
      for (const [key, kept] of [...layers]) if (key.startsWith(prefix)) yield stored(key, kept);
    },
    now: async () => now(),
  };
}

function stored(key: LayerKey, { bytes, storedAt }: Kept): StoredLayer {
  return { key, sizeBytes: bytes.byteLength, storedAt };
}

function wallClock(): Timestamp {
  return timestamp(new Date().toISOString());
}

async function collect(body: AsyncIterable<Uint8Array>, sizeBytes: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(sizeBytes);
  let length = 0;
  for await (const chunk of body) {
    if (length + chunk.byteLength > sizeBytes) throw new TypeError(`The body is longer than ${sizeBytes} bytes`);
    bytes.set(chunk, length);
    length += chunk.byteLength;
  }
  if (length !== sizeBytes) throw new TypeError(`The body has ${length} bytes instead of ${sizeBytes}`);
  return bytes;
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.byteLength > 0) yield bytes;
}
