/** A run that reaches for the machine, which Temporal's sandbox has not. */
import { randomUUID } from 'node:crypto';

export async function run(): Promise<string> {
  return randomUUID();
}
