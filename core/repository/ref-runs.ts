/**
 * The refs of a repository in byte order, in runs of a few hundred.
 *
 * Invariants: runs never change. After a push, only those that hold a changed ref are new, so that what is made of
 * a run is made again only for these. A repository may have some 200,000 refs: none of them is sorted again.
 */
import { byRefOrder, type RefName } from '../git/ref-name.ts';
import { sortUtf8 } from '../git/utf8.ts';
import { PersistentMap, type Weigh } from '../kernel/persistent-map.ts';
import type { Ref } from './state.ts';

export type Refs = PersistentMap<RefName, Ref>;
type NamedRef = Ref & { readonly name: RefName };
/** Never empty. Its names come before those of the next run. */
export type RefRun = readonly NamedRef[];

/** Refs of one run. Internal: both ways hold the same refs. */
const RUN_REFS_MAX = 512;

const RUNS = new WeakMap<Refs, readonly RefRun[]>();
const NAMES = new WeakMap<Refs, readonly RefName[]>();

export function refRuns(refs: Refs): readonly RefRun[] {
  const known = RUNS.get(refs);
  if (known !== undefined) return known;
  const sorted = [...refs.entries()].map(([name, ref]) => named(name, ref));
  const runs = splitUp(sorted.sort((a, b) => byRefOrder(a.name, b.name)));
  RUNS.set(refs, runs);
  return runs;
}

/** Returns the names in byte order. */
export function sortedRefNames(refs: Refs): readonly RefName[] {
  const known = NAMES.get(refs);
  if (known !== undefined) return known;
  const names = refRuns(refs).flatMap((run) => run.map(({ name }) => name));
  NAMES.set(refs, names);
  return names;
}

/** Makes refs of runs that come in order, so that none is sorted again. `weigh` is that of `PersistentMap.from`. */
export async function refsOfRuns(runs: AsyncIterable<RefRun>, weigh: Weigh<RefName, Ref>): Promise<Refs> {
  const whole: RefRun[] = [];
  const parts = PersistentMap.inParts<RefName, Ref>(weigh);
  for await (const run of runs) {
    if (run.length === 0) continue;
    for (const { name, id, type, peeled } of run) parts.add(name, { id, type, peeled });
    whole.push(run);
  }
  const refs = parts.map();
  RUNS.set(refs, whole);
  return refs;
}

/** Returns the refs after changes, made in order; `undefined` removes a ref. */
export function changeRefs(refs: Refs, changes: readonly (readonly [RefName, Ref | undefined])[]): Refs {
  const changed = refs.with(changes);
  RUNS.set(changed, changeRuns(refRuns(refs), new Map(changes)));
  return changed;
}

type Change = readonly [RefName, Ref | undefined];

function changeRuns(runs: readonly RefRun[], changes: ReadonlyMap<RefName, Ref | undefined>): readonly RefRun[] {
  const sorted = sortUtf8([...changes.keys()]).map((name): Change => [name, changes.get(name)]);
  if (runs.length === 0) return splitUp(mergeRun([], sorted));
  const changed: RefRun[] = [];
  let at = 0;
  for (const [index, run] of runs.entries()) {
    const following = runs[index + 1]?.[0]?.name;
    const from = at;
    for (let next = sorted[at]; next !== undefined; next = sorted[at]) {
      if (following !== undefined && byRefOrder(next[0], following) >= 0) break;
      at += 1;
    }
    if (at === from) changed.push(run);
    else add(changed, mergeRun(run, sorted.slice(from, at)));
  }
  return changed;
}

function mergeRun(run: RefRun, changes: readonly Change[]): RefRun {
  const merged: NamedRef[] = [];
  let at = 0;
  for (const [name, ref] of changes) {
    for (let kept = run[at]; kept !== undefined && byRefOrder(kept.name, name) < 0; kept = run[at]) {
      merged.push(kept);
      at += 1;
    }
    if (run[at]?.name === name) at += 1;
    if (ref !== undefined) merged.push(named(name, ref));
  }
  for (; at < run.length; at += 1) {
    const kept = run[at];
    if (kept !== undefined) merged.push(kept);
  }
  return merged;
}

/** Adds a run at the end: split if it is too large, and joined with the one before if both are small. */
function add(runs: RefRun[], run: RefRun): void {
  const before = runs.at(-1);
  if (before !== undefined && before.length + run.length <= RUN_REFS_MAX / 2) {
    runs[runs.length - 1] = [...before, ...run];
  } else {
    runs.push(...splitUp(run));
  }
}

/** Into equal parts; none for no refs. */
function splitUp(refs: RefRun): readonly RefRun[] {
  const parts = refs.length <= RUN_REFS_MAX ? 1 : Math.ceil(refs.length / (RUN_REFS_MAX / 2));
  const size = Math.max(1, Math.ceil(refs.length / parts));
  return Array.from({ length: Math.ceil(refs.length / size) }, (_, part) => refs.slice(part * size, (part + 1) * size));
}

function named(name: RefName, { id, type, peeled }: Ref): NamedRef {
  return { name, id, type, peeled };
}
