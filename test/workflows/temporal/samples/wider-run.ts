/** A run that imports a module that runs must not import. */
import { plusMs, timestamp } from '../../../../core/kernel/ids.ts';

export async function run(): Promise<string> {
  return plusMs(timestamp('2026-11-21T10:00:00.000Z'), 1);
}
