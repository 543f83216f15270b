/**
 * The source as syntax trees, with the scopes of names: what `source-values.ts` evaluates.
 *
 * Invariants: a file is parsed only when a reader asks for one that holds a given text, since parsing all of them takes
 * longer than the test that reads them. A file that cannot be parsed throws.
 */
import { posix } from 'node:path';
import { parseSync } from 'oxc-parser';
import { modulesOf, projectTree, type SourceTree } from './source-tree.ts';

/** A node of ESTree, with the types of TypeScript. Its members depend on its type. */
export interface Syntax {
  readonly type: string;
  readonly [member: string]: unknown;
}

export function isSyntax(value: unknown): value is Syntax {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

/** Returns the member of a node that is a node; null for another value. */
export function child(node: Syntax | null, member: string): Syntax | null {
  const value = node?.[member];
  return isSyntax(value) ? value : null;
}

export function children(node: Syntax | null, member: string): readonly Syntax[] {
  const value = node?.[member];
  return Array.isArray(value) ? value.filter(isSyntax) : [];
}

/** Returns the text of an identifier or of a string; null for any other node. */
export function nameOf(node: Syntax | null): string | null {
  const name = node?.type === 'Identifier' || node?.type === 'PrivateIdentifier' ? node['name'] : node?.['value'];
  return typeof name === 'string' ? name : null;
}

/** Returns the value of the property of an object literal, or of the member of a type, that has this name. */
export function propertyNamed(object: Syntax, name: string): Syntax | null {
  const found = children(object, 'properties').find((property) => nameOf(child(property, 'key')) === name);
  return child(found ?? null, 'value');
}

/** Returns the text of a file with an empty text in place of each comment. */
export function withoutComments(path: string, text: string): string {
  let code = '';
  let end = 0;
  for (const comment of parseSync(path, text).comments) {
    code += text.slice(end, comment.start);
    end = comment.end;
  }
  return code + text.slice(end);
}

export interface Module {
  readonly path: string;
  readonly program: Syntax;
  readonly text: string;
  parentOf(node: Syntax): Syntax | null;
  nodes(type: string): readonly Syntax[];
}

function moduleOf(path: string, text: string): Module {
  const { program, errors } = parseSync(path, text);
  const [error] = errors;
  if (error !== undefined || !isSyntax(program)) throw new SyntaxError(`${path}: ${error?.message ?? 'no program'}`);
  const parents = new Map<Syntax, Syntax>();
  const byType = new Map<string, Syntax[]>();
  const enter = (value: unknown, parent: Syntax | null): void => {
    if (Array.isArray(value)) for (const item of value) enter(item, parent);
    if (!isSyntax(value)) return;
    if (parent !== null) parents.set(value, parent);
    const same = byType.get(value.type);
    if (same === undefined) byType.set(value.type, [value]);
    else same.push(value);
    for (const member of Object.values(value)) if (typeof member === 'object') enter(member, value);
  };
  enter(program, null);
  return {
    path,
    program,
    text,
    parentOf: (node) => parents.get(node) ?? null,
    nodes: (type) => byType.get(type) ?? [],
  };
}

export interface Place {
  readonly module: Module;
  readonly node: Syntax;
  /** For functions that were entered from one call: that call, so that parameters are its arguments. */
  readonly calls?: ReadonlyMap<Syntax, Place> | undefined;
}

export interface Sources {
  /** Returns the modules whose text the expression matches, and which hold `beside` as well. */
  holding(pattern: RegExp, beside?: string): readonly Module[];
  /** Returns the nodes of a type in those modules. */
  nodes(pattern: RegExp, type: string): readonly Place[];
  /** Returns the module that an import of this module names; null for a package. */
  imported(from: Module, specifier: string): Module | null;
}

const PRODUCT = /^(core|adapters|projections|workflows|apps)\//;

export function sourcesOf(tree: SourceTree): Sources {
  const texts = new Map([...modulesOf(tree)].filter(([path]) => PRODUCT.test(path)));
  const parsed = new Map<string, Module>();
  const moduleAt = (path: string): Module | null => {
    const text = texts.get(path);
    if (text === undefined) return null;
    const module = parsed.get(path) ?? moduleOf(path, text);
    parsed.set(path, module);
    return module;
  };
  const holding = (pattern: RegExp, beside = ''): readonly Module[] =>
    [...texts].flatMap(([path, text]) => {
      const module = text.includes(beside) && pattern.test(text) ? moduleAt(path) : null;
      return module === null ? [] : [module];
    });
  return {
    holding,
    nodes: (pattern, type) =>
      holding(pattern).flatMap((module) => module.nodes(type).map((node) => ({ module, node }))),
    imported: (from, specifier) =>
      specifier.startsWith('.') ? moduleAt(posix.join(posix.dirname(from.path), specifier)) : null,
  };
}

export function productSources(): Sources {
  return sourcesOf(projectTree());
}
