/**
 * The caches of lru-cache that the sources make, and which of them the metrics do not show.
 *
 * Invariants: a cache is shown if it is made as the last argument of `countedCache`, under a constant name.
 */
import { createValues, OPEN } from '../architecture/source-values.ts';
import { child, children, nameOf, type Place, type Sources } from '../architecture/syntax.ts';

export interface FoundCaches {
  readonly names: readonly string[];
  /** Where a cache is made that no metric shows. */
  readonly hidden: readonly string[];
}

export function cachesOf(sources: Sources): FoundCaches {
  const values = createValues(sources);
  const shown = sources.nodes(/\b(countedCache|showCache)\(/, 'CallExpression').flatMap((place) => {
    const [name, ...others] = children(place.node, 'arguments');
    const isOne = /^(countedCache|showCache)$/.test(nameOf(child(place.node, 'callee')) ?? '');
    return isOne && name !== undefined ? [{ place, name, others }] : [];
  });
  const made = sources.nodes(/\bnew LRUCache\b/, 'NewExpression');
  const counted = new Set(shown.flatMap(({ others }) => others));
  const names = shown.flatMap(({ place, name }) => values.of({ ...place, node: name }));
  return {
    names: [...new Set(names.filter((name) => !name.includes(OPEN)))].sort(),
    hidden: made.filter(({ node }) => nameOf(child(node, 'callee')) === 'LRUCache' && !counted.has(node)).map(whereOf),
  };
}

function whereOf({ module, node }: Place): string {
  const start = node['start'];
  return `${module.path}:${module.text.slice(0, typeof start === 'number' ? start : 0).split('\n').length}`;
}
