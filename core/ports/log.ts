/**
 * The log lines for operators.
 *
 * Invariants: no line holds a secret or personal data (docs/architecture.md, invariant 5): fields are ids, counts,
 * paths and error codes. The interface matches pino's logger, so it needs no wrapper; an error is in the field `err`.
 */
export interface Log {
  /** What only somebody who looks for a fault reads. */
  debug(fields: { readonly [name: string]: unknown }, message: string): void;
  info(fields: { readonly [name: string]: unknown }, message: string): void;
  warn(fields: { readonly [name: string]: unknown }, message: string): void;
  error(fields: { readonly [name: string]: unknown }, message: string): void;
}
