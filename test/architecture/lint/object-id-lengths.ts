/**
 * Says where code knows by itself how long an object id is, or what it looks like: core/kernel/ids.ts alone does (and
 * apps/cli/commands/object-id.ts, for the command line), so that repositories of SHA-256 change one file.
 *
 * Invariants: as in all rules here, only syntax is read. So the rule refuses the numbers 20 and 40 only where they
 * measure text or bytes, and accepts them where they are named or count something else. 40 base62 digits are the
 * secret of a token, and no object id.
 */
interface SyntaxNode {
  readonly type: string;
  readonly name?: string;
  readonly value?: unknown;
  readonly regex?: { readonly pattern: string } | null;
  readonly callee?: SyntaxNode;
  readonly arguments?: readonly SyntaxNode[];
  readonly object?: SyntaxNode;
  readonly property?: SyntaxNode;
  readonly computed?: boolean;
  readonly operator?: string;
  readonly left?: SyntaxNode;
  readonly right?: SyntaxNode;
  readonly id?: SyntaxNode;
  readonly init?: SyntaxNode | null;
}

interface TemplatePart {
  readonly type: string;
  readonly value: { readonly raw: string };
}

interface RuleContext {
  report(problem: { readonly node: { readonly type: string }; readonly message: string }): void;
}

/** Bytes and hex digits of an id. */
const LENGTHS: readonly unknown[] = [20, 40];
const PATTERN = /(?<!\[0-9A-Za-z\])\{40\}/;
const WHOLE_ID = /^[0-9a-f]{40}$/i;
/** Names of constants such as `ID_BYTES`, `OBJECT_ID_LENGTH`, `CHECKSUM_BYTES` and `TRAILER_BYTES`. */
const LENGTH_NAME = /(^|_)(ID|CHECKSUM|TRAILER|HASH|SHA1?)_?(BYTES|DIGITS|LENGTH|SIZE)$/i;
/** Names of constants, which no number of rows has. */
const UNIT_NAME = /^[A-Z][A-Z\d_]*$/;
const MEASURING = new Set(['+', '-', '*', '/', '%', '<', '<=', '>', '>=', '===', '!==', '==', '!=']);
/** Methods whose first argument is a length. */
const MAKING = new Set(['repeat', 'padStart', 'padEnd', 'alloc', 'allocUnsafe', 'allocUnsafeSlow']);
const CUTTING = new Set(['slice', 'subarray', 'substring']);

function isLength(node: SyntaxNode | undefined): boolean {
  return node?.type === 'Literal' && LENGTHS.includes(node.value);
}

/** Whether an expression is made of numbers alone, or counts a unit: `20 * 60_000` and `20 * MINUTE_MS`. */
function isNumber(node: SyntaxNode | undefined): boolean {
  if (node?.type === 'BinaryExpression') {
    const isUnit = node.operator === '*' && node.right?.type === 'Identifier' && UNIT_NAME.test(node.right.name ?? '');
    return isNumber(node.left) && (isUnit || isNumber(node.right));
  }
  return node?.type === 'Literal' && typeof node.value === 'number';
}

/** Whether these arguments cut an id out of text or bytes, or cut it off: `(0, 40)`, `(41, 81)`, `(40)` and `(41)`. */
function cutsId(given: readonly SyntaxNode[]): boolean {
  const [start, end] = given.map(({ value }) => value);
  if (given.length === 1) return start === 40 || start === 41;
  return typeof start === 'number' && typeof end === 'number' && LENGTHS.includes(end - start);
}

export const keepObjectIdLengthInOnePlace = {
  create(context: RuleContext) {
    const report = (node: { readonly type: string }, what: string): void =>
      context.report({ node, message: `${what}: the kernel's ids.ts alone knows it` });
    return {
      Literal(node: SyntaxNode) {
        const text = node.regex?.pattern ?? node.value;
        if (typeof text !== 'string') return;
        if (PATTERN.test(text)) report(node, 'The pattern of an object id');
        if (WHOLE_ID.test(text)) report(node, 'An object id that every repository of SHA-1 has');
      },
      TemplateElement(node: TemplatePart) {
        if (PATTERN.test(node.value.raw)) report(node, 'The pattern of an object id');
      },
      VariableDeclarator({ id, init }: SyntaxNode) {
        if (init != null && isLength(init) && LENGTH_NAME.test(id?.name ?? ''))
          report(init, 'The length of an object id');
      },
      BinaryExpression(node: SyntaxNode) {
        const { operator = '', left, right } = node;
        const measures = MEASURING.has(operator) && (isLength(left) || isLength(right));
        if (measures && !isNumber(node)) report(node, 'The length of an object id, or a number without a name');
      },
      MemberExpression(node: SyntaxNode) {
        const at = node.computed === true ? node.property : undefined;
        if (at?.value === 40) report(node, 'The length of an object id');
      },
      CallExpression(node: SyntaxNode) {
        const method = node.callee?.property?.name ?? '';
        const given = node.arguments ?? [];
        const makes = MAKING.has(method) && isLength(given[0]);
        if (makes || (CUTTING.has(method) && cutsId(given))) report(node, 'The length of an object id');
      },
    };
  },
};
