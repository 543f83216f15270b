/**
 * Lint rules of this project, loaded by oxlint (.oxlintrc.json).
 *
 * Must stay true: rules look at syntax only, so that they say the same in an editor and in `npm run check`.
 */

/** The part of an ESTree node that this rule looks at. */
interface SyntaxNode {
  readonly type: string;
  readonly parent?: SyntaxNode | null;
  readonly name?: string;
  readonly id?: SyntaxNode | null;
  readonly key?: SyntaxNode;
  readonly expression?: SyntaxNode;
  readonly typeAnnotation?: SyntaxNode;
  readonly typeName?: SyntaxNode;
  readonly callee?: SyntaxNode;
  readonly arguments?: readonly SyntaxNode[];
}

interface RuleContext {
  report(problem: { readonly node: SyntaxNode; readonly message: string }): void;
}

const PARSER_NAME = /^(parse|decode|read)(?![a-z])/;
const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);

/** The name a function goes by: its own, or that of the constant, method or property that holds it. */
function functionName(node: SyntaxNode): string | undefined {
  return node.id?.name ?? node.parent?.id?.name ?? node.parent?.key?.name;
}

/** The names of the functions around a node, innermost first; undefined for those without one. */
function enclosingFunctions(node: SyntaxNode): (string | undefined)[] {
  const names: (string | undefined)[] = [];
  for (let at = node.parent; at; at = at.parent) {
    if (FUNCTIONS.has(at.type)) names.push(functionName(at));
  }
  return names;
}

function makes(functionOf: string, type: string): boolean {
  return functionOf !== type && functionOf.toLowerCase() === type.toLowerCase();
}

/**
 * A cast claims what the compiler cannot see, so it stands only where the claim was just checked: in a function
 * named `parse…`, `decode…` or `read…`, in the one named after the type it makes (`objectId` makes an `ObjectId`),
 * or in a constant at the top of a module. `as const` claims nothing and is free.
 */
const noCastOutsideParser = {
  create(context: RuleContext) {
    return {
      TSAsExpression(node: SyntaxNode) {
        const type = node.typeAnnotation?.typeName?.name ?? '';
        const functions = enclosingFunctions(node);
        if (type === 'const' || functions.length === 0) return;
        const named = functions.find((name) => name !== undefined);
        if (named !== undefined && (PARSER_NAME.test(named) || makes(named, type))) return;
        const maker = type === '' ? 'named after the type' : `${type[0]?.toLowerCase()}${type.slice(1)}`;
        const message = `An unchecked cast outside a parser: move it into a function parse…, read… or ${maker}`;
        context.report({ node, message });
      },
    };
  },
};

/** `as unknown as T` says that the types have nothing in common: not even a parser may claim that. */
const noCastOfCast = {
  create(context: RuleContext) {
    return {
      TSAsExpression(node: SyntaxNode) {
        if (node.expression?.type !== 'TSAsExpression') return;
        context.report({ node, message: 'A cast of a cast: check the value, or make its type say what it is' });
      },
    };
  },
};

/** `new Date()` reads the machine's clock; `new Date(value)` only computes. */
const noCurrentDate = {
  create(context: RuleContext) {
    return {
      NewExpression(node: SyntaxNode) {
        if (node.callee?.name !== 'Date' || node.arguments?.length !== 0) return;
        context.report({ node, message: 'Time comes into core as data: core/ports/clock.ts' });
      },
    };
  },
};

export default {
  meta: { name: 'strata' },
  rules: {
    'no-cast-of-cast': noCastOfCast,
    'no-cast-outside-parser': noCastOutsideParser,
    'no-current-date': noCurrentDate,
  },
};
