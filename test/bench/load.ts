/**
 * Generates the load: several clients, each with one connection, each sending its next operation when the previous one
 * is done.
 *
 * Invariants: time and number of operations are bounded; the first wrong answer ends the run with an error.
 */
import { type Connection, createConnection } from './connection.ts';
import { faultOf, type Operation, type Workload } from './operation.ts';

export interface LoadOptions {
  readonly port: number;
  readonly clients: number;
  readonly durationSecondsMax: number;
}

export interface LoadResult {
  readonly operations: number;
  /** From the first request to the last answer. */
  readonly seconds: number;
  readonly latenciesMs: readonly number[];
  /** The cores that the generator used: near 1, the generator and not the server was the limit. */
  readonly generatorCores: number;
}

export async function runLoad(workload: Workload, options: LoadOptions): Promise<LoadResult> {
  const latenciesMs: number[] = [];
  const connections = Array.from({ length: options.clients }, () => createConnection(options.port));
  const cpuBefore = process.cpuUsage();
  const start = performance.now();
  const deadline = start + options.durationSecondsMax * 1000;
  let stopped = false;

  const runClient = async (connection: Connection, client: number): Promise<void> => {
    let began = performance.now();
    while (!stopped && began < deadline) {
      const operation = workload.next(client);
      if (operation === null) return;
      await perform(connection, operation);
      const ended = performance.now();
      latenciesMs.push(ended - began);
      began = ended;
    }
  };

  try {
    await Promise.all(connections.map(runClient));
  } finally {
    stopped = true;
    for (const connection of connections) connection.close();
  }
  const seconds = (performance.now() - start) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  return {
    operations: latenciesMs.length,
    seconds,
    latenciesMs,
    generatorCores: (cpu.user + cpu.system) / 1e6 / seconds,
  };
}

/** Makes all exchanges of one operation on one connection. Throws at the first wrong answer. */
export async function perform(connection: Connection, operation: Operation): Promise<void> {
  for (const { parts, check } of operation) {
    const answer = await connection.exchange(parts, check === 'report');
    const fault = faultOf(check, answer);
    if (fault !== null) {
      const line = Buffer.from(parts[0] ?? [])
        .toString('latin1', 0, 200)
        .split('\r\n', 1)[0];
      throw new Error(`${line} was answered with ${fault}`);
    }
  }
}
