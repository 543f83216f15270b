/** Checks that the store holds a layer with the size and SHA-256 that its event records. */
import type { Digest } from '../../kernel/digest.ts';
import { type LayerStore, LayerStoreError } from '../../ports/layer-store.ts';
import type { RecordedLayer } from '../../repository/events.ts';
import { layerKey } from '../../repository/layer.ts';

export interface LayerFault {
  readonly kind: 'missing' | 'damaged';
  /** The fault, in words that follow the layer's name. */
  readonly detail: string;
}

/** Reads the whole layer in constant memory. Resolves to null if it is intact. */
export async function checkLayer(
  digest: Pick<Digest, 'startSha256'>,
  layers: LayerStore,
  layer: RecordedLayer,
): Promise<LayerFault | null> {
  try {
    return await compareLayer(digest, layers, layer);
  } catch (error) {
    if (!(error instanceof LayerStoreError)) throw error;
    return { kind: 'damaged', detail: `cannot be read: ${error.code}` };
  }
}

/** Does the same, and rejects with a `LayerStoreError` if the store cannot be read. */
export async function compareLayer(
  digest: Pick<Digest, 'startSha256'>,
  layers: Pick<LayerStore, 'get'>,
  layer: RecordedLayer,
): Promise<LayerFault | null> {
  try {
    const hash = digest.startSha256();
    let sizeBytes = 0;
    for await (const chunk of await layers.get(layerKey(layer.key))) {
      hash.add(chunk);
      sizeBytes += chunk.byteLength;
    }
    if (sizeBytes !== layer.size_bytes) {
      return { kind: 'damaged', detail: `holds ${sizeBytes} bytes instead of ${layer.size_bytes}` };
    }
    const sha256 = hash.hex();
    if (sha256 === layer.sha256) return null;
    return { kind: 'damaged', detail: `has the SHA-256 ${sha256} instead of ${layer.sha256}` };
  } catch (error) {
    if (error instanceof LayerStoreError && error.code === 'layer-not-found') {
      return { kind: 'missing', detail: 'is not there' };
    }
    throw error;
  }
}
