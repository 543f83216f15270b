/**
 * What is replayed: an operation is the requests that one command of a real client sends, in order, as bytes.
 *
 * Must stay true: every answer is checked, so that a server is never fast by failing.
 */
import type { Answer } from './wire.ts';

/** `flush`: 200 and the last packet is a flush. `report`: 200 and a push's report without a refusal. */
export type Check = 'flush' | 'report' | 'ok';

export interface Exchange {
  readonly parts: readonly Uint8Array[];
  readonly check: Check;
}

export type Operation = readonly Exchange[];

/** What one side is asked in one scenario. Null from `next`: nothing prepared is left, and the round ends. */
export interface Workload {
  /** Prepares more between two rounds; its time and CPU are not counted. */
  replenish?(): Promise<void>;
  next(client: number): Operation | null;
}

/** Null when the answer is right, else what is wrong with it. */
export function faultOf(check: Check, answer: Answer): string | null {
  const excerpt = answer.body?.toString('latin1', 0, 400) ?? '';
  if (answer.status !== 200) return `status ${answer.status} ${excerpt}`;
  if (check === 'flush' && answer.tail !== '0000') return `an answer that ends in ${JSON.stringify(answer.tail)}`;
  if (check === 'report') {
    const report = answer.body?.toString('latin1') ?? '';
    if (!report.includes('unpack ok\n') || /[0-9a-f]{4}ng /.test(report)) return `a refused push: ${excerpt}`;
  }
  return null;
}
