/**
 * An operation: the requests that one command of a real client sends, in order, as bytes.
 *
 * Invariants: every answer is checked, so that no server is fast because it fails.
 */
import type { Answer } from './wire.ts';

/**
 * `flush`: status 200 and a flush as the last packet. `report`: status 200 and a push report without a refusal. `ok`:
 * status 200. `created`: status 201.
 */
export type Check = 'flush' | 'report' | 'ok' | 'created';

export interface Exchange {
  readonly parts: readonly Uint8Array[];
  readonly check: Check;
}

export type Operation = readonly Exchange[];

/**
 * The operations for one side in one scenario. `next` returns null when no prepared operation is left: the round ends.
 */
export interface Workload {
  /** Prepares more operations between two rounds; its time and CPU are not counted. */
  replenish?(): Promise<void>;
  next(client: number): Operation | null;
}

/** Returns null for a correct answer, or what is wrong with it. */
export function faultOf(check: Check, answer: Answer): string | null {
  const excerpt = answer.body?.toString('latin1', 0, 400) ?? '';
  if (answer.status !== (check === 'created' ? 201 : 200)) return `status ${answer.status} ${excerpt}`;
  if (check === 'flush' && answer.tail !== '0000') return `an answer that ends in ${JSON.stringify(answer.tail)}`;
  if (check === 'report') {
    const report = answer.body?.toString('latin1') ?? '';
    if (!report.includes('unpack ok\n') || /[0-9a-f]{4}ng /.test(report)) return `a refused push: ${excerpt}`;
  }
  return null;
}
