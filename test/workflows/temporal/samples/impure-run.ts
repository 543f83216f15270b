/** A run that uses a module of Node, which Temporal's sandbox does not offer. */
import { randomUUID } from 'node:crypto';

export async function run(): Promise<string> {
  return randomUUID();
}
