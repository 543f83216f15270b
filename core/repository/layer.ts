/** A layer: the immutable tar of a pack, as events name it and as a store holds it (docs/architecture.md, Storage). */
import type { Brand, LayerId, Timestamp } from '../kernel/ids.ts';

/** `repositories/<repository id>/layers/<layer id>.tar` and the like: `[A-Za-z0-9._/-]`, no `..`, no leading `/`. */
export type LayerKey = Brand<string, 'LayerKey'>;

const LAYER_KEY = /^[A-Za-z0-9_-][A-Za-z0-9._-]*(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/;

export function layerKey(text: string): LayerKey {
  if (!LAYER_KEY.test(text)) throw new TypeError(`Not a layer key: ${JSON.stringify(text)}`);
  return text as LayerKey;
}

/** A committed layer as `RefsUpdated` names it. */
export interface Layer {
  readonly id: LayerId;
  readonly key: LayerKey;
  readonly sizeBytes: number;
  /** SHA-256 of the tar, hex. */
  readonly sha256: string;
  /** The pack's checksum in hex, after which the layer's pack and index are named. */
  readonly pack: string;
}

export interface StoredLayer {
  readonly key: LayerKey;
  readonly sizeBytes: number;
  /** When the layer's bytes were written, by the store's own clock. */
  readonly storedAt: Timestamp;
}
