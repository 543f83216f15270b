/**
 * A program that begins to put a layer into the folder of its first argument, under the key of its second, says so, and
 * never ends the put: a test kills it.
 */
import { createFilesystemLayerStore } from '../../adapters/filesystem/layer-store.ts';
import { createProcessMarks } from '../../adapters/node/process-mark.ts';
import { layerKey } from '../../core/repository/layer.ts';

const [directory = '', key = ''] = process.argv.slice(2);

async function* half(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(1_000);
  process.stdout.write('half\n');
  await new Promise((resolve) => setTimeout(resolve, 600_000));
}

const store = await createFilesystemLayerStore({ directory, writers: await createProcessMarks() });
await store.put(layerKey(key), half(), 2_000);
