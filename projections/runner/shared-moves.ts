/**
 * One statement for the checkpoints of all models that have nothing to do with what the log brought.
 *
 * Must stay true: each moves only from where its own writer left it; and what keeps one from moving keeps no other.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type CheckpointMove, moveCheckpoint, movePositions } from './checkpoint.ts';
import type { Queryable } from './projection.ts';

/** Moves a checkpoint's position alone, by the writer's connection or another's; throws as `moveCheckpoint` does. */
export type MovePosition = (connection: Queryable, move: CheckpointMove) => Promise<void>;

/** An append reaches every model of a process in one go: their moves are gathered until the turn ends. */
export function createSharedMoves(): MovePosition {
  let gathered: CheckpointMove[] = [];
  let moving: Promise<ReadonlySet<CheckpointMove>> | null = null;

  async function moveGathered(connection: Queryable): Promise<ReadonlySet<CheckpointMove>> {
    await nextTurn();
    const moves = gathered;
    gathered = [];
    moving = null;
    // One alone needs no more than its own statement.
    return moves.length === 1 ? new Set() : movePositions(connection, moves);
  }

  return async (connection, move) => {
    gathered.push(move);
    moving ??= moveGathered(connection);
    let moved: ReadonlySet<CheckpointMove>;
    try {
      moved = await moving;
    } catch {
      // The connection was another writer's: what is wrong with it is not wrong with this one.
      return moveCheckpoint(connection, move);
    }
    if (!moved.has(move)) await moveCheckpoint(connection, move);
  };
}
