/**
 * Writes the part of a received pack that some tips reach, for a push whose pack holds more.
 *
 * Invariants: the new pack and the committed layers together hold all that the tips reach. git takes no object from
 * the committed layers (git-pack-objects(1), --local), so that a push stores nothing twice.
 */
import { join } from 'node:path';
import type { ObjectId } from '../../../core/kernel/ids.ts';
import { packNameIn } from '../cache/pack-merging.ts';
import { lines } from '../packs/git-objects.ts';
import type { Git, GitCommand, ObjectView } from '../process/git-commands.ts';

export interface TrimOptions {
  /** The received pack, in its object directory, and the committed objects as its alternate. */
  readonly view: ObjectView;
  readonly tips: readonly ObjectId[];
  /** Committed tips, at which the walk ends. */
  readonly known: Iterable<ObjectId>;
  /** A folder of incoming files. */
  readonly target: string;
  readonly signal: AbortSignal;
}

/** Resolves with the checksum of the pack in the target folder, hex; null if the tips need none of the objects. */
export async function trimPack(git: Git, { view, tips, known, target, signal }: TrimOptions): Promise<string | null> {
  const command: GitCommand = {
    args: [
      'pack-objects',
      '--revs',
      '--local',
      '--non-empty',
      '--delta-base-offset',
      '-q',
      join(target, 'pack', 'pack'),
    ],
    view,
    config: [['core.fsync', 'none']],
    signal,
  };
  let answer = '';
  for await (const chunk of git.stream(command, revisions(tips, known))) answer += chunk.toString('latin1');
  return answer === '' ? null : packNameIn(answer);
}

/** What git reads to walk what the tips reach, but for what the known ones reach. */
export async function* revisions(tips: readonly ObjectId[], known: Iterable<ObjectId>): AsyncGenerator<Buffer> {
  yield* lines(tips);
  yield Buffer.from('--not\n');
  yield* lines(known);
}
