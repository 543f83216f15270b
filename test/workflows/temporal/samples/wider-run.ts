/** A run that imports more than it may. */
import { plusMs, timestamp } from '../../../../core/kernel/ids.ts';

export async function run(): Promise<string> {
  return plusMs(timestamp('2026-11-21T10:00:00.000Z'), 1);
}
