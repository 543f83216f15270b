/**
 * Checks a request's input against its route's schemas, and reports faults in the form of docs/interface.md.
 *
 * Invariants: a fault's message describes the schema and never repeats the value that was sent. The cost grows no
 * faster than the input, however much of it is wrong.
 */
import type { z } from 'zod';
import { cutText } from '../../../core/kernel/text.ts';
import type { FieldFault } from './answer.ts';

export type Checked<Value> = { readonly value: Value } | { readonly faults: readonly FieldFault[] };

/**
 * How many faults and unknown members an answer names, and the characters of each name. A wrong input must not make a
 * long answer.
 */
export const FAULTS_NAMED_MAX = 100;
export const UNKNOWN_NAMED_MAX = 10;
export const STEP_LENGTH_MAX = 100;

/** `place` is the part of the request that holds the value, and the first step of each fault's `loc`. */
export function check<Schema extends z.ZodType>(
  schema: Schema,
  place: 'body' | 'path' | 'query',
  input: unknown,
): Checked<z.output<Schema>> {
  const result = schema.safeParse(input);
  if (result.success) return { value: result.data };
  const faults = result.error.issues.slice(0, FAULTS_NAMED_MAX).flatMap((issue) => faultsOf(issue, place, input));
  return { faults: faults.slice(0, FAULTS_NAMED_MAX) };
}

function faultsOf(issue: z.core.$ZodIssue, place: string, input: unknown): readonly FieldFault[] {
  const path = issue.path.map((step) => (typeof step === 'symbol' ? String(step) : step));
  const loc = [place, ...path.map((step) => (typeof step === 'number' ? step : namedStep(step)))];
  if (issue.code === 'unrecognized_keys') {
    const { code: type, keys } = issue;
    return keys.slice(0, UNKNOWN_NAMED_MAX).map((name) => ({ loc: [...loc, namedStep(name)], msg: UNKNOWN, type }));
  }
  if (valueAt(input, path) === undefined) return [{ loc, msg: 'Field required', type: 'missing' }];
  return [{ loc, msg: issue.message, type: issue.code }];
}

/** A member that is ignored would let a client with a misspelt one take its change for done. */
const UNKNOWN = 'Unknown member: this route does not take it';

/** Returns a step of a fault's `loc`. */
export function namedStep(name: string): string {
  return cutText(name, STEP_LENGTH_MAX);
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
