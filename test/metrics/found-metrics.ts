/**
 * The metrics of the service, read from its sources: where the code makes a metric of prom-client, and where it calls a
 * function of apps/server/metrics.ts that makes one.
 *
 * Invariants: a metric whose name, text or labels are not constant throws, so that none is missed.
 */
import { createValues, OPEN, type Values } from '../architecture/source-values.ts';
import {
  child,
  children,
  nameOf,
  type Place,
  propertyNamed,
  type Sources,
  type Syntax,
} from '../architecture/syntax.ts';

export type MetricKind = 'counter' | 'gauge' | 'histogram';

export interface FoundMetric {
  readonly name: string;
  readonly kind: MetricKind;
  readonly help: string;
  readonly labels: readonly string[];
}

const CLASSES: ReadonlyMap<string, MetricKind> = new Map([
  ['Counter', 'counter'],
  ['Gauge', 'gauge'],
  ['Histogram', 'histogram'],
] as const);
/** The functions that make a metric of their first arguments: name, text, and for several figures the label. */
const MAKERS: ReadonlyMap<string, MetricKind> = new Map([
  ['gauge', 'gauge'],
  ['gauges', 'gauge'],
  ['gaugesOf', 'gauge'],
  ['total', 'counter'],
  ['totalsOf', 'counter'],
] as const);
const LABELLED: ReadonlySet<string | null> = new Set(['gauges', 'gaugesOf', 'totalsOf']);
const PREFIX = /^strata_/;

/** Returns all metrics, sorted by name. prom-client's own metrics of the process and of Node are not among them. */
export function metricsOf(sources: Sources): readonly FoundMetric[] {
  const values = createValues(sources);
  const found = [...constructed(sources, values), ...made(sources, values)];
  return found.sort((one, other) => (one.name < other.name ? -1 : 1));
}

function constructed(sources: Sources, values: Values): readonly FoundMetric[] {
  return sources.holding(/'prom-client'/).flatMap((module) =>
    module.nodes('NewExpression').flatMap((node) => {
      const kind = CLASSES.get(nameOf(child(node, 'callee')) ?? '');
      const [options] = children(node, 'arguments');
      if (kind === undefined || options === undefined) return [];
      const name = propertyNamed(options, 'name');
      // Calls of the makers are found by themselves.
      if (name?.type === 'Identifier' && isInMaker({ module, node })) return [];
      const textOf = (part: Syntax | null): string => constant(values, { module, node: part ?? options });
      const labels = children(propertyNamed(options, 'labelNames'), 'elements').map(textOf);
      return [{ name: textOf(name), kind, help: textOf(propertyNamed(options, 'help')), labels }];
    }),
  );
}

function isInMaker({ module, node }: Place): boolean {
  for (let within = module.parentOf(node); within !== null; within = module.parentOf(within)) {
    if (within.type === 'Property' && MAKERS.has(nameOf(child(within, 'key')) ?? '')) return true;
  }
  return false;
}

function made(sources: Sources, values: Values): readonly FoundMetric[] {
  return sources.nodes(/\.(gauge|gauges|gaugesOf|total|totalsOf)\(/, 'CallExpression').flatMap(({ module, node }) => {
    const callee = child(node, 'callee');
    const kind = MAKERS.get(nameOf(child(callee, 'property')) ?? '');
    const [name, help, label] = children(node, 'arguments');
    if (kind === undefined || name === undefined || help === undefined) return [];
    const textOf = (part: Syntax): string => constant(values, { module, node: part });
    const isLabelled = LABELLED.has(nameOf(child(callee, 'property'))) && label !== undefined;
    return [{ name: textOf(name), kind, help: textOf(help), labels: isLabelled ? [textOf(label)] : [] }];
  });
}

function constant(values: Values, place: Place): string {
  const [text, ...others] = values.of(place);
  if (text === undefined || text.includes(OPEN) || others.length > 0) {
    const start = place.node['start'];
    const line = place.module.text.slice(0, typeof start === 'number' ? start : 0).split('\n').length;
    throw new Error(`${place.module.path}:${line}: this part of a metric is not constant`);
  }
  return text;
}

/** The names that do not begin as all names do. */
export function misnamed(metrics: readonly FoundMetric[]): readonly string[] {
  return metrics.flatMap(({ name }) => (PREFIX.test(name) ? [] : [name]));
}
