/**
 * Says where code decides what a text names by itself: core/use-cases/reading/resolve-ref.ts alone does, so that a text
 * has one meaning on every surface.
 *
 * Invariants: as in all rules here, only syntax is read. So the rule knows a resolver by what every one needs: a look
 * into a repository's refs by a name, or a full name made of parts.
 */
interface SyntaxNode {
  readonly type: string;
  readonly name?: string;
  readonly callee?: SyntaxNode;
  readonly object?: SyntaxNode;
  readonly property?: SyntaxNode;
  readonly expression?: SyntaxNode;
  readonly computed?: boolean;
  readonly optional?: boolean;
  readonly operator?: string;
  readonly left?: SyntaxNode;
  readonly value?: unknown;
  readonly quasis?: readonly { readonly value: { readonly cooked?: string | null } }[];
  readonly expressions?: readonly SyntaxNode[];
  readonly imported?: SyntaxNode;
}

interface RuleContext {
  report(problem: { readonly node: SyntaxNode; readonly message: string }): void;
}

const LOOKS = new Set(['get', 'has']);
/** What makes a ref's or a branch's name of a text: core/git/ref-name.ts. */
const PARSERS = new Set(['parseRefName', 'parseBranchName', 'refName']);
const FULL_NAME = /^refs\//;

/** The name of a variable or a member, such as `refs` for `entity.state.refs`. */
function lastName(node: SyntaxNode | undefined): unknown {
  if (node?.type === 'Identifier') return node.name;
  if (node?.type === 'ChainExpression' || node?.type === 'TSNonNullExpression') return lastName(node.expression);
  if (node?.type !== 'MemberExpression') return undefined;
  return node.computed === true ? node.property?.value : node.property?.name;
}

export const resolveRefsInOnePlace = {
  create(context: RuleContext) {
    const report = (node: SyntaxNode, what: string): void =>
      context.report({ node, message: `${what}: resolve-ref.ts alone says what a text names` });
    return {
      MemberExpression(node: SyntaxNode) {
        const looks = LOOKS.has(String(lastName(node)));
        if (looks && lastName(node.object) === 'refs') report(node, 'A look into the refs by a name');
      },
      ImportSpecifier(node: SyntaxNode) {
        if (PARSERS.has(node.imported?.name ?? '')) report(node, 'A parser of names of refs');
      },
      TemplateLiteral(node: SyntaxNode) {
        const isMade = (node.expressions ?? []).length > 0;
        if (isMade && FULL_NAME.test(node.quasis?.[0]?.value.cooked ?? '')) report(node, 'A full name made of parts');
      },
      BinaryExpression(node: SyntaxNode) {
        const start = node.left?.value;
        const isMade = node.operator === '+' && typeof start === 'string';
        if (isMade && FULL_NAME.test(start)) report(node, 'A full name made of parts');
      },
    };
  },
};
