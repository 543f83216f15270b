/**
 * Finds branches and tags by a part of their name, in pages.
 *
 * Must stay true: names come from the repository's state, so no page is older than the last push. Names are sorted once
 * for each state of the refs.
 */
import type { Page, PageOf } from '../../kernel/page.ts';
import type { PersistentMap } from '../../kernel/persistent-map.ts';
import { type RefName, refName } from '../../git/ref-name.ts';
import { type OpenRepository, type Ref, sortedRefNames } from '../../repository/state.ts';

export interface NamedRef {
  /** Without `refs/heads/` or `refs/tags/`. */
  readonly name: string;
  readonly ref: Ref;
}

export type RefKind = 'branch' | 'tag';

/** `version` takes runs of digits as numbers, the highest first: v2.10, v2.9, v1.0. `name` is byte order. */
export type RefOrder = 'name' | 'version';

const PREFIXES = { branch: 'refs/heads/', tag: 'refs/tags/' } as const;

/** `search` is a part of the short name, in any case; empty finds all. */
export function findRefs(
  { refs }: Pick<OpenRepository, 'refs'>,
  kind: RefKind,
  search: string,
  order: RefOrder,
  { offset, limit }: Page,
): PageOf<NamedRef> {
  const all = namesOf(refs, kind, order);
  const pattern = containing(search);
  const found = search === '' ? all : all.filter((name) => pattern.test(name));
  const items = found.slice(offset, offset + limit).flatMap((name): NamedRef[] => {
    const ref = refs.get(refName(`${PREFIXES[kind]}${name}`));
    return ref === undefined ? [] : [{ name, ref }];
  });
  return { items, total: found.length };
}

const NAMES = new WeakMap<PersistentMap<RefName, Ref>, Map<string, readonly string[]>>();

function namesOf(refs: PersistentMap<RefName, Ref>, kind: RefKind, order: RefOrder): readonly string[] {
  const known = NAMES.get(refs) ?? new Map<string, readonly string[]>();
  NAMES.set(refs, known);
  const key = `${kind} ${order}`;
  const sorted = known.get(key);
  if (sorted !== undefined) return sorted;
  const prefix = PREFIXES[kind];
  const names = sortedRefNames(refs)
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length));
  const ordered = order === 'name' ? names : byVersion(names);
  known.set(key, ordered);
  return ordered;
}

function byVersion(names: readonly string[]): readonly string[] {
  const keyed = names.map((name) => ({ name, parts: name.split(/(\d+)/) }));
  keyed.sort((a, b) => compareParts(b.parts, a.parts));
  return keyed.map(({ name }) => name);
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
