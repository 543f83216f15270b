/**
 * Moves the checkpoints of all models that do not want the newest events with one statement.
 *
 * Invariants: each checkpoint moves only from where its own writer left it, and a checkpoint that cannot move stops
 * no other.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type CheckpointMove, moveCheckpoint, movePositions } from './checkpoint.ts';
import type { Queryable } from './projection.ts';

/** Moves a checkpoint without rows, on this connection or another writer's; throws as `moveCheckpoint` does. */
export type MovePosition = (connection: Queryable, move: CheckpointMove) => Promise<void>;

/**
 * An append reaches every model of a process in the same turn of the event loop: their moves are collected until it
 * ends.
 */
export function createSharedMoves(): MovePosition {
  let gathered: CheckpointMove[] = [];
  let moving: Promise<ReadonlySet<CheckpointMove>> | null = null;

  async function moveGathered(connection: Queryable): Promise<ReadonlySet<CheckpointMove>> {
    await nextTurn();
    const moves = gathered;
    gathered = [];
    moving = null;
    // A single move uses the caller's own statement.
    return moves.length === 1 ? new Set() : movePositions(connection, moves);
  }

  return async (connection, move) => {
    gathered.push(move);
    moving ??= moveGathered(connection);
    let moved: ReadonlySet<CheckpointMove>;
    try {
      moved = await moving;
    } catch {
      // The shared statement ran on another writer's connection: its failure need not concern this one.
      return moveCheckpoint(connection, move);
    }
    if (!moved.has(move)) await moveCheckpoint(connection, move);
  };
}
