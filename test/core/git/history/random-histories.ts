/**
 * Random commit histories with merges and wrong clocks, and the commits that a tip reaches in them: input for tests of
 * the order of commits.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OrderCommit } from '../../../../core/git/history/commit-queue.ts';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';
import { git } from '../../../support/git-process.ts';

/** Returns a generator of integers below a bound, which repeats them for the same seed (mulberry32). */
export function seededNumbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** A commit of a history, in which commits are numbered: its parents have smaller numbers. */
export interface Shape {
  readonly parents: readonly number[];
  readonly seconds: number;
}

export const CLOCKS = ['steady', 'coarse', 'skewed', 'wild', 'equal'] as const;
export type Clock = (typeof CLOCKS)[number];

export function randomShapes(count: number, clock: Clock, random: (below: number) => number): Shape[] {
  const mergesPercent = [5, 20, 50][random(3)] ?? 5;
  return Array.from({ length: count }, (_, index) => {
    const parents = new Set<number>();
    // Usually one of the last few commits, sometimes any; one in twenty commits is a further root.
    const parent = () => (random(4) > 0 ? index - 1 - random(Math.min(index, 4)) : random(index));
    if (index > 0 && random(20) > 0) parents.add(parent());
    while (parents.size > 0 && random(100) < mergesPercent && parents.size < 4) {
      const size = parents.size;
      parents.add(parent());
      if (parents.size === size) break;
    }
    return { parents: [...parents], seconds: 1_000_000 + secondsAt(index, clock, random) };
  });
}

function secondsAt(index: number, clock: Clock, random: (below: number) => number): number {
  switch (clock) {
    case 'steady':
      return index * 10;
    case 'coarse':
      return Math.floor(index / 3) + random(2);
    case 'skewed':
      return index * 10 + (random(5) === 0 ? random(200) - 100 : 0);
    case 'wild':
      return random(50);
    case 'equal':
      return 0;
  }
}

/** Creates real commits of these shapes in a repository; many histories may share one. */
export function importHistories(path: string, histories: readonly (readonly Shape[])[]): OrderCommit[][] {
  const script: string[] = [];
  let mark = 0;
  const marks = histories.map((shapes) => {
    const first = mark;
    for (const { parents, seconds } of shapes) {
      mark++;
      // The commit after a reset without a start point is a new root.
      script.push('reset refs/heads/x', '', 'commit refs/heads/x', `mark :${mark}`);
      script.push(`committer A <a@example.org> ${seconds} +0000`, `data ${String(mark).length}`, String(mark));
      const [parent, ...merged] = parents.map((number) => `:${first + number + 1}`);
      if (parent !== undefined) script.push(`from ${parent}`);
      for (const other of merged) script.push(`merge ${other}`);
    }
    return first;
  });
  const marksFile = join(path, 'marks');
  const input = `${script.join('\n')}\n`;
  git(['fast-import', '--quiet', '--force', `--export-marks=${marksFile}`], { cwd: path, input });
  const ids = new Map<number, ObjectId>();
  for (const line of readFileSync(marksFile, 'utf8').trim().split('\n')) {
    const [number = '', id = ''] = line.slice(1).split(' ');
    ids.set(Number(number), objectId(id));
  }
  const idOf = (number: number) => ids.get(number) ?? objectId('');
  return histories.map((shapes, history) => {
    const first = marks[history] ?? 0;
    return shapes.map(({ parents, seconds }, index) => ({
      id: idOf(first + index + 1),
      parents: parents.map((number) => idOf(first + number + 1)),
      seconds,
    }));
  });
}

/** Returns such a history without git, with invented ids. */
export function inventHistory(shapes: readonly Shape[]): OrderCommit[] {
  const idOf = (number: number) => objectId(number.toString(16).padStart(40, '0'));
  return shapes.map(({ parents, seconds }, index) => ({ id: idOf(index), parents: parents.map(idOf), seconds }));
}

export function reachedFrom(tip: ObjectId, byId: ReadonlyMap<ObjectId, OrderCommit>): Set<ObjectId> {
  const reached = new Set([tip]);
  // The iteration of a set includes the items added during it.
  for (const id of reached) for (const parent of byId.get(id)?.parents ?? []) reached.add(parent);
  return reached;
}
