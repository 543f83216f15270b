/**
 * A service of three processes over one log, in simulated time: each has its own clocks, is paused, cut off, dies and
 * comes back, and every message takes its own time or is lost. The log lies in the database or beside it. The database
 * crashes, and loses what was committed without waiting for the disk and not written since. The log follower, the
 * settled log and the read leases are the real ones; the database and the network are simulated.
 *
 * Invariants: a seed always gives the same run. After each event all promises have run before the next one.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import type { EventStore, SubscribeOptions } from '../../core/ports/event-store.ts';
import type { Lease, LeaseListener, LeaseTable } from '../../core/ports/read-leases.ts';
import { LogFollower } from '../../core/runtime/log-follower.ts';
import { createReadLeases, type ReadLeases } from '../../core/runtime/read-leases.ts';
import { createSettledLog } from '../../core/runtime/settled-log.ts';

const SPAN_MS = 1_000;
const SIMULATED_MS = 12_000;
/** Messages that are lost. */
const LOST_SHARE = 0.04;
/** How far the rates of clocks may differ. */
const DRIFT = 0.02;
/** How long the database may keep from its disk what nobody waits for; half of what PostgreSQL may be set to. */
const WRITER_PAUSE_MS = 5_000;

export interface WorldOptions {
  readonly seed: number;
  /** By how much rates of clocks differ; more than `DRIFT` breaks what leases rely on. */
  readonly drift?: number;
}

export interface WorldReport {
  /** What was answered and must not have been; null if every answer was right. */
  readonly violation: string | null;
  readonly reads: number;
  /** Reads that asked nobody. */
  readonly fromMemory: number;
  readonly appends: number;
}

interface SimulatedEvent {
  readonly at: number;
  readonly run: () => void;
}

/** mulberry32, by Tommy Ettinger, in the public domain. */
function randomOf(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Row {
  readonly epoch: number;
  readonly renewals: number;
  readonly heard: number;
}

class Database {
  lockedUntil = 0;
  epochs = 0;
  crashes = 0;
  /** In a table that each crash empties. */
  #life: number | null = null;
  /** It answers nobody before it has recovered. */
  downUntil = 0;
  rows: ReadonlyMap<string, Row> = new Map();
  #written = this.rows;

  /** Whoever reads the rows and finds no life writes one. */
  leases(): Lease[] {
    this.#life ??= this.crashes;
    const life = this.#life;
    return [...this.rows].map(([node, { epoch, renewals, heard }]) => {
      return { node, epoch, renewals, heard: position(heard), spanMs: SPAN_MS, life };
    });
  }

  /** The real database also removes nothing for a while after a crash; the rules must hold without that. */
  remove({ node, epoch, renewals, life }: Lease): void {
    if (life === null || this.#life !== life) return;
    const row = this.rows.get(node);
    if (row?.epoch === epoch && row.renewals === renewals) this.delete(node);
  }

  /** Changes the row of that epoch, if it stands, and does not wait for the disk. Returns whether it stands. */
  change(node: string, epoch: number, change: (row: Row) => Row): boolean {
    const row = this.rows.get(node);
    if (row?.epoch !== epoch) return false;
    this.rows = new Map(this.rows).set(node, change(row));
    return true;
  }

  insert(node: string, epoch: number): void {
    this.rows = new Map(this.rows).set(node, { epoch, renewals: 0, heard: 0 });
    this.write();
  }

  delete(node: string): void {
    this.rows = new Map([...this.rows].filter(([name]) => name !== node));
    this.write();
  }

  /** Everything that was committed is on the disk. */
  write(): void {
    this.#written = this.rows;
  }

  crash(now: number, recoveryMs: number): void {
    this.rows = this.#written;
    this.#life = null;
    this.crashes += 1;
    this.downUntil = now + recoveryMs;
    this.lockedUntil = this.downUntil;
  }
}

function position(number: number): LogPosition {
  return BigInt(number) as LogPosition;
}

interface Appended {
  readonly head: number;
  /** The leases that the append saw; null if it sees none. */
  readonly rows: readonly Lease[] | null;
}

/** One life of a process; after its death nothing of it runs any more. */
interface Life {
  readonly leases: ReadLeases;
  readonly log: EventStore;
  readonly follower: LogFollower;
  readonly listener: LeaseListener;
  readonly pull: () => void;
  isAlive: boolean;
}

class Process {
  readonly name: string;
  readonly rate: number;
  readonly offsetMs: number;
  pausedUntil = 0;
  /** Until then no notification reaches it, as when it connects again to PostgreSQL. */
  deafUntil = 0;
  life: Life | null = null;
  constructor(name: string, rate: number, offsetMs: number) {
    this.name = name;
    this.rate = rate;
    this.offsetMs = offsetMs;
  }
}

export async function runWorld(options: WorldOptions): Promise<WorldReport> {
  return new World(options).run();
}

class World {
  readonly #random: () => number;
  readonly #database = new Database();
  readonly #processes: readonly Process[];
  readonly #slow: number;
  /** Whether the log lies in the database, so that its appends see the leases under one lock. */
  readonly #isInDatabase: boolean;
  /** Whether the database crashes often and recovers fast, among fewer appends, which would write what it may lose. */
  readonly #crashesOften: boolean;
  #now = 0;
  #head = 0;
  #events: SimulatedEvent[] = [];
  #violation: string | null = null;
  #reads = 0;
  #fromMemory = 0;
  #appends = 0;
  /** The highest position that an acknowledged append has, or a finished read has returned. */
  #owed = 0;

  constructor({ seed, drift = DRIFT }: WorldOptions) {
    this.#random = randomOf(seed);
    this.#slow = this.#random() < 0.3 ? 0.4 : 0.03;
    this.#isInDatabase = this.#random() < 0.6;
    this.#crashesOften = this.#random() < 0.6;
    this.#processes = ['a', 'b', 'c'].map(
      (name) => new Process(name, 1 + this.#between(-drift, drift), this.#between(0, 1e6)),
    );
  }

  async run(): Promise<WorldReport> {
    for (const process of this.#processes) this.#start(process);
    const [appendShare, crashPauseMs] = this.#crashesOften ? [0.2, 1_000] : [0.35, 4_000];
    for (let at = 50; at < SIMULATED_MS; at += this.#between(2, 60)) {
      this.#at(at, () => (this.#random() < appendShare ? this.#append(this.#some()) : this.#read(this.#some())));
    }
    for (let at = 500; at < SIMULATED_MS; at += this.#between(200, 3_000))
      this.#at(at, () => this.#disturb(this.#some()));
    for (let at = 500; at < SIMULATED_MS; at += this.#between(100, crashPauseMs)) this.#at(at, () => this.#crash());
    for (let at = 0; at < SIMULATED_MS; at += this.#between(0, WRITER_PAUSE_MS)) {
      this.#at(at, () => this.#database.write());
    }
    for (
      let event = this.#events.shift();
      event !== undefined && this.#violation === null;
      event = this.#events.shift()
    ) {
      if (event.at > SIMULATED_MS + 5_000) break;
      this.#now = Math.max(this.#now, event.at);
      event.run();
      // Everything that waits for nothing but this event.
      await nextTurn();
    }
    for (const process of this.#processes) if (process.life !== null) process.life.isAlive = false;
    const [reads, fromMemory, appends] = [this.#reads, this.#fromMemory, this.#appends];
    return { violation: this.#violation, reads, fromMemory, appends };
  }

  #between(least: number, most: number): number {
    return least + this.#random() * (most - least);
  }

  #some(): Process {
    return this.#processes[Math.floor(this.#random() * 3)] ?? this.#fail();
  }

  #fail(): never {
    throw new RangeError('There are three processes');
  }

  #at(at: number, run: () => void): void {
    let index = this.#events.length;
    while (index > 0 && (this.#events[index - 1]?.at ?? 0) > at) index -= 1;
    this.#events.splice(index, 0, { at, run });
  }

  #network(): number {
    return this.#random() < this.#slow ? this.#between(20, 1_500) : this.#between(0.1, 5);
  }

  /** Runs it on the process after the delay, when it is not paused; never if it died before. */
  #on(process: Process, delay: number, run: () => void): void {
    const { life } = process;
    const go = (): void => {
      if (life === null ? process.life !== null : !life.isAlive) return;
      if (this.#now < process.pausedUntil) this.#at(process.pausedUntil + this.#between(0, 5), go);
      else run();
    };
    this.#at(this.#now + delay, go);
  }

  /** A question to the database: on its way, answered there in one step, and the answer on its way back. */
  #ask<Answer>(process: Process, answer: () => Answer): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#at(this.#now + this.#network(), () => {
        if (this.#now < this.#database.downUntil) {
          this.#on(process, this.#network(), () => reject(new Error('The database recovers')));
          return;
        }
        const answered = answer();
        const { crashes } = this.#database;
        const arrive = (): void =>
          crashes === this.#database.crashes ? resolve(answered) : reject(new Error('The connection was lost'));
        this.#on(process, this.#network(), arrive);
      });
    });
  }

  /** The same under the lock of the appends; \`answer\` returns what the commit does. */
  #askLocked<Answer>(process: Process, holdMs: number, answer: () => [Answer, () => void]): Promise<Answer> {
    const database = this.#database;
    return new Promise((resolve, reject) => {
      const fail = (): void => this.#on(process, this.#network(), () => reject(new Error('The connection was lost')));
      this.#at(this.#now + this.#network(), () => {
        if (this.#now < database.downUntil) {
          fail();
          return;
        }
        const free = Math.max(this.#now, database.lockedUntil);
        const { crashes } = database;
        database.lockedUntil = free + holdMs + 0.001;
        this.#at(free + 0.05, () => {
          if (crashes !== database.crashes) {
            fail();
            return;
          }
          const [answered, commit] = answer();
          this.#at(free + 0.05 + holdMs, () => {
            if (crashes !== database.crashes) {
              fail();
              return;
            }
            commit();
            // The answer of a commit may be lost with its connection.
            this.#on(process, this.#network(), () =>
              crashes === database.crashes ? resolve(answered) : reject(new Error('The connection was lost')),
            );
          });
        });
      });
    });
  }

  /** A question to a log beside the database. */
  #askLog<Answer>(process: Process, answer: () => Answer): Promise<Answer> {
    if (this.#isInDatabase) return this.#ask(process, answer);
    return new Promise((resolve) => {
      this.#at(this.#now + this.#network(), () => {
        const answered = answer();
        this.#on(process, this.#network(), () => resolve(answered));
      });
    });
  }

  #crash(): void {
    const recoveryMs = this.#between(5, this.#crashesOften ? 50 : 600);
    this.#database.crash(this.#now, recoveryMs);
    for (const process of this.#processes) {
      process.deafUntil = Math.max(process.deafUntil, this.#now + recoveryMs + this.#between(0, 300));
    }
  }

  #start(process: Process): void {
    const database = this.#database;
    const listeners: LeaseListener[] = [];
    const { name } = process;
    const table: LeaseTable = {
      insert: () =>
        this.#askLocked(process, 0.2, () => {
          const epoch = (database.epochs += 1);
          return [epoch, () => database.insert(name, epoch)];
        }),
      renew: (epoch) =>
        this.#ask(process, () => database.change(name, epoch, (row) => ({ ...row, renewals: row.renewals + 1 }))),
      remove: (lease) => this.#ask(process, () => database.remove(lease)),
      giveUp: (epoch) =>
        this.#ask(process, () => {
          if (database.rows.get(name)?.epoch === epoch) database.delete(name);
        }),
      rows: () => this.#ask(process, () => database.leases()),
      tell: (epoch, heard) =>
        this.#ask(process, () => {
          database.change(name, epoch, (row) => ({ ...row, heard: Math.max(row.heard, Number(heard)) }));
          this.#notify((listener) => listener.onHeard(name, heard));
        }),
      listen: (listener) => {
        listeners.push(listener);
        return { close: async () => undefined };
      },
    };
    const leases = createReadLeases({
      node: process.name,
      table,
      head: () => this.#askLog(process, () => position(this.#head)),
      holds: true,
      spanMs: SPAN_MS,
      clock: {
        monotonicMs: () => process.offsetMs + this.#now * process.rate,
        wallMs: () => this.#now,
        after: (ms, call) => {
          let isWanted = true;
          this.#on(process, ms / process.rate, () => isWanted && call());
          return () => {
            isWanted = false;
          };
        },
      },
      onFault: () => undefined,
    });
    const { events, pull } = this.#log(process, leases);
    const log = createSettledLog(events, leases);
    const follower = new LogFollower({
      events: log,
      leases,
      apply: async () => undefined,
      forget: () => undefined,
      onFault: () => undefined,
      gather: () => Promise.resolve(),
    });
    const [listener = this.#fail()] = listeners;
    process.life = { leases, log, follower, listener, pull, isAlive: true };
  }

  #notify(call: (listener: LeaseListener) => void): void {
    for (const process of this.#processes) {
      const listener = process.life?.listener;
      if (listener === undefined || this.#misses(process)) continue;
      this.#on(process, this.#network(), () => call(listener));
    }
  }

  #misses(process: Process): boolean {
    return this.#now < process.deafUntil || this.#random() < LOST_SHARE;
  }

  /** An append that sees the leases under its lock, and tells their holders. */
  #appendSeeing(process: Process): Promise<Appended> {
    const holdMs = this.#random() < 0.1 ? this.#between(50, 500) : this.#between(0.2, 8);
    return this.#askLocked(process, holdMs, () => {
      const rows = this.#database.leases();
      const head = this.#head + 1;
      const commit = (): void => {
        this.#head = head;
        this.#database.write();
        for (const other of this.#processes) {
          // A connection that was lost: its process finds the append only when it reads again.
          if (this.#misses(other)) continue;
          this.#on(other, this.#network(), () => other.life?.listener.onHead(position(head), rows));
          this.#on(other, this.#network(), () => other.life?.pull());
        }
      };
      return [{ head, rows }, commit];
    });
  }

  /** An append to a log beside the database: its subscribers are told, and the leases are read behind it. */
  #appendBeside(process: Process): Promise<Appended> {
    return this.#askLog(process, () => {
      this.#head += 1;
      for (const other of this.#processes) {
        if (!this.#misses(other)) this.#on(other, this.#network(), () => other.life?.pull());
      }
      return { head: this.#head, rows: null };
    });
  }

  #log(process: Process, leases: ReadLeases): { readonly events: EventStore; readonly pull: () => void } {
    let pull = (): void => undefined;
    const unused = (): never => {
      throw new Error('Not simulated');
    };
    const events: EventStore = {
      append: async () => {
        const { head, rows } = await (this.#isInDatabase ? this.#appendSeeing(process) : this.#appendBeside(process));
        if (rows !== null) leases.hearOwn(position(head), rows);
        pull();
        return { outcome: 'appended', revision: 0, position: position(head) };
      },
      head: () => this.#askLog(process, () => position(this.#head)),
      readStream: unused,
      readAll: unused,
      subscribe: (options) => {
        if (options.lingers === true) throw new Error('Requests wait for the follower of the log: it must not linger');
        pull = this.#subscribe(process, options);
        return { pull, close: async () => undefined, closed: new Promise(() => undefined) };
      },
    };
    return { events, pull: () => pull() };
  }

  /** Reads the log whenever it is pulled, one reading at a time. */
  #subscribe(process: Process, { after, onEvents }: SubscribeOptions): () => void {
    let at = after;
    let isReading = false;
    let isPulled = false;
    const read = async (): Promise<void> => {
      isReading = true;
      while (isPulled) {
        isPulled = false;
        const head = await this.#askLog(process, () => position(this.#head)).catch(() => null);
        // A reading that failed is repeated.
        if (head === null) this.#on(process, this.#between(20, 200), pull);
        if (head === null || head <= at) continue;
        await onEvents([], head, null);
        at = head;
      }
      isReading = false;
    };
    const pull = (): void => {
      isPulled = true;
      if (!isReading) read().catch(() => undefined);
    };
    return pull;
  }

  #append(process: Process): void {
    const { life } = process;
    if (life === null || this.#now < process.pausedUntil) return;
    life.log
      .append({ stream: '' as never, expected: 'none', events: [] })
      .then((result) => {
        if (!life.isAlive || result.outcome !== 'appended') return;
        this.#appends += 1;
        this.#owed = Math.max(this.#owed, Number(result.position));
      })
      .catch(() => undefined);
  }

  #read(process: Process): void {
    const { life } = process;
    if (life === null || this.#now < process.pausedUntil) return;
    const owed = this.#owed;
    const began = this.#now;
    this.#reads += 1;
    const finished = (): void => {
      if (!life.isAlive) return;
      const seen = Number(life.follower.applied);
      if (seen < owed) {
        this.#violation ??= `${process.name} read ${seen} at ${this.#now}, began at ${began} when ${owed} was known`;
      }
      this.#owed = Math.max(this.#owed, seen);
    };
    if (life.follower.known() !== null) {
      this.#fromMemory += 1;
      finished();
      return;
    }
    life.follower.barrier().then(finished, () => undefined);
  }

  /** Cuts a process off from notifications, pauses it, or kills it and starts it again. */
  #disturb(process: Process): void {
    if (this.#random() < 0.3) {
      process.deafUntil = this.#now + this.#between(5, 4_000);
      return;
    }
    if (this.#random() < 0.6) {
      process.pausedUntil = this.#now + this.#between(5, 4_000);
      return;
    }
    if (process.life !== null) process.life.isAlive = false;
    process.life = null;
    process.pausedUntil = this.#now + this.#between(5, 2_000);
    this.#on(process, 0, () => this.#start(process));
  }
}
