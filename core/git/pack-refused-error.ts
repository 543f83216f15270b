/**
 * What a quarantine throws whose pack is refused after it was received (core/ports/object-database.ts).
 *
 * Invariants: it is no outage: whoever uses a quarantine catches it and answers with the refusal.
 */
import type { PackRefusal } from '../ports/object-database.ts';

export class PackRefusedError extends Error {
  override readonly name = 'PackRefusedError';
  readonly refusal: PackRefusal;
  constructor(refusal: PackRefusal) {
    super(refusal.detail);
    this.refusal = refusal;
  }
}
