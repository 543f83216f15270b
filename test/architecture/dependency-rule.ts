/**
 * Who may import whom: apps -> workflows, projections, adapters -> core (architecture.md, Shape).
 *
 * Must stay true: the table below is the rule, whole; what it does not grant is refused, also for types only,
 * and so is every specifier whose target cannot be known by reading it.
 */
import { isBuiltin } from 'node:module';
import { posix } from 'node:path';
import { readModule } from './imports.ts';
import { modulesOf, type SourceTree } from './source-tree.ts';

interface Grant {
  /** Folders it may import from; `own` is the technology's folder below adapters/. */
  readonly from: readonly string[];
  /** npm packages it may import. */
  readonly packages: RegExp | null;
  /** Node's modules it may import, with or without `node:`. */
  readonly node: RegExp | null;
  /** Whether it may import what is named only at run time. */
  readonly computed?: boolean;
}

const ANY = /./;
/** A runner has to wait; it needs nothing else of the machine. */
const WAITING = /^(node:)?timers\/promises$/;
/** A workflow may know its engine's library; everything else reaches it as data or as activities. */
const WORKFLOW_ENGINE = /^@temporalio\//;

const GRANTS: { readonly [zone: string]: Grant } = {
  core: { from: ['core'], packages: null, node: null },
  adapters: { from: ['core', 'own'], packages: ANY, node: ANY },
  projections: { from: ['core', 'projections'], packages: ANY, node: WAITING },
  workflows: { from: ['core', 'workflows'], packages: WORKFLOW_ENGINE, node: null },
  // package.json tells an app its version.
  apps: { from: ['core', 'adapters', 'projections', 'workflows', 'apps', 'package.json'], packages: ANY, node: ANY },
  // It runs before anything is installed.
  'apps/launcher': { from: ['apps/launcher'], packages: null, node: ANY },
  test: {
    from: ['core', 'adapters', 'projections', 'workflows', 'apps', 'apps/launcher', 'test', 'package.json'],
    packages: ANY,
    node: ANY,
    computed: true,
  },
};

function zoneOf(path: string): string {
  return path.startsWith('apps/launcher/') ? 'apps/launcher' : (path.split('/')[0] ?? '');
}

/** The folder of a technology: `adapters/postgres`. */
function technologyOf(path: string): string {
  return path.split('/').slice(0, 2).join('/');
}

/** Why a module may not import this, or null when it may. */
function refusal(path: string, grant: Grant, specifier: string | null): string | null {
  if (specifier === null) return grant.computed === true ? null : 'a module named only at run time';
  if (/^\.\.?(\/|$)/.test(specifier)) {
    const target = posix.join(posix.dirname(path), specifier);
    const zone = zoneOf(target);
    if (zone === 'adapters' && technologyOf(target) === technologyOf(path)) return null;
    return grant.from.includes(zone) ? null : target;
  }
  // Self-references, aliases, absolute paths and addresses would lead around the rule.
  if (/^(#|\/|(file|data|https?):)/.test(specifier) || specifier.split('/')[0] === 'strata') return specifier;
  const allowed = (isBuiltin(specifier) ? grant.node : grant.packages)?.test(specifier) === true;
  return allowed ? null : specifier;
}

/** One line for each import that the table does not grant. */
export function dependencyViolations(tree: SourceTree): string[] {
  const violations: string[] = [];
  for (const [path, text] of modulesOf(tree)) {
    const grant = GRANTS[zoneOf(path)];
    if (grant === undefined) violations.push(`${path} stands outside the folders of the architecture`);
    if (/^adapters\/[^/]+$/.test(path)) violations.push(`${path} belongs in the folder of its technology`);
    if (grant === undefined) continue;
    for (const { specifier, line } of readModule(text).imports) {
      const refused = refusal(path, grant, specifier);
      if (refused !== null) violations.push(`${path}:${line} may not import ${refused}`);
    }
  }
  return violations;
}

/** Modules of the project that a module imports, at whatever line and in whatever form. */
export function importedModules(tree: SourceTree, path: string): string[] {
  const imports = readModule(tree.get(path) ?? '').imports;
  const relative = imports.flatMap(({ specifier }) => (specifier?.startsWith('.') === true ? [specifier] : []));
  return relative.map((specifier) => posix.join(posix.dirname(path), specifier)).filter((target) => tree.has(target));
}

/**
 * Import cycles, each once, as the path that leads back to its start. Types count: modules that need each
 * other's types cannot be read one after the other either.
 */
export function importCycles(tree: SourceTree): string[] {
  const done = new Set<string>();
  const trail: string[] = [];
  const cycles: string[] = [];
  const visit = (path: string): void => {
    const start = trail.indexOf(path);
    if (start >= 0) cycles.push([...trail.slice(start), path].join(' -> '));
    if (start >= 0 || done.has(path)) return;
    trail.push(path);
    for (const target of importedModules(tree, path)) visit(target);
    trail.pop();
    done.add(path);
  };
  for (const path of modulesOf(tree).keys()) visit(path);
  return cycles;
}
