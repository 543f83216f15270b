/**
 * Long work on lists in parts, between which others have the event loop.
 *
 * Invariants: no part takes more than a few milliseconds, however long the list is. The result is that of the same
 * work in one go.
 */

/** Resolves when everything that waits for the event loop has had its turn. */
export type NextTurn = () => Promise<void>;

/** Items of one part. */
const PART = 500;

/** Returns what `pick` makes of each item, without `undefined`. */
export async function pickInTurns<Item, Picked extends {} | null>(
  items: Iterable<Item>,
  pick: (item: Item) => Picked | undefined,
  nextTurn: NextTurn,
): Promise<Picked[]> {
  const picked: Picked[] = [];
  let done = 0;
  for (const item of items) {
    const made = pick(item);
    if (made !== undefined) picked.push(made);
    done += 1;
    if (done % PART === 0) await nextTurn();
  }
  return picked;
}

/** Work that yields whenever a part of it is done, and returns its result. */
export type Steps<Result> = Generator<void, Result>;

/** Yields after every item that ends a part. */
export function* inParts<Item>(items: Iterable<Item>, each: (item: Item) => void): Steps<void> {
  let done = 0;
  for (const item of items) {
    each(item);
    done += 1;
    if (done % PART === 0) yield;
  }
}

/** Does the work in one go. */
export function finish<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Does the work in turns. What it reads must not change before it is done. */
export async function finishInTurns<Result>(steps: Steps<Result>, nextTurn: NextTurn): Promise<Result> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await nextTurn();
  }
}

/** Returns a sorted copy; items that compare as equal keep their order. */
export async function sortInTurns<Item>(
  items: readonly Item[],
  compare: (a: Item, b: Item) => number,
  nextTurn: NextTurn,
): Promise<readonly Item[]> {
  let runs: (readonly Item[])[] = [];
  for (let at = 0; at < items.length; at += PART) {
    if (at > 0) await nextTurn();
    runs.push(items.slice(at, at + PART).sort(compare));
  }
  while (runs.length > 1) {
    const longer: (readonly Item[])[] = [];
    for (let at = 0; at < runs.length; at += 2) {
      longer.push(await merge(runs[at] ?? [], runs[at + 1] ?? [], compare, nextTurn));
    }
    runs = longer;
  }
  return runs[0] ?? [];
}

async function merge<Item>(
  first: readonly Item[],
  second: readonly Item[],
  compare: (a: Item, b: Item) => number,
  nextTurn: NextTurn,
): Promise<readonly Item[]> {
  const merged: Item[] = [];
  let [left, right] = [0, 0];
  for (;;) {
    const [a, b] = [first[left], second[right]];
    if (a === undefined || b === undefined) break;
    const isFirst = compare(a, b) <= 0;
    merged.push(isFirst ? a : b);
    if (isFirst) left += 1;
    else right += 1;
    if (merged.length % PART === 0) await nextTurn();
  }
  return merged.concat(first.slice(left), second.slice(right));
}
