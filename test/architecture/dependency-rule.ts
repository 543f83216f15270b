/**
 * The dependency rule: apps -> workflows, projections, adapters -> core (docs/architecture.md, Shape).
 *
 * Invariants: the table below is the complete rule. An import that it does not grant is refused, even of types
 * only, and so is a specifier whose target the source does not show.
 */
import { isBuiltin } from 'node:module';
import { posix } from 'node:path';
import { readModule } from './imports.ts';
import { modulesOf, type SourceTree } from './source-tree.ts';

interface Grant {
  /** The zones that it may import from, or folders inside a zone; `own` is the technology's folder below adapters/. */
  readonly from: readonly string[];
  /** The npm packages that it may import. */
  readonly packages: RegExp | null;
  /** The modules of Node that it may import, with or without `node:`. */
  readonly node: RegExp | null;
  /** Whether it may import a module whose name is computed at run time. */
  readonly computed?: boolean;
}

const ANY = /./;
/** The runner of projections waits, and uses no other module of Node. */
const WAITING = /^(node:)?timers\/promises$/;
/** A workflow may import its engine's library; it gets everything else as data or as activities. */
const WORKFLOW_ENGINE = /^@temporalio\//;

const GRANTS: { readonly [zone: string]: Grant } = {
  core: { from: ['core'], packages: null, node: null },
  adapters: { from: ['core', 'own'], packages: ANY, node: ANY },
  projections: { from: ['core', 'projections'], packages: ANY, node: WAITING },
  workflows: { from: ['core', 'workflows'], packages: WORKFLOW_ENGINE, node: null },
  // Apps read their version from package.json.
  apps: {
    from: ['core', 'adapters', 'projections', 'workflows', 'apps', 'apps/website', 'package.json'],
    packages: ANY,
    node: ANY,
  },
  // The website takes of the API only the schemas, which judge its forms. What both need is in the front door.
  'apps/website': { from: ['core', 'apps/website', 'apps/front-door', 'apps/api/schemas'], packages: ANY, node: ANY },
  // The launcher runs before any package is installed.
  'apps/launcher': { from: ['apps/launcher'], packages: null, node: ANY },
  // Auditors read and run it without us.
  'apps/verifier': { from: ['apps/verifier'], packages: null, node: ANY },
  // A replay is the service's own fold of the log, and nothing else of it.
  'apps/replay': { from: ['apps/replay', 'core'], packages: null, node: ANY },
  // The command line is a client like any other: it has the API's document, and nothing of the server but replays.
  'apps/cli': {
    from: ['apps/cli', 'apps/replay', 'apps/verifier'],
    packages: /^(commander|smol-toml|esbuild)$/,
    node: ANY,
  },
  test: {
    from: [
      ...['core', 'adapters', 'projections', 'workflows', 'apps', 'apps/launcher', 'apps/verifier', 'apps/cli'],
      ...['apps/replay', 'apps/website', 'test', 'package.json'],
    ],
    packages: ANY,
    node: ANY,
    computed: true,
  },
};

/** The apps that are zones of their own. */
const ALONE = ['apps/launcher', 'apps/verifier', 'apps/replay', 'apps/cli', 'apps/website'];

function zoneOf(path: string): string {
  return ALONE.find((folder) => path.startsWith(`${folder}/`)) ?? path.split('/')[0] ?? '';
}

/** The folder of a technology: `adapters/postgres`. */
function technologyOf(path: string): string {
  return path.split('/').slice(0, 2).join('/');
}

/** Returns why a module may not import the specifier, or null if it may. */
function refusal(path: string, grant: Grant, specifier: string | null): string | null {
  if (specifier === null) return grant.computed === true ? null : 'a module named only at run time';
  if (/^\.\.?(\/|$)/.test(specifier)) {
    const target = posix.join(posix.dirname(path), specifier);
    const zone = zoneOf(target);
    if (zone === 'adapters' && technologyOf(target) === technologyOf(path)) return null;
    const isInside = (folder: string): boolean => folder.startsWith(`${zone}/`) && target.startsWith(`${folder}/`);
    return grant.from.some((folder) => folder === zone || isInside(folder)) ? null : target;
  }
  // Self-references, aliases, absolute paths and URLs would bypass the rule.
  if (/^(#|\/|(file|data|https?):)/.test(specifier) || specifier.split('/')[0] === 'strata') return specifier;
  const allowed = (isBuiltin(specifier) ? grant.node : grant.packages)?.test(specifier) === true;
  return allowed ? null : specifier;
}

/** Returns one line for each import that the table does not grant. */
export function dependencyViolations(tree: SourceTree): string[] {
  const violations: string[] = [];
  for (const [path, text] of modulesOf(tree)) {
    const grant = GRANTS[zoneOf(path)];
    if (grant === undefined) violations.push(`${path} is outside the folders of the architecture`);
    if (/^adapters\/[^/]+$/.test(path)) violations.push(`${path} belongs in the folder of its technology`);
    if (grant === undefined) continue;
    for (const { specifier, line } of readModule(text).imports) {
      const refused = refusal(path, grant, specifier);
      if (refused !== null) violations.push(`${path}:${line} may not import ${refused}`);
    }
  }
  return violations;
}

/** Returns the modules of the project that a module imports in any form. */
export function importedModules(tree: SourceTree, path: string): string[] {
  const imports = readModule(tree.get(path) ?? '').imports;
  const relative = imports.flatMap(({ specifier }) => (specifier?.startsWith('.') === true ? [specifier] : []));
  return relative.map((specifier) => posix.join(posix.dirname(path), specifier)).filter((target) => tree.has(target));
}

/**
 * Returns each import cycle once, as the path that leads back to its start. Imports of types count: a reader cannot
 * read modules that need each other's types one after the other.
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
