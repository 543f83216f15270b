/**
 * Where layers lie: immutable objects by key, on a file system or in a bucket.
 *
 * Must stay true: `put` resolves only when the bytes would survive a power cut; a key, once written, never
 * holds other bytes; nothing but an explicit `delete` removes one.
 */
import type { Brand, Timestamp } from '../kernel/ids.ts';

/** `repositories/<repository id>/layers/<layer id>.tar` and the like: `[A-Za-z0-9._/-]`, no `..`, no leading `/`. */
export type LayerKey = Brand<string, 'LayerKey'>;

const LAYER_KEY = /^[A-Za-z0-9_-][A-Za-z0-9._-]*(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/;

export function layerKey(text: string): LayerKey {
  if (!LAYER_KEY.test(text)) throw new TypeError(`Not a layer key: ${JSON.stringify(text)}`);
  return text as LayerKey;
}

/** Bytes `start` to `end`, `end` not included. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export interface StoredLayer {
  readonly key: LayerKey;
  readonly sizeBytes: number;
  /** When its bytes were written, by the store's own clock. */
  readonly storedAt: Timestamp;
}

export type LayerStoreErrorCode =
  | 'layer-not-found'
  | 'layer-store-full'
  | 'layer-store-unavailable'
  | 'range-not-satisfiable';

export class LayerStoreError extends Error {
  override readonly name = 'LayerStoreError';
  readonly code: LayerStoreErrorCode;
  constructor(code: LayerStoreErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

export interface LayerStore {
  /**
   * Stores exactly `sizeBytes` bytes under a new key. `exists` when the key is taken: nothing is changed.
   * A body of another length, or one that fails, leaves nothing behind.
   */
  put(key: LayerKey, body: AsyncIterable<Uint8Array>, sizeBytes: number): Promise<'stored' | 'exists'>;
  /**
   * The bytes, or a range of them; an end past the layer's is cut to it. Before the first byte it rejects with
   * `layer-not-found`, or with `range-not-satisfiable` for a range that holds no byte of the layer.
   */
  get(key: LayerKey, range?: ByteRange): Promise<AsyncIterable<Uint8Array>>;
  head(key: LayerKey): Promise<StoredLayer | null>;
  /** Removing what is not there is no error. */
  delete(key: LayerKey): Promise<void>;
  /** Every key that starts with the prefix, in no promised order. */
  list(prefix: string): AsyncIterable<StoredLayer>;
  /** What the store's own clock says, to be compared with `storedAt`: nodes' clocks may differ from it. */
  now(): Promise<Timestamp>;
}
