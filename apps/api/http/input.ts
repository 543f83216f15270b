/**
 * Checks a request's input against its route's schemas, and reports faults in the form of docs/interface.md.
 *
 * Must stay true: a fault's message describes the schema and never repeats the value that was sent. The cost grows no
 * faster than the input, however much of it is wrong.
 */
import type { z } from 'zod';
import type { FieldFault } from './answer.ts';

export type Checked<Value> = { readonly value: Value } | { readonly faults: readonly FieldFault[] };

/** A wrong input must not make a long answer. */
const FAULTS_NAMED_MAX = 100;

/** `place` is the part of the request that holds the value, and the first step of each fault's `loc`. */
export function check<Schema extends z.ZodType>(
  schema: Schema,
  place: 'body' | 'path' | 'query',
  input: unknown,
): Checked<z.output<Schema>> {
  const result = schema.safeParse(input);
  if (result.success) return { value: result.data };
  return {
    faults: result.error.issues.slice(0, FAULTS_NAMED_MAX).map((issue) => {
      const path = issue.path.map((step) => (typeof step === 'symbol' ? String(step) : step));
      const missing = valueAt(input, path) === undefined;
      return {
        loc: [place, ...path],
        msg: missing ? 'Field required' : issue.message,
        type: missing ? 'missing' : issue.code,
      };
    }),
  };
}

function valueAt(input: unknown, path: readonly (string | number)[]): unknown {
  let value: unknown = input;
  for (const step of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    // Not one that every object inherits, such as `constructor`.
    value = Object.getOwnPropertyDescriptor(value, step)?.value;
  }
  return value;
}
