/**
 * Checks whether a recorded history of one register could have happened on a single copy, one operation at a time, each
 * taking effect between its call and its answer (Herlihy and Wing). The search is Wing and Gong's with Lowe's
 * memoization: each pair of a set of completed operations and a value is tried only once.
 *
 * Invariants: an operation whose outcome is unknown may have taken effect at any time after its call, or never.
 */

/** `null` means that the register holds nothing. */
export type Value = string | null;

interface Timed {
  readonly client: number;
  /** Times are numbers of a counter, all different. */
  readonly calledAt: number;
  /** The time of the answer; an operation of unknown outcome may take effect later. */
  readonly answeredAt: number;
}

export type Operation =
  | (Timed & { readonly kind: 'read'; readonly value: Value })
  | (Timed & {
      readonly kind: 'compare-and-set';
      readonly from: Value;
      readonly to: Value;
      /** `refused`: the register did not hold `from`. */
      readonly outcome: 'done' | 'refused' | 'unknown';
    });

export type Verdict =
  | { readonly linearizable: true }
  /** The longest valid order found, and the operations of which none could follow. */
  | { readonly linearizable: false; readonly order: readonly Operation[]; readonly stuckAt: readonly Operation[] };

export function checkRegister(history: readonly Operation[], initial: Value): Verdict {
  const lines = linesOf(history);
  const known = history.filter((operation) => !isUnknown(operation)).length;
  const tried = new Set<string>();
  let longest: State | null = null;
  const open: State[] = [{ at: lines.map(() => 0), value: initial, order: null, knownDone: 0 }];
  for (let start = open.pop(); start !== undefined; start = open.pop()) {
    const state = withObservers(lines, start);
    if (state.knownDone === known) return { linearizable: true };
    const key = `${state.at.join(',')} ${state.value}`;
    if (tried.has(key)) continue;
    tried.add(key);
    if (longest === null || state.knownDone > longest.knownDone) longest = state;
    for (const index of candidates(lines, state)) {
      const next = after(lines, state, index);
      if (next !== null) open.push(next);
    }
  }
  return {
    linearizable: false,
    order: itemsOf(longest?.order ?? null),
    stuckAt: longest === null ? [] : headsOf(lines, longest),
  };
}

type Lines = readonly (readonly Operation[])[];

/** How many operations of each line are done, the register's value after them, and the order that led here. */
interface State {
  readonly at: readonly number[];
  readonly value: Value;
  readonly order: Chain | null;
  readonly knownDone: number;
}

/**
 * Returns the state after every operation that can happen now without changing the value. Taking these first loses no
 * valid order: an order that has one of them later stays valid when it is moved here.
 */
function withObservers(lines: Lines, start: State): State {
  for (let state = start; ; ) {
    const now = state;
    const next = candidates(lines, now).flatMap((index) => {
      const moved = after(lines, now, index);
      return moved !== null && moved.value === now.value ? [moved] : [];
    })[0];
    if (next === undefined) return state;
    state = next;
  }
}

/** Returns the lines whose next operation was called before every pending operation's answer. */
function candidates(lines: Lines, { at }: State): readonly number[] {
  const heads = lines.map((line, index) => line[at[index] ?? 0]);
  const earliestAnswer = Math.min(...heads.map((head) => (head === undefined ? Infinity : endOf(head))));
  return heads.flatMap((head, index) => (head !== undefined && head.calledAt <= earliestAnswer ? [index] : []));
}

/** Returns the state after the line's next operation; null when that operation cannot happen on this value. */
function after(lines: Lines, state: State, index: number): State | null {
  const { at, value, order, knownDone } = state;
  const head = lines[index]?.[at[index] ?? 0];
  const taken = head === undefined ? null : take(head, value);
  if (head === undefined || taken === null) return null;
  return {
    at: at.with(index, (at[index] ?? 0) + 1),
    value: taken.value,
    order: { item: head, before: order },
    knownDone: knownDone + (isUnknown(head) ? 0 : 1),
  };
}

function headsOf(lines: Lines, { at }: State): readonly Operation[] {
  return lines.flatMap((line, index) => line[at[index] ?? 0] ?? []);
}

interface Chain {
  readonly item: Operation;
  readonly before: Chain | null;
}

function itemsOf(chain: Chain | null): readonly Operation[] {
  const items: Operation[] = [];
  for (let link = chain; link !== null; link = link.before) items.push(link.item);
  return items.reverse();
}

/**
 * Splits the history into lines of operations that follow one another: one line for each client, and one for each
 * operation of unknown outcome, since its client continued while it may still have been in progress.
 */
function linesOf(history: readonly Operation[]): Lines {
  const inOrder = history.toSorted((a, b) => a.calledAt - b.calledAt);
  const unknown = inOrder.filter(isUnknown).map((operation) => [operation]);
  const clients = Map.groupBy(
    inOrder.filter((operation) => !isUnknown(operation)),
    ({ client }) => client,
  );
  return [...clients.values(), ...unknown];
}

function isUnknown(operation: Operation): boolean {
  return operation.kind === 'compare-and-set' && operation.outcome === 'unknown';
}

function endOf(operation: Operation): number {
  return isUnknown(operation) ? Infinity : operation.answeredAt;
}

/** Returns the register's value after the operation; null when the operation cannot happen on this value. */
function take(operation: Operation, value: Value): { readonly value: Value } | null {
  if (operation.kind === 'read') return operation.value === value ? { value } : null;
  const holds = operation.from === value;
  switch (operation.outcome) {
    case 'done':
    case 'unknown':
      // An operation of unknown outcome that had no effect never happened: the search leaves it out.
      return holds ? { value: operation.to } : null;
    case 'refused':
      return holds ? null : { value };
  }
}

/** Numbers the calls and answers of a history and collects them. */
export interface Recorder {
  readonly history: readonly Operation[];
  /** Records the call; the returned function records the answer. A call without an answer is not in the history. */
  call(client: number): (answer: Answer) => void;
}

export type Answer =
  | { readonly kind: 'read'; readonly value: Value }
  | {
      readonly kind: 'compare-and-set';
      readonly from: Value;
      readonly to: Value;
      readonly outcome: 'done' | 'refused' | 'unknown';
    };

export function createRecorder(): Recorder {
  const history: Operation[] = [];
  let moment = 0;
  return {
    history,
    call(client) {
      const calledAt = ++moment;
      return (answer) => {
        history.push({ ...answer, client, calledAt, answeredAt: ++moment });
      };
    },
  };
}
