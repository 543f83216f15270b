/**
 * Writes packs of what tips reach in a repository's layers (core/ports/layer-drops.ts).
 *
 * Invariants: git sees exactly the packs of the committed layers and the packs written here, whatever this node's
 * cache holds; the first packs are handed out only after git walked all tips in a folder with nothing else in it; no
 * rule of fsck stops it, since old histories break many; nothing stays behind after an end.
 */
import { link, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OBJECT_ID_BYTES, type ObjectId } from '../../../core/kernel/ids.ts';
import type { KeptObjects, KeptTips } from '../../../core/ports/layer-drops.ts';
import type { MergedLayers } from '../../../core/ports/layer-merges.ts';
import type { CommittedObjects } from '../../../core/ports/object-database.ts';
import type { Layer } from '../../../core/repository/layer.ts';
import { type CacheFolder, makeCacheFolder, packPath, viewOf } from '../cache/cache-folder.ts';
import { packNameIn } from '../cache/pack-merging.ts';
import { lines } from '../packs/git-objects.ts';
import { openPackIndex } from '../packs/pack-index.ts';
import type { GitCommand } from '../process/git-commands.ts';
import { createDroppedObjects } from './dropped-objects.ts';
import { type MergingContext, mergedLayers, openWritten } from './merge-layers.ts';

/** Ids that are read from an index in one step. */
const IDS_AT_ONCE = 4_096;

/** One run: the folder with all layers, in which git works, and what was written so far. */
interface Run {
  readonly context: MergingContext;
  readonly folder: CacheFolder;
  readonly signal: AbortSignal;
  readonly written: MergedLayers[];
}

export async function keepReached(
  context: MergingContext,
  objects: CommittedObjects,
  tips: KeptTips,
  signal: AbortSignal,
): Promise<KeptObjects> {
  const { cache } = context;
  const scratch = await cache.incoming.take();
  const written: MergedLayers[] = [];
  const discard = async (): Promise<void> => {
    for (const pack of written) await pack.discard();
    await cache.incoming.remove(scratch);
  };
  try {
    const folder = await makeCacheFolder(scratch, objects.repository, objects.shrinkEpoch);
    await cache.collect(objects, [...objects.layers], folder);
    signal.throwIfAborted();
    const run: Run = { context, folder, signal, written };
    const refs = await writeReached(run, tips.refs, []);
    const left = await writeReached(run, tips.left, tips.refs);
    const kept = [...(refs === null ? [] : [refs.pack]), ...(left === null ? [] : [left.pack])];
    await assertWhole(run, scratch, kept, tips);
    // What refs and earlier tips reach is kept by now, so a later walk ends there.
    const known = [...tips.refs, ...tips.left];
    const dropped = createDroppedObjects({
      pages: context.memory.pages,
      indexPath: (pack) => packPath(folder, pack, 'idx'),
      replaced: packsOf(objects.layers),
      signal,
    });
    return {
      refs,
      left,
      supplement: (later, added, more) => supplement(run, known, later, added, more),
      areDroppedIn: (added) =>
        dropped.areIn(
          packsOf(added),
          written.map(({ pack }) => pack),
        ),
      discard,
    };
  } catch (error) {
    await discard();
    throw error;
  }
}

async function supplement(
  run: Run,
  known: readonly ObjectId[],
  later: CommittedObjects,
  added: readonly Layer[],
  tips: KeptTips,
): Promise<MergedLayers | null> {
  const { context, folder } = run;
  await context.cache.collect(later, added, folder);
  const packs = packsOf(added);
  for (const pack of packs) await markKept(folder, pack);
  // Not only what tips reach: every object of a committed layer needs what it refers to.
  return writeReached(run, both(tips.refs, tips.left), known, packs);
}

/** Two layers may hold the same pack. */
function packsOf(layers: Iterable<Layer>): ReadonlySet<string> {
  return new Set([...layers].map(({ pack }) => pack));
}

function* both(first: Iterable<string>, second: Iterable<string>): Generator<string> {
  yield* first;
  yield* second;
}

/**
 * Writes a pack of what the tips, and the objects of these packs, reach and no marked pack holds; then marks it. A walk
 * ends at what `known` reaches. Resolves null if that is nothing.
 */
async function writeReached(
  run: Run,
  tips: Iterable<string>,
  known: Iterable<string>,
  packs: Iterable<string> = [],
): Promise<MergedLayers | null> {
  const { context, folder, signal, written } = run;
  const { git, cache } = context;
  const target = await cache.incoming.take();
  try {
    const command: GitCommand = {
      args: [
        'pack-objects',
        '--revs',
        '--honor-pack-keep',
        '--non-empty',
        '--delta-base-offset',
        '-q',
        join(target, 'pack/pack'),
      ],
      view: viewOf(folder),
      config: [['core.fsync', 'none']],
      signal,
    };
    let answer = '';
    for await (const chunk of git.stream(command, revisions(run, tips, known, packs)))
      answer += chunk.toString('latin1');
    if (answer === '') {
      await cache.incoming.remove(target);
      return null;
    }
    const pack = packNameIn(answer);
    await linkPack(join(target, 'pack'), folder, pack);
    await markKept(folder, pack);
    const layer = mergedLayers(context, target, await openWritten(context, target, pack));
    written.push(layer);
    return layer;
  } catch (error) {
    await cache.incoming.remove(target);
    throw error;
  }
}

async function* revisions(
  run: Run,
  tips: Iterable<string>,
  known: Iterable<string>,
  packs: Iterable<string>,
): AsyncGenerator<Buffer> {
  yield* lines(tips);
  for (const pack of packs) yield* idsOf(run, pack);
  yield Buffer.from('--not\n');
  yield* lines(known);
}

async function* idsOf({ context: { memory }, folder }: Run, pack: string): AsyncGenerator<Buffer> {
  const index = await openPackIndex(memory.pages, memory.pages.openFresh(packPath(folder, pack, 'idx')));
  for (let start = 0; start < index.objectCount; start += IDS_AT_ONCE) {
    const ids = await index.ids(start, start + IDS_AT_ONCE);
    let text = '';
    for (let at = 0; at < ids.length; at += OBJECT_ID_BYTES)
      text += `${ids.toString('hex', at, at + OBJECT_ID_BYTES)}\n`;
    yield Buffer.from(text);
  }
}

/** Keeps git from writing the objects of this pack again (git-pack-objects(1), --honor-pack-keep). */
async function markKept(folder: CacheFolder, pack: string): Promise<void> {
  await writeFile(join(folder.path, 'objects', 'pack', `pack-${pack}.keep`), '');
}

async function linkPack(from: string, folder: CacheFolder, pack: string): Promise<void> {
  // The index last: git finds packs by their index.
  for (const extension of ['pack', 'rev', 'idx'] as const) {
    await link(join(from, `pack-${pack}.${extension}`), packPath(folder, pack, extension)).catch((cause: unknown) => {
      // A layer of the same objects is there already.
      if (!(cause instanceof Error && 'code' in cause && cause.code === 'EEXIST')) throw cause;
    });
  }
}

/** Walks all tips in a folder with nothing but these packs. */
async function assertWhole(
  { context: { git }, folder, signal }: Run,
  scratch: string,
  packs: readonly string[],
  tips: KeptTips,
): Promise<void> {
  // Without tips git would print how it is used.
  if (tips.refs.length === 0 && tips.left.length === 0) return;
  const alone = await makeCacheFolder(join(scratch, 'alone'), folder.repository, folder.shrinkEpoch);
  for (const pack of packs) await linkPack(join(folder.path, 'objects', 'pack'), alone, pack);
  const command: GitCommand = {
    args: ['rev-list', '--objects', '--quiet', '--stdin'],
    view: viewOf(alone),
    signal,
  };
  for await (const _chunk of git.stream(command, lines(both(tips.refs, tips.left)))) continue;
}
