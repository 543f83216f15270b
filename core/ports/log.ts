/**
 * Where adapters write what an operator should know.
 *
 * Must stay true: no secret and no personal data in a line (architecture, invariant 5): fields are ids, counts,
 * paths and error codes. The shape is pino's, so its logger fits without a wrapper; an error stands under `err`.
 */
export interface Log {
  info(fields: { readonly [name: string]: unknown }, message: string): void;
  warn(fields: { readonly [name: string]: unknown }, message: string): void;
  error(fields: { readonly [name: string]: unknown }, message: string): void;
}
