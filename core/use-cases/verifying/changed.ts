/**
 * Tells what somebody changed or lost from an outage, by the error of whoever reads it.
 *
 * Invariants: an outage is never told as a fault. What is read in vain because it was changed never keeps the rest from
 * being verified.
 */
import { UnknownEventError } from '../../kernel/decider.ts';
import { EventStoreError } from '../../ports/event-store.ts';
import { VaultError } from '../../ports/vault.ts';
import { UnreadableCheckpointError } from '../auditing/checkpoints.ts';

export function isChanged(error: unknown): error is Error {
  if (error instanceof EventStoreError) return error.code === 'event-unreadable' || error.code === 'log-diverged';
  if (error instanceof VaultError) return error.code === 'record-tampered';
  return [UnknownEventError, UnreadableCheckpointError, TypeError].some((kind) => error instanceof kind);
}

/** Tells what the work cannot read since somebody changed it, and ends the work then. Rejects on an outage. */
export async function tellingChanges(fault: (text: string) => void, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isChanged(error)) throw error;
    fault(error.message);
  }
}
