/**
 * Read leases: an answer as new as the log without asking the log (docs/read-leases.md).
 *
 * A process with a lease answers from memory. An append is acknowledged, and its events leave the log anywhere, only
 * when the append is settled: each process that had a lease when it committed has heard of it, or has provably lost the
 * lease. Who has heard of a position answers nothing older than it.
 *
 * Invariants, each with a test that finds it missing:
 * 1. No clock of one machine is compared with another's: only spans, each on its own monotonic clock, with room for
 *    rates that differ. A span that the wall clock says is over is over too: a machine that slept has a monotonic clock
 *    that did.
 * 2. A lease is inserted under the lock of the appends, and renewed only while its row stands with its epoch.
 * 3. The head is read behind each insert and each renewal. The lease counts from before it was asked for, and what is
 *    answered under it is at least as new as that head.
 * 4. An append waits for the leases that its own locked call saw, or for the full span since after its commit. It then
 *    removes the row of a silent process only if its renewals stand as they were, and not before the full span has
 *    passed since the row was read. A crash of the database may lose renewals: the removal names the life of the
 *    database in which the row was read, and none happens within the longest span after a life began.
 * 5. An event leaves the log only when it is settled, whoever appended it, and so is everything before it.
 * 6. Whoever appends waits: servers, workers, `strata-admin`, imports. Who cannot wait until the append is settled,
 *    since the process ends or the log lost its tail, does not know its outcome.
 */
import { LOG_START, type LogPosition } from '../kernel/envelope.ts';
import { READ_LEASE_SPAN_MS_MAX } from '../kernel/limits.ts';
import { EventStoreError } from '../ports/event-store.ts';
import type { Lease, LeaseTable } from '../ports/read-leases.ts';

/** By how much the rate of a monotonic clock may differ from true: twenty times what quartz is allowed. */
const DRIFT = 0.02;
/** When rows that could not be read are asked for again. */
const ASKED_AGAIN_MS = 50;

export interface ReadLeasesOptions {
  /** This process, as its row names it. */
  readonly node: string;
  readonly table: LeaseTable;
  /** Reads the log's head. */
  readonly head: () => Promise<LogPosition>;
  /** Whether this process answers from memory; a command never does, but waits for those that do. */
  readonly holds: boolean;
  /** How long this process's lease lasts if it is not renewed, at most `READ_LEASE_SPAN_MS_MAX`. */
  readonly spanMs: number;
  readonly clock: LeaseClock;
  /** Called when the table could not be reached; nothing is answered from memory then. */
  readonly onFault: (cause: unknown) => void;
}

export interface LeaseClock {
  monotonicMs(): number;
  /** Milliseconds since 1970. It may be set. */
  wallMs(): number;
  /** Calls back once after the time; the returned function takes that back. */
  after(ms: number, call: () => void): () => void;
}

export interface ReadLeases {
  /** Whether this process may answer from memory, if its memory has applied the log up to `heard`. */
  isHeld(): boolean;
  /** The highest position that this process has heard of. */
  heard(): LogPosition;
  /** Everything up to here is settled. */
  settled(): LogPosition;
  /**
   * Notes that the log reaches to the position. `leases` are the rows at its commit or later; null if nobody read them.
   */
  hear(position: LogPosition, leases: readonly Lease[] | null): void;
  /** Does the same for this process's own append; its waiting also removes the rows of the silent. */
  hearOwn(position: LogPosition, leases: readonly Lease[] | null): void;
  /**
   * Resolves when the position is settled; null if it is already. The caller has `hear`d of it. Rejects with
   * `append-outcome-unknown` when that can no longer be known: after `close` or `forget`.
   */
  whenSettled(position: LogPosition): Promise<void> | null;
  /** The log lost its tail: what was heard of it means nothing any more. */
  forget(head: LogPosition): void;
  /** Begins to hold a lease, if it should and does not; it is renewed while it is used. */
  want(): void;
  figures(): LeaseFigures;
  close(): Promise<void>;
}

export interface LeaseFigures {
  readonly held: boolean;
  /** Appends that had to wait for another process, and for how long in all. */
  readonly waits: number;
  readonly waitedMs: number;
}

/** A position that is not settled. */
interface Waiting {
  readonly position: LogPosition;
  /** Who has not said yet that it heard of the position; null until the rows are read. */
  silent: Map<string, Lease> | null;
  readonly sinceMs: number;
  /** When the rows were read, at the latest. */
  readMs: number;
  readonly isOwn: boolean;
}

/** A lease whose holder was silent. */
interface Removal {
  readonly lease: Lease;
  /** When it has ended, if it was not renewed since its row was read. */
  readonly endMs: number;
}

interface Waiter {
  readonly position: LogPosition;
  readonly settle: () => void;
  readonly reject: (cause: EventStoreError) => void;
}

/** When all leases have ended that a position waits for, on this process's monotonic clock. */
function endOf({ silent, sinceMs }: Waiting): number {
  if (silent === null) return sinceMs + READ_LEASE_SPAN_MS_MAX;
  return sinceMs + Math.max(0, ...[...silent.values()].map(({ spanMs }) => spanMs));
}

export function createReadLeases(options: ReadLeasesOptions): ReadLeases {
  return new HeldLeases(options);
}

class HeldLeases implements ReadLeases {
  readonly #options: ReadLeasesOptions;
  readonly #listening: { close(): Promise<void> };
  #heard: LogPosition = LOG_START;
  #settled: LogPosition = LOG_START;
  /** In ascending order of positions. */
  #waiting: Waiting[] = [];
  #waiters: Waiter[] = [];
  /** By node. */
  readonly #removals = new Map<string, Removal>();
  readonly #heardOf = new Map<string, LogPosition>();
  #epoch: number | null = null;
  #told: LogPosition = LOG_START;
  #telling = false;
  #asking = false;
  /** On both clocks: the lease is held while neither has reached it. */
  #validUntil = { monotonicMs: -Infinity, wallMs: -Infinity };
  #wanted = false;
  #running: Promise<void> | null = null;
  #cancelPause: (() => void) | null = null;
  #cancelExpiry: (() => void) | null = null;
  #closed = false;
  #waits = 0;
  #waitedMs = 0;

  constructor(options: ReadLeasesOptions) {
    this.#options = options;
    this.#listening = options.table.listen({
      onHead: (position, leases) => this.hear(position, leases),
      onHeard: (node, position) => this.#heardBy(node, position),
    });
  }

  isHeld(): boolean {
    const { clock } = this.#options;
    const { monotonicMs, wallMs } = this.#validUntil;
    this.#wanted = true;
    // Rules 1 and 3.
    return clock.monotonicMs() < monotonicMs && clock.wallMs() < wallMs;
  }

  heard(): LogPosition {
    return this.#heard;
  }

  settled(): LogPosition {
    return this.#settled;
  }

  hear(position: LogPosition, leases: readonly Lease[] | null): void {
    this.#hear(position, leases, false);
  }

  hearOwn(position: LogPosition, leases: readonly Lease[] | null): void {
    this.#hear(position, leases, true);
  }

  #hear(position: LogPosition, leases: readonly Lease[] | null, isOwn: boolean): void {
    const isNews = position > this.#heard;
    if (isNews) this.#heard = position;
    // A later position that waits already settles this one too. The rows that an append itself saw are the fewest.
    if (position > this.#settled && (isNews || leases !== null)) this.#await(position, leases, isOwn);
    if (isNews) this.#tell();
  }

  #await(position: LogPosition, leases: readonly Lease[] | null, isOwn: boolean): void {
    const silent = leases === null ? null : this.#silentOf(position, leases);
    if (silent?.size === 0) {
      this.#settle(position);
      return;
    }
    const now = this.#options.clock.monotonicMs();
    const waiting = { position, silent, sinceMs: now, readMs: now, isOwn };
    const index = this.#waiting.findLastIndex((other) => other.position <= position) + 1;
    this.#waiting.splice(index, 0, waiting);
    if (silent === null) this.#ask();
    this.#expireInTime();
  }

  /** The leases whose holders may not have heard of the position. This process itself has. */
  #silentOf(position: LogPosition, leases: readonly Lease[]): Map<string, Lease> {
    const silent = new Map<string, Lease>();
    for (const lease of leases) {
      const heard = this.#heardOf.get(lease.node) ?? LOG_START;
      if (lease.node === this.#options.node || lease.heard >= position || heard >= position) continue;
      silent.set(lease.node, lease);
    }
    return silent;
  }

  #heardBy(node: string, position: LogPosition): void {
    if (position > (this.#heardOf.get(node) ?? LOG_START)) this.#heardOf.set(node, position);
    let done: LogPosition | null = null;
    for (const waiting of this.#waiting) {
      if (waiting.position > position) break;
      if (waiting.silent?.delete(node) === true && waiting.silent.size === 0) done = waiting.position;
    }
    if (done !== null) this.#settle(done);
  }

  /** Settles a position and everything before it: who heard of the later one answers nothing older. */
  #settle(position: LogPosition): void {
    if (position <= this.#settled) return;
    this.#settled = position;
    this.#waiting = this.#waiting.filter((waiting) => waiting.position > position);
    const waiters = this.#waiters;
    this.#waiters = waiters.filter((waiter) => waiter.position > position);
    for (const waiter of waiters) if (waiter.position <= position) waiter.settle();
  }

  whenSettled(position: LogPosition): Promise<void> | null {
    if (position <= this.#settled) return null;
    if (this.#closed) return Promise.reject(unknownOutcome('this process ends'));
    const { clock } = this.#options;
    const begun = clock.monotonicMs();
    this.#waits += 1;
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        this.#waitedMs += clock.monotonicMs() - begun;
        resolve();
      };
      this.#waiters.push({ position, settle, reject });
    });
  }

  /** Reads the rows for the positions that nobody read them for; none of these was heard of after the reading began. */
  #ask(): void {
    if (this.#asking) return;
    this.#asking = true;
    const asked = this.#waiting.filter(({ silent }) => silent === null);
    const answered = (leases: readonly Lease[]): void => {
      const readMs = this.#options.clock.monotonicMs();
      for (const waiting of asked) {
        waiting.readMs = readMs;
        waiting.silent = this.#silentOf(waiting.position, leases);
        if (waiting.silent.size === 0) this.#settle(waiting.position);
      }
      this.#expireInTime();
    };
    this.#options.table
      .rows()
      .then(answered, (cause: unknown) => {
        this.#options.onFault(cause);
        return new Promise<void>((resolve) => void this.#options.clock.after(ASKED_AGAIN_MS, resolve));
      })
      .finally(() => {
        this.#asking = false;
        if (this.#waiting.some(({ silent }) => silent === null) && !this.#closed) this.#ask();
      });
  }

  /** Rule 4: after its full span a lease has ended whose holder was silent. */
  #expireInTime(): void {
    this.#cancelExpiry?.();
    this.#cancelExpiry = null;
    const ends = [...this.#waiting.map(endOf), ...[...this.#removals.values()].map(({ endMs }) => endMs)];
    if (ends.length === 0 || this.#closed) return;
    const { clock } = this.#options;
    const leftMs = Math.min(...ends) - clock.monotonicMs();
    this.#cancelExpiry = clock.after(Math.max(1, Math.ceil(leftMs)), () => {
      this.#cancelExpiry = null;
      this.#expire();
      this.#expireInTime();
    });
  }

  #expire(): void {
    const now = this.#options.clock.monotonicMs();
    const over = this.#waiting.filter((waiting) => now >= endOf(waiting));
    for (const { isOwn, silent, readMs } of over) {
      if (!isOwn || silent === null) continue;
      for (const lease of silent.values()) this.#removeLater(lease, readMs + lease.spanMs);
    }
    this.#remove(now);
    const last = over.at(-1);
    if (last !== undefined) this.#settle(last.position);
  }

  /** Keeps the first removal of a row as it stands: later appends must not put it off. */
  #removeLater(lease: Lease, endMs: number): void {
    const { node, epoch, renewals, life } = lease;
    const known = this.#removals.get(node)?.lease;
    if (known?.epoch === epoch && known.renewals === renewals && known.life === life) return;
    this.#removals.set(node, { lease, endMs });
  }

  #remove(now: number): void {
    const { table, onFault } = this.#options;
    for (const [node, { lease, endMs }] of this.#removals) {
      if (now < endMs) continue;
      this.#removals.delete(node);
      table.remove(lease).catch(onFault);
    }
  }

  /** Says up to where this process has heard of the log; what it hears during this is said next. */
  #tell(): void {
    const epoch = this.#epoch;
    if (epoch === null || this.#telling || this.#heard <= this.#told) return;
    const position = this.#heard;
    this.#telling = true;
    this.#options.table.tell(epoch, position).then(
      () => {
        this.#telling = false;
        this.#told = position;
        this.#tell();
      },
      (cause: unknown) => {
        this.#telling = false;
        this.#options.onFault(cause);
      },
    );
  }

  want(): void {
    this.#wanted = true;
    if (!this.#options.holds || this.#closed) return;
    this.#running ??= this.#hold().finally(() => {
      this.#running = null;
    });
  }

  /** Takes a lease and renews it until nobody used it for as long as a renewal lasts. */
  async #hold(): Promise<void> {
    while (this.#wanted && !this.#closed) {
      this.#wanted = false;
      try {
        await this.#takeOrRenew();
      } catch (cause) {
        this.#options.onFault(cause);
      }
      await this.#pause((this.#options.spanMs * 3) / 8);
    }
    await this.#giveUp();
  }

  async #takeOrRenew(): Promise<void> {
    const { clock, table, head, spanMs } = this.#options;
    const asked = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    const stands = this.#epoch !== null && (await table.renew(this.#epoch));
    if (!stands) {
      this.#told = LOG_START;
      this.#epoch = null;
      this.#epoch = await table.insert(spanMs);
    }
    // Rule 3: behind the insert or renewal.
    const position = await head();
    const isNews = position > this.#heard;
    this.hear(position, null);
    // A row begins without what its holder has heard.
    if (!isNews) this.#tell();
    const lastsMs = spanMs * (1 - 3 * DRIFT);
    this.#validUntil = { monotonicMs: asked.monotonicMs + lastsMs, wallMs: asked.wallMs + lastsMs };
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        this.#cancelPause = null;
        resolve();
      };
      const cancel = this.#options.clock.after(ms, end);
      this.#cancelPause = () => {
        cancel();
        end();
      };
      if (this.#closed) this.#cancelPause();
    });
  }

  async #giveUp(): Promise<void> {
    const epoch = this.#epoch;
    this.#validUntil = { monotonicMs: -Infinity, wallMs: -Infinity };
    this.#epoch = null;
    if (epoch !== null) await this.#options.table.giveUp(epoch).catch(this.#options.onFault);
  }

  forget(head: LogPosition): void {
    this.#validUntil = { monotonicMs: -Infinity, wallMs: -Infinity };
    this.#epoch = null;
    this.#told = LOG_START;
    this.#heardOf.clear();
    this.#heard = head;
    this.#waiting = [];
    this.#rejectWaiters('the log lost its end');
    // Another process may hold a lease of the log as it was before.
    this.#settled = LOG_START;
    this.#await(head, null, false);
  }

  figures(): LeaseFigures {
    const { clock } = this.#options;
    const held = clock.monotonicMs() < this.#validUntil.monotonicMs && clock.wallMs() < this.#validUntil.wallMs;
    return { held, waits: this.#waits, waitedMs: this.#waitedMs };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelPause?.();
    this.#cancelExpiry?.();
    await this.#running;
    await this.#listening.close();
    this.#rejectWaiters('this process ends');
  }

  #rejectWaiters(why: string): void {
    for (const waiter of this.#waiters.splice(0)) waiter.reject(unknownOutcome(why));
  }
}

function unknownOutcome(why: string): EventStoreError {
  return new EventStoreError('append-outcome-unknown', `Other nodes may not have heard of the log's head: ${why}`);
}
