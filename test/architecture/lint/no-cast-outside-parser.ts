/**
 * A lint rule: a cast claims what the compiler cannot see, so it stands only where the claim was just checked.
 * That is in a function named `parse…` or `decode…`, in the one named after the type it makes (`objectId` makes
 * an `ObjectId`), or in a constant at the top of a module. `as const` claims nothing and is free.
 *
 * Must stay true: a cast of a cast (`as unknown as T`) is refused everywhere, parsers included.
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
}

interface RuleContext {
  report(problem: { readonly node: SyntaxNode; readonly message: string }): void;
}

const PARSER_NAME = /^(parse|decode)(?![a-z])/;
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

const rule = {
  create(context: RuleContext) {
    return {
      TSAsExpression(node: SyntaxNode) {
        const type = node.typeAnnotation?.typeName?.name ?? '';
        if (type === 'const') return;
        if (node.expression?.type === 'TSAsExpression') {
          context.report({ node, message: 'A cast of a cast hides that the types have nothing in common' });
          return;
        }
        const functions = enclosingFunctions(node);
        if (functions.length === 0) return;
        const named = functions.find((name) => name !== undefined);
        if (named !== undefined && (PARSER_NAME.test(named) || makes(named, type))) return;
        const place = `a function parse…, decode… or ${type === '' ? 'one named after the type' : `${type[0]?.toLowerCase()}${type.slice(1)}`}`;
        context.report({ node, message: `An unchecked cast outside a parser: move it into ${place}` });
      },
    };
  },
};

export default { meta: { name: 'strata' }, rules: { 'no-cast-outside-parser': rule } };
