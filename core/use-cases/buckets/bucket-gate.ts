/**
 * Bounds the calls to one bucket that are under way at the same time on this node.
 *
 * Invariants: while a bucket does not answer, few calls try it. The others wait for what these find out, and fail with
 * them, so that a dead bucket costs a bounded number of connections and nobody waits twice. A caller that forgets a
 * body which it was given takes no place without end.
 */
import { LayerStoreError, type LayerStoreErrorCode } from '../../ports/layer-store.ts';

/**
 * Calls to one bucket of a user that a node makes at the same time, those that wait included; further ones fail
 * immediately.
 */
export const BUCKET_CALLS_MAX = 128;
/** Calls to one bucket of a user that are made while the bucket does not answer; the others wait for their outcome. */
export const BUCKET_TRIALS_MAX = 4;
/**
 * A call that got its answer, but whose body nobody begins to read for so long, counts no more. Internal: it is a part
 * of how calls to a bucket are counted.
 */
export const BUCKET_UNREAD_MS = 60_000;

/** A call that may be made. The first of its two functions that is called counts. */
export interface Admitted {
  /** The bucket answered. A call goes on to hold its place until `end`. */
  answered(): void;
  /** The caller has the body, and may begin to read it: until `reads` or for `BUCKET_UNREAD_MS` it holds its place. */
  handedOver(): void;
  reads(): void;
  /** Ends the call; with the error if it failed. */
  end(error?: LayerStoreError): void;
}

export interface BucketGate {
  /** Rejects with `throttled` if too many calls are under way, or with the error of the calls that it waited for. */
  enter(): Promise<Admitted>;
  readonly isIdle: boolean;
}

/** Nothing answers: other calls would wait as long. */
const SILENT: ReadonlySet<LayerStoreErrorCode> = new Set<LayerStoreErrorCode>(['unreachable', 'timed-out']);

/** The calls whose bodies nobody reads yet. */
function createUnread(monotonicMs: () => number) {
  /** Since when, the oldest first. */
  const calls = new Map<Admitted, number>();
  return {
    add: (call: Admitted): void => void calls.set(call, monotonicMs()),
    remove: (call: Admitted): void => void calls.delete(call),
    endForgotten(): void {
      for (const [call, since] of calls) {
        if (monotonicMs() - since < BUCKET_UNREAD_MS) return;
        call.end();
      }
    },
  };
}

export function createBucketGate(monotonicMs: () => number): BucketGate {
  /** Calls that are made, and calls that wait. */
  let inside = 0;
  let made = 0;
  let isSilent = false;
  const unread = createUnread(monotonicMs);
  let waiting: { readonly admit: () => void; readonly fail: (error: LayerStoreError) => void }[] = [];

  const admitWaiting = (): void => {
    while (waiting.length > 0 && (!isSilent || made < BUCKET_TRIALS_MAX)) {
      made += 1;
      waiting.shift()?.admit();
    }
  };
  const answered = (): void => {
    isSilent = false;
    admitWaiting();
  };
  const failed = (error: LayerStoreError): void => {
    if (!SILENT.has(error.code)) return answered();
    isSilent = true;
    const failing = waiting;
    waiting = [];
    for (const waiter of failing) waiter.fail(error);
  };
  const admitted = (): Admitted => {
    let hasEnded = false;
    const call: Admitted = {
      answered,
      handedOver: () => unread.add(call),
      reads: () => unread.remove(call),
      end: (error) => {
        if (hasEnded) return;
        hasEnded = true;
        unread.remove(call);
        made -= 1;
        inside -= 1;
        if (error === undefined) admitWaiting();
        else failed(error);
      },
    };
    return call;
  };

  return {
    enter: async () => {
      unread.endForgotten();
      if (inside >= BUCKET_CALLS_MAX) {
        throw new LayerStoreError('throttled', `${inside} calls to the bucket are under way`);
      }
      inside += 1;
      if (!isSilent || made < BUCKET_TRIALS_MAX) {
        made += 1;
        return admitted();
      }
      try {
        await new Promise<void>((resolve, reject) => waiting.push({ admit: resolve, fail: reject }));
      } catch (error) {
        inside -= 1;
        throw error;
      }
      return admitted();
    },
    get isIdle() {
      return inside === 0;
    },
  };
}
