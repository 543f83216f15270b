/**
 * Evaluates expressions of the source as far as they are constant: from a literal, through constants, imports,
 * parameters and their callers, to the texts that a name can be.
 *
 * Invariants: a part that is not constant becomes `{}`, never an empty text. It follows what a name means, not how it
 * is called or in which file it stands, so that renaming a function or moving a file changes no result.
 */
import {
  child,
  children,
  isSyntax,
  type Module,
  nameOf,
  type Place,
  propertyNamed,
  type Sources,
  type Syntax,
} from './syntax.ts';

/** What stands for a part that is known only at run time. */
export const OPEN = '{}';

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);
const WRAPPERS = new Set([
  'TSAsExpression',
  'TSSatisfiesExpression',
  'TSNonNullExpression',
  'ParenthesizedExpression',
  'AwaitExpression',
  'ChainExpression',
]);
const ITERATIONS = new Set(['map', 'flatMap', 'forEach', 'filter', 'find']);
const DEPTH_MAX = 40;
/** An expression that takes more is no name: names are constants that few functions hand on. */
const STEPS_MAX = 2_000;
/** A method that more places call than this is no carrier of names: `read` or `put` are words of many objects. */
const CALLS_MAX = 60;

type Binding =
  | { readonly kind: 'value'; readonly of: Place; readonly key: string | null }
  | { readonly kind: 'element'; readonly of: Place; readonly key: string | null }
  | { readonly kind: 'parameter'; readonly of: Place; readonly index: number; readonly key: string | null }
  | { readonly kind: 'function'; readonly of: Place }
  | { readonly kind: 'import'; readonly specifier: string; readonly name: string };

/** Finds a name in a pattern. Returns the member that it takes, or null for the whole value; undefined if absent. */
function inPattern(pattern: Syntax | null, name: string): string | null | undefined {
  if (pattern?.type === 'AssignmentPattern') return inPattern(child(pattern, 'left'), name);
  if (pattern?.type === 'TSParameterProperty') return inPattern(child(pattern, 'parameter'), name);
  if (pattern?.type === 'Identifier') return pattern['name'] === name ? null : undefined;
  if (pattern?.type !== 'ObjectPattern') return undefined;
  const found = children(pattern, 'properties').find((property) => inPattern(child(property, 'value'), name) === null);
  return found === undefined ? undefined : nameOf(child(found, 'key'));
}

function inStatement(module: Module, statement: Syntax, name: string): Binding | null {
  if (statement.type.startsWith('Export')) {
    const declared = child(statement, 'declaration');
    return declared === null ? null : inStatement(module, declared, name);
  }
  if (statement.type === 'FunctionDeclaration' && nameOf(child(statement, 'id')) === name) {
    return { kind: 'function', of: { module, node: statement } };
  }
  if (statement.type === 'ImportDeclaration') {
    const found = children(statement, 'specifiers').find((item) => nameOf(child(item, 'local')) === name);
    const [imported, specifier] = [nameOf(child(found ?? null, 'imported')), nameOf(child(statement, 'source'))];
    return imported === null || specifier === null ? null : { kind: 'import', specifier, name: imported };
  }
  if (statement.type !== 'VariableDeclaration') return null;
  for (const declarator of children(statement, 'declarations')) {
    const [key, init] = [inPattern(child(declarator, 'id'), name), child(declarator, 'init')];
    if (key !== undefined && init !== null) return { kind: 'value', of: { module, node: init }, key };
  }
  return null;
}

function bindingIn(module: Module, scope: Syntax, name: string): Binding | null {
  if (FUNCTIONS.has(scope.type)) {
    for (const [index, parameter] of children(scope, 'params').entries()) {
      const key = inPattern(parameter, name);
      if (key !== undefined) return { kind: 'parameter', of: { module, node: scope }, index, key };
    }
  }
  if (scope.type === 'ForOfStatement') {
    const [declared] = children(child(scope, 'left'), 'declarations');
    const [key, list] = [inPattern(child(declared ?? null, 'id'), name), child(scope, 'right')];
    if (key !== undefined && list !== null) return { kind: 'element', of: { module, node: list }, key };
  }
  if (scope.type !== 'Program' && scope.type !== 'BlockStatement') return null;
  for (const statement of children(scope, 'body')) {
    const found = inStatement(module, statement, name);
    if (found !== null) return found;
  }
  return null;
}

export interface Values {
  /** Returns the texts that an expression can be, sorted. */
  of(place: Place): readonly string[];
  /** Does what `of` does, without what callers pass: the parts that a function adds itself. */
  shapeOf(place: Place): readonly string[];
  /** Returns what the members of this name can be, of the object that an expression is. */
  ofMember(place: Place, key: string): readonly string[];
  /** Returns the literal texts of a type. */
  ofType(place: Place): readonly string[];
  /** Returns the declarations of a type or an interface that a reference names. */
  declared(place: Place, name: string): Place | null;
}

export function createValues(sources: Sources): Values {
  let fuel = STEPS_MAX;
  let toCallers = true;
  /** Parameters whose callers are being followed: a function that calls itself adds nothing. */
  const following = new Set<Syntax>();
  const lookup = ({ module, node }: Place, name: string): Binding | null => {
    for (let scope = module.parentOf(node); scope !== null; scope = module.parentOf(scope)) {
      const found = bindingIn(module, scope, name);
      if (found?.kind === 'import') {
        const target = sources.imported(module, found.specifier);
        if (target === null) return found;
        return bindingIn(target, target.program, found.name) ?? found;
      }
      if (found !== null) return found;
    }
    return null;
  };

  /** The name by which callers know a function, and whether they reach it through an object. */
  const calledAs = ({ module, node }: Place): { readonly name: string; readonly member: boolean } | null => {
    const own = nameOf(child(node, 'id'));
    if (own !== null) return { name: own, member: false };
    const parent = module.parentOf(node);
    const key = nameOf(child(parent, parent?.type === 'VariableDeclarator' ? 'id' : 'key'));
    return key === null ? null : { name: key, member: parent?.type !== 'VariableDeclarator' };
  };

  const calls = new Map<Syntax, readonly Place[]>();
  const callsOf = (place: Place): readonly Place[] => {
    const known = calls.get(place.node) ?? findCalls(place);
    calls.set(place.node, known);
    return known;
  };
  const findCalls = (place: Place): readonly Place[] => {
    const called = calledAs(place);
    if (called === null) return [];
    const pattern = new RegExp(`(?<![\\w$])${called.name.replaceAll('$', '\\$')}(\\?\\.)?[(<]`);
    const places = sources
      .holding(pattern, called.name)
      .flatMap((module) => module.nodes('CallExpression').map((node) => ({ module, node })));
    return places.filter(({ module, node }) => {
      const callee = child(node, 'callee');
      if (callee?.type === 'MemberExpression')
        return called.member && nameOf(child(callee, 'property')) === called.name;
      if (callee?.type !== 'Identifier' || callee['name'] !== called.name) return false;
      const binding = lookup({ module, node }, called.name);
      if (binding?.kind === 'function' || binding?.kind === 'value') return binding.of.node === place.node;
      return called.member && binding?.kind !== 'import';
    });
  };

  /** Returns the arguments that callers pass for a parameter, its default among them. */
  const argumentsFor = (place: Place, index: number): readonly Place[] => {
    const { module, node } = place;
    const call = place.calls?.get(node);
    if (call !== undefined) return argumentOf(call, index);
    if (!toCallers) return [];
    const parent = module.parentOf(node);
    const callee = child(parent, 'callee');
    if (parent?.type === 'CallExpression' && ITERATIONS.has(nameOf(child(callee, 'property')) ?? '')) {
      const list = child(callee, 'object');
      return list === null || index > 0 ? [] : elementsOf({ module, node: list }, 0);
    }
    const callers = callsOf(place);
    const parameter = children(node, 'params')[index];
    if (parameter === undefined || callers.length > CALLS_MAX) return [];
    const passed = callers.flatMap((each) => argumentOf(each, index));
    const otherwise = parameter.type === 'AssignmentPattern' ? child(parameter, 'right') : null;
    return otherwise === null ? passed : [...passed, { module, node: otherwise }];
  };

  const argumentOf = (call: Place, index: number): readonly Place[] => {
    const argument = children(call.node, 'arguments')[index];
    return argument === undefined ? [] : [{ ...call, node: argument }];
  };

  /** Follows names to the expressions that they stand for. */
  const expressionsOf = (place: Place, depth: number): readonly Place[] => {
    const { node } = place;
    fuel -= 1;
    if (depth > DEPTH_MAX || fuel < 0) return [];
    if (WRAPPERS.has(node.type)) {
      const inner = child(node, node.type === 'AwaitExpression' ? 'argument' : 'expression');
      return inner === null ? [] : expressionsOf({ ...place, node: inner }, depth + 1);
    }
    const branches = node.type === 'ConditionalExpression' ? ['consequent', 'alternate'] : ['left', 'right'];
    if (node.type === 'ConditionalExpression' || node.type === 'LogicalExpression') {
      return branches.flatMap((branch) => {
        const part = child(node, branch);
        return part === null ? [] : expressionsOf({ ...place, node: part }, depth + 1);
      });
    }
    if (node.type === 'MemberExpression') {
      const [object, key] = [child(node, 'object'), nameOf(child(node, 'property'))];
      return object === null || key === null ? [] : membersOf({ ...place, node: object }, key, depth + 1);
    }
    if (node.type === 'CallExpression') return returnsOf(place, depth + 1);
    if (node.type !== 'Identifier') return [place];
    const binding = lookup(place, String(node['name']));
    return binding === null ? [] : bound(binding, place.calls, depth + 1);
  };

  const bound = (binding: Binding, entered: Place['calls'], depth: number): readonly Place[] => {
    if (binding.kind === 'import') return [];
    const of = { ...binding.of, calls: entered };
    if (binding.kind === 'function') return [of];
    const found =
      binding.kind === 'value'
        ? [of]
        : binding.kind === 'element'
          ? elementsOf(of, depth)
          : argumentsFor(of, binding.index);
    const { key } = binding;
    const mark = binding.kind === 'parameter' ? (children(of.node, 'params')[binding.index] ?? of.node) : of.node;
    if (following.has(mark)) return [];
    following.add(mark);
    const values = found.flatMap((value) =>
      key === null ? expressionsOf(value, depth + 1) : membersOf(value, key, depth + 1),
    );
    following.delete(mark);
    return values;
  };

  const membersOf = (place: Place, key: string, depth: number): readonly Place[] =>
    expressionsOf(place, depth).flatMap((found) => {
      const value = found.node.type === 'ObjectExpression' ? propertyNamed(found.node, key) : null;
      return value === null ? [] : expressionsOf({ ...found, node: value }, depth + 1);
    });

  const elementsOf = (place: Place, depth: number): readonly Place[] =>
    expressionsOf(place, depth).flatMap((found) =>
      found.node.type === 'ArrayExpression'
        ? children(found.node, 'elements').flatMap((element) => expressionsOf({ ...found, node: element }, depth + 1))
        : [],
    );

  /** Returns what a call returns, if its function is written in the source; else the call. */
  const returnsOf = (place: Place, depth: number): readonly Place[] => {
    const callee = child(place.node, 'callee');
    const binding = callee?.type === 'Identifier' ? lookup(place, String(callee['name'])) : null;
    if (binding?.kind !== 'function') return [place];
    const { module, node } = binding.of;
    const entered = new Map([...(place.calls ?? []), [node, place] as const]);
    const returned = module.nodes('ReturnStatement').filter((statement) => functionAround(module, statement) === node);
    return returned.flatMap((statement) => {
      const argument = child(statement, 'argument');
      return argument === null ? [] : expressionsOf({ module, node: argument, calls: entered }, depth + 1);
    });
  };

  const functionAround = (module: Module, node: Syntax): Syntax | null => {
    let around = module.parentOf(node);
    while (around !== null && !FUNCTIONS.has(around.type)) around = module.parentOf(around);
    return around;
  };

  const texts = (place: Place, depth: number): readonly string[] => {
    const found = expressionsOf(place, depth);
    return found.length === 0 ? [OPEN] : [...new Set(found.flatMap((expression) => textsOf(expression, depth + 1)))];
  };

  const textsOf = (place: Place, depth: number): readonly string[] => {
    const { node } = place;
    if (depth > DEPTH_MAX) return [OPEN];
    if (node.type === 'Literal') {
      const { value } = node;
      return typeof value === 'string' || typeof value === 'number' ? [String(value)] : [OPEN];
    }
    const part = (inner: Syntax | null) => (inner === null ? [OPEN] : texts({ ...place, node: inner }, depth + 1));
    if (node.type === 'BinaryExpression' && node['operator'] === '+') {
      return joined([part(child(node, 'left')), part(child(node, 'right'))]);
    }
    if (node.type === 'TemplateLiteral') {
      const values = children(node, 'expressions').map(part);
      const parts = quasisOf(node).flatMap((quasi, at) => [[quasi], ...(values[at] === undefined ? [] : [values[at]])]);
      return joined(parts);
    }
    // `Buffer.from(text)` and branded constructors such as `layerKey(text)` pass their text through.
    const [first] = children(node, 'arguments');
    const callee = child(node, 'callee');
    const passes = callee?.type === 'Identifier' || nameOf(child(callee, 'object')) === 'Buffer';
    if (node.type === 'CallExpression' && passes && first !== undefined)
      return texts({ ...place, node: first }, depth + 1);
    return [OPEN];
  };

  const declared = (place: Place, name: string): Place | null => {
    const types = (module: Module) => [
      ...module.nodes('TSTypeAliasDeclaration'),
      ...module.nodes('TSInterfaceDeclaration'),
    ];
    const own = types(place.module).find((type) => nameOf(child(type, 'id')) === name);
    if (own !== undefined) return { module: place.module, node: own };
    for (const statement of place.module.nodes('ImportDeclaration')) {
      const found = children(statement, 'specifiers').find((item) => nameOf(child(item, 'local')) === name);
      const target =
        found === undefined ? null : sources.imported(place.module, nameOf(child(statement, 'source')) ?? '');
      const type =
        target && types(target).find((item) => nameOf(child(item, 'id')) === nameOf(child(found ?? null, 'imported')));
      if (target && type) return { module: target, node: type };
    }
    return null;
  };

  const ofType = ({ module, node }: Place): readonly string[] => {
    const inner = (member: string) => {
      const type = child(node, member);
      return type === null ? [] : ofType({ module, node: type });
    };
    switch (node.type) {
      case 'TSLiteralType': {
        const literal = nameOf(child(node, 'literal'));
        return literal === null ? [] : [literal];
      }
      case 'TSUnionType':
        return children(node, 'types').flatMap((type) => ofType({ module, node: type }));
      case 'TSTypeAnnotation':
      case 'TSTypeAliasDeclaration':
      case 'TSParenthesizedType':
      case 'TSTypeOperator':
        return inner('typeAnnotation');
      case 'TSIndexedAccessType':
        return indexed(module, node);
      case 'TSTypeReference': {
        const target = declared({ module, node }, nameOf(child(node, 'typeName')) ?? '');
        return target === null ? [] : ofType(target);
      }
      default:
        return [];
    }
  };

  /** The values of `(typeof LIST)[number]` and `Type['member']`. */
  const indexed = (module: Module, node: Syntax): readonly string[] => {
    let object = child(node, 'objectType');
    if (object?.type === 'TSParenthesizedType') object = child(object, 'typeAnnotation');
    if (object === null) return [];
    const listed = object.type === 'TSTypeQuery' ? child(object, 'exprName') : null;
    if (listed !== null) return elementsOf({ module, node: listed }, 0).flatMap((element) => textsOf(element, 0));
    const key = nameOf(child(child(node, 'indexType'), 'literal'));
    return variantsOf({ module, node: object }).flatMap((variant) => {
      const member = children(variant.node, 'members').find((item) => nameOf(child(item, 'key')) === key);
      const type = child(member ?? null, 'typeAnnotation');
      return type === null ? [] : ofType({ module: variant.module, node: type });
    });
  };

  const variantsOf = ({ module, node }: Place): readonly Place[] => {
    if (node.type === 'TSTypeLiteral' || node.type === 'TSInterfaceBody') return [{ module, node }];
    const parts = node.type === 'TSUnionType' ? children(node, 'types') : [];
    if (node.type === 'TSTypeReference') {
      const target = declared({ module, node }, nameOf(child(node, 'typeName')) ?? '');
      const body = target && (child(target.node, 'body') ?? child(target.node, 'typeAnnotation'));
      return target && body ? variantsOf({ module: target.module, node: body }) : [];
    }
    return parts.flatMap((part) => variantsOf({ module, node: part }));
  };

  return {
    of: (place) => {
      fuel = STEPS_MAX;
      const found = texts(place, 0);
      return fuel < 0 ? [OPEN] : [...found].sort();
    },
    shapeOf: (place) => {
      [fuel, toCallers] = [STEPS_MAX, false];
      const found = [...texts(place, 0)].sort();
      toCallers = true;
      return found;
    },
    ofMember: (place, key) => {
      fuel = STEPS_MAX;
      return membersOf(place, key, 0).flatMap((found) => textsOf(found, 0));
    },
    ofType: (place) => [...new Set(ofType(place))].sort(),
    declared,
  };
}

function quasisOf(template: Syntax): readonly string[] {
  const cooked = (quasi: unknown): string => {
    const value = isSyntax(quasi) ? quasi['value'] : null;
    return typeof value === 'object' && value !== null && 'cooked' in value ? String(value.cooked) : '';
  };
  const { quasis } = template;
  return Array.isArray(quasis) ? quasis.map(cooked) : [];
}

/** Returns every text that the parts make together, in order. */
function joined(parts: readonly (readonly string[])[]): readonly string[] {
  return parts.reduce<readonly string[]>(
    (starts, ends) => starts.flatMap((start) => ends.map((end) => start + end)),
    [''],
  );
}
