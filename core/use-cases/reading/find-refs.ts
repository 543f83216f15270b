/**
 * Finds branches and tags by a part of their name, in pages.
 *
 * Invariants: names come from the repository's state, so no page is older than the last push. Names are sorted once
 * for each state of the refs. A repository may have some 190,000 refs, so none of this is done in one go.
 */
import type { Page, PageOf } from '../../kernel/page.ts';
import { type NextTurn, pickInTurns, sortInTurns } from '../../kernel/turns.ts';
import type { Clock } from '../../ports/clock.ts';
import { type Refs, sortedRefNames } from '../../repository/ref-runs.ts';
import type { OpenRepository, Ref } from '../../repository/state.ts';
import { findOfKind, type RefKind, shortNameOf } from './resolve-ref.ts';

export interface NamedRef {
  /** The short one. */
  readonly name: string;
  readonly ref: Ref;
}

/** `version` takes runs of digits as numbers, the highest first: v2.10, v2.9, v1.0. `name` is byte order. */
export type RefOrder = 'name' | 'version';

export interface FindRefsContext {
  readonly clock: Pick<Clock, 'nextTurn'>;
}

export interface WantedRefs {
  readonly kind: RefKind;
  /** A part of the short name, in any case; empty finds all. */
  readonly search: string;
  readonly order: RefOrder;
  readonly page: Page;
}

export async function findRefs(
  { clock: { nextTurn } }: FindRefsContext,
  { refs }: Pick<OpenRepository, 'refs'>,
  { kind, search, order, page: { offset, limit } }: WantedRefs,
): Promise<PageOf<NamedRef>> {
  const all = await namesOf(refs, kind, order, nextTurn);
  const pattern = containing(search);
  const found =
    search === '' ? all : await pickInTurns(all, (name) => (pattern.test(name) ? name : undefined), nextTurn);
  const named = (name: string): NamedRef | undefined => {
    const ref = findOfKind(refs, kind, name);
    return ref === null ? undefined : { name, ref };
  };
  const items = await pickInTurns(found.slice(offset, offset + limit), named, nextTurn);
  return { items, total: found.length };
}

type Names = Promise<readonly string[]>;

const NAMES = new WeakMap<Refs, Map<string, Names>>();

/** Requests that come while the names are sorted wait for the same work. */
function namesOf(refs: Refs, kind: RefKind, order: RefOrder, nextTurn: NextTurn): Names {
  const known = NAMES.get(refs) ?? new Map<string, Names>();
  NAMES.set(refs, known);
  const key = `${kind} ${order}`;
  const names = known.get(key) ?? sortNames(refs, kind, order, nextTurn);
  known.set(key, names);
  return names;
}

async function sortNames(refs: Refs, kind: RefKind, order: RefOrder, nextTurn: NextTurn): Names {
  const names = await pickInTurns(sortedRefNames(refs), (name) => shortNameOf(kind, name), nextTurn);
  if (order === 'name') return names;
  const keyed = await pickInTurns(names, (name) => ({ name, parts: name.split(/(\d+)/) }), nextTurn);
  const sorted = await sortInTurns(keyed, (a, b) => compareParts(b.parts, a.parts), nextTurn);
  return pickInTurns(sorted, ({ name }) => name, nextTurn);
}

/** Every second part is a run of digits. */
function compareParts(a: readonly string[], b: readonly string[]): number {
  for (let at = 0; at < a.length && at < b.length; at += 1) {
    const [left = '', right = ''] = [a[at], b[at]];
    if (left === right) continue;
    const difference = at % 2 === 1 ? Number(left) - Number(right) : 0;
    if (difference !== 0 && !Number.isNaN(difference)) return difference;
    return left < right ? -1 : 1;
  }
  return a.length - b.length;
}

function containing(search: string): RegExp {
  return new RegExp(search.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'iu');
}
