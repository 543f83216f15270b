/**
 * Stores a layer as a program version without bounds on objects stored it: plain git indexes the pack and nothing
 * checks it.
 */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { layerContent } from '../../adapters/git/layers/layer-tar.ts';
import { createFilePages } from '../../adapters/git/packs/file-pages.ts';
import { type LayerId, uuid } from '../../core/kernel/ids.ts';
import type { LayerStore } from '../../core/ports/layer-store.ts';
import type { CommittedObjects } from '../../core/ports/object-database.ts';
import type { Layer } from '../../core/repository/layer.ts';
import { layerKey } from '../../core/repository/layer.ts';
import { temporaryFolder } from './git.ts';
import { type TestDatabase, withLayer } from './object-database.ts';

export async function putUncheckedLayer(layers: LayerStore, repository: string, packed: Buffer): Promise<Layer> {
  const folder = temporaryFolder('unchecked');
  try {
    execFileSync('git', ['init', '--quiet', '--bare', folder.path]);
    const printed = execFileSync('git', ['index-pack', '--stdin'], { cwd: folder.path, input: packed });
    const pack = /[0-9a-f]{40}/.exec(printed.toString())?.[0] ?? '';
    const pages = createFilePages({ memoryBytesMax: 2 ** 20 });
    const open = (extension: string) => pages.open(join(folder.path, `objects/pack/pack-${pack}.${extension}`));
    const [packFile, idxFile] = [await open('pack'), await open('idx')];
    const content = await layerContent(pages, { pack, packFile, idxFile, updates: '', description: '{}\n' });
    const id = uuid<LayerId>(randomUUID());
    const key = layerKey(`repositories/${repository}/layers/${id}.tar`);
    await layers.put(key, content.body(), content.sizeBytes);
    return { id, key, sizeBytes: content.sizeBytes, sha256: content.sha256(), pack };
  } finally {
    folder.remove();
  }
}

/** Makes a repository that has only this layer. */
export async function storeUnchecked(db: TestDatabase, packed: Buffer): Promise<CommittedObjects> {
  const objects = db.newObjects();
  return withLayer(objects, await putUncheckedLayer(db.layers, objects.repository, packed));
}
