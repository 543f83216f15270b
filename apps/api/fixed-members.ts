/**
 * Members of a resource that the route which changes it cannot change. A client that reads a resource, changes it and
 * writes it back sends them too.
 *
 * Invariants: such a member is taken only if it has the value that the resource has at this moment, as the route that
 * reads it would answer. So no request asks for a change that is not made. A fault says nothing of the value.
 */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { parseTimestamp } from '../../core/kernel/ids.ts';
import type { Answer, FieldFault } from './http/answer.ts';

/** What a body says of members that cannot be changed, and the rest of it. */
export interface SplitBody {
  readonly body: unknown;
  readonly fixed: readonly (readonly [name: string, value: unknown])[];
}

/** By name, those of the resource that the body of a change does not take. */
export function fixedMembersOf(resource: z.ZodType | null | undefined, changes: z.ZodType | undefined) {
  const changeable = shapeOf(changes);
  return new Map(Object.entries(shapeOf(resource)).filter(([name]) => !Object.hasOwn(changeable, name)));
}

function shapeOf(schema: z.ZodType | null | undefined): Readonly<Record<string, z.ZodType>> {
  return schema instanceof z.ZodObject ? schema.shape : {};
}

export function splitBody(body: unknown, names: ReadonlyMap<string, z.ZodType>): SplitBody {
  if (names.size === 0 || typeof body !== 'object' || body === null || Array.isArray(body)) return { body, fixed: [] };
  const members = Object.entries(body);
  const fixed = members.filter(([name]) => names.has(name));
  if (fixed.length === 0) return { body, fixed };
  return { body: Object.fromEntries(members.filter(([name]) => !names.has(name))), fixed };
}

/** Returns a fault for each member that has another value than in `answer`, which shows the resource as it is. */
export function changedMembers(
  { fixed }: SplitBody,
  names: ReadonlyMap<string, z.ZodType>,
  { body: answer }: Answer,
): readonly FieldFault[] {
  const standing = new Map(answer.kind === 'json' ? Object.entries<unknown>({ ...answer.json }) : []);
  const isSame = (name: string, value: unknown): boolean =>
    (standing.has(name) && isDeepStrictEqual(value, standing.get(name))) ||
    (names.get(name)?.meta()?.moves === true && isEarlier(value, standing.get(name), standing.get('created_at')));
  return fixed
    .filter(([name, value]) => !isSame(name, value))
    .map(([name]) => ({ loc: ['body', name], msg: UNCHANGEABLE, type: 'unchangeable' }));
}

const UNCHANGEABLE = 'This route cannot change it: leave it out, or send the value that it has';

/** To the minute, like the time of the last use; the client may have read it before that use. */
function isEarlier(value: unknown, standing: unknown, created: unknown): boolean {
  if (typeof value !== 'string' || typeof standing !== 'string' || typeof created !== 'string') return false;
  return parseTimestamp(value) !== null && value < standing && value >= created.slice(0, MINUTE_LENGTH);
}

const MINUTE_LENGTH = '2026-11-21T10:00'.length;
