/**
 * The lint rule that a promise gets its handler before anything else can end or suspend the function. A promise that
 * rejects without a handler ends the process, and a client that disconnects early can choose that moment.
 *
 * Invariants: the rule reads only syntax. It takes for a promise what the function later awaits, passes to
 * Promise.all and the like, or declares as `Promise<…>`. A promise that is passed on, returned or stored is the
 * receiver's to handle. The rule reads the source from top to bottom, branches one after the other.
 */

/** The parts of an ESTree node that this rule reads. */
export interface PromiseNode {
  readonly type: string;
  readonly name?: string;
  readonly await?: boolean;
  readonly id?: PromiseNode | null;
  readonly init?: PromiseNode | null;
  readonly params?: readonly PromiseNode[];
  readonly body?: PromiseNode | readonly PromiseNode[];
  readonly argument?: PromiseNode | null;
  readonly callee?: PromiseNode;
  readonly arguments?: readonly PromiseNode[];
  readonly elements?: readonly (PromiseNode | null)[];
  readonly object?: PromiseNode;
  readonly property?: PromiseNode;
  readonly typeAnnotation?: PromiseNode | null;
  readonly typeName?: PromiseNode;
  readonly typeArguments?: PromiseNode | null;
}

interface PromiseContext {
  readonly sourceCode: { readonly visitorKeys: Readonly<Record<string, readonly string[]>> };
  report(problem: { readonly node: PromiseNode; readonly message: string }): void;
}

type Step =
  | { readonly kind: 'begins'; readonly name: string; readonly node: PromiseNode; readonly declared: boolean }
  /** `certain` if only a promise can be used this way. */
  | { readonly kind: 'handled'; readonly name: string; readonly certain: boolean }
  /** The code after this step may run late, or never. */
  | { readonly kind: 'leaves' };

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);
const LEAVING = new Set(['AwaitExpression', 'YieldExpression', 'ThrowStatement', 'ReturnStatement']);
/** Promise.all and the like attach a handler to each of their arguments. */
const COMBINATORS = new Set(['all', 'allSettled', 'any', 'race']);

/** Returns the name of the called method; undefined for a plain function. */
function methodOf(call: PromiseNode): string | undefined {
  return call.callee?.type === 'MemberExpression' ? call.callee.property?.name : undefined;
}

function isCombinator(call: PromiseNode): boolean {
  return call.callee?.object?.name === 'Promise' && COMBINATORS.has(methodOf(call) ?? '');
}

/** `x.catch(f)` and `x.then(f, g)`. */
function takesRejection(call: PromiseNode): boolean {
  const method = methodOf(call);
  return method === 'catch' || (method === 'then' && call.arguments?.length === 2);
}

function isUnawaitedCall(node: PromiseNode): boolean {
  return node.type === 'CallExpression' && !takesRejection(node);
}

/** Matches `new Promise((resolve, reject) => …)`; a promise without `reject` never rejects. */
function makesRejectable(node: PromiseNode): boolean {
  return node.type === 'NewExpression' && node.callee?.name === 'Promise' && node.arguments?.[0]?.params?.length === 2;
}

/** `Promise<never>` only ends other waits early. Its creator handles it, since possibly nobody awaits it. */
function isPromiseType(node: PromiseNode | null | undefined): boolean {
  const type = node?.typeAnnotation?.typeAnnotation;
  return type?.typeName?.name === 'Promise' && type.typeArguments?.params?.[0]?.type !== 'TSNeverKeyword';
}

/** Reads one function in the order of its source; nested functions are read separately. */
class FunctionReader {
  readonly steps: Step[] = [];
  readonly #keys: PromiseContext['sourceCode']['visitorKeys'];

  constructor(keys: PromiseContext['sourceCode']['visitorKeys']) {
    this.#keys = keys;
  }

  read(node: PromiseNode): void {
    if (FUNCTIONS.has(node.type)) return;
    for (const child of this.#children(node)) this.read(child);
    if (node.type === 'VariableDeclarator') this.#declared(node);
    if (node.type === 'CallExpression') this.#called(node);
    if (node.type === 'AwaitExpression' || node.type === 'ReturnStatement') {
      this.#used(node.argument, node.type === 'AwaitExpression');
    }
    if (node.type === 'ForOfStatement' && node.await === true) this.steps.push({ kind: 'leaves' });
    if (LEAVING.has(node.type)) this.steps.push({ kind: 'leaves' });
    // A stored promise is handled by the code that reads it.
    for (const kept of this.#stored(node)) this.#used(kept, false);
  }

  begins(node: PromiseNode, declared: boolean): void {
    if (node.name !== undefined) this.steps.push({ kind: 'begins', name: node.name, node, declared });
  }

  #declared({ id, init }: PromiseNode): void {
    if (id?.type !== 'Identifier' || init == null || !(isUnawaitedCall(init) || makesRejectable(init))) return;
    this.begins(id, isPromiseType(id));
  }

  #called(call: PromiseNode): void {
    if (takesRejection(call)) this.#used(call.callee?.object, true);
    if (methodOf(call) === 'throwIfAborted') this.steps.push({ kind: 'leaves' });
    for (const argument of call.arguments ?? []) {
      const given = argument.type === 'ArrayExpression' ? (argument.elements ?? []) : [argument];
      for (const one of given) this.#used(one?.type === 'SpreadElement' ? one.argument : one, isCombinator(call));
    }
  }

  #used(node: PromiseNode | null | undefined, certain: boolean): void {
    if (node?.type === 'Identifier' && node.name !== undefined) {
      this.steps.push({ kind: 'handled', name: node.name, certain });
    }
  }

  #stored(node: PromiseNode): readonly PromiseNode[] {
    const storing = ['AssignmentExpression', 'Property', 'ArrayExpression', 'NewExpression'].includes(node.type);
    return storing ? this.#children(node) : [];
  }

  #children(node: PromiseNode): PromiseNode[] {
    const parts = (this.#keys[node.type] ?? []).map((key): unknown => Reflect.get(node, key));
    return parts.flat().filter((part): part is PromiseNode => typeof part === 'object' && part !== null);
  }
}

/** Returns the promises of a function that have no handler at a point where the function may end or wait. */
function unhandledAtExit(steps: readonly Step[]): PromiseNode[] {
  return steps.flatMap((step, index) => {
    if (step.kind !== 'begins') return [];
    const later = steps.slice(index + 1);
    const isHandled = (other: Step) => other.kind === 'handled' && other.name === step.name;
    const first = later.findIndex(isHandled);
    const isPromise = step.declared || later.some((other) => isHandled(other) && 'certain' in other && other.certain);
    const isLate = first > 0 && later.slice(0, first).some(({ kind }) => kind === 'leaves');
    return isPromise && isLate ? [step.node] : [];
  });
}

export const handlePromisesAtOnce = {
  create(context: PromiseContext) {
    const check = (node: PromiseNode) => {
      const reader = new FunctionReader(context.sourceCode.visitorKeys);
      for (const parameter of node.params ?? []) if (isPromiseType(parameter)) reader.begins(parameter, true);
      for (const part of [node.body ?? []].flat()) reader.read(part);
      for (const { name, ...place } of unhandledAtExit(reader.steps)) {
        const message = `${name} can reject before it has a handler: await it, or attach catch(), before anything else`;
        context.report({ node: place, message });
      }
    };
    return { FunctionDeclaration: check, FunctionExpression: check, ArrowFunctionExpression: check };
  },
};
