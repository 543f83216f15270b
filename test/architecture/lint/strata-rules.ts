/**
 * Lint rules of this project, loaded by oxlint (.oxlintrc.json).
 *
 * Invariants: the rules read only syntax, so that an editor and `npm run check` report the same.
 */
import { keepObjectIdLengthInOnePlace } from './object-id-lengths.ts';
import { fitCommentsInLines, usePlainWordsInComments, usePlainWordsInTexts } from './plain-words.ts';
import { handlePromisesAtOnce } from './promise-handlers.ts';
import { resolveRefsInOnePlace } from './ref-resolvers.ts';
import { placeValuesSafely } from './template-values.ts';

/** The parts of an ESTree node that these rules read. */
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
  readonly property?: SyntaxNode;
  readonly computed?: boolean;
  readonly value?: unknown;
}

interface RuleContext {
  report(problem: { readonly node: SyntaxNode; readonly message: string }): void;
}

const PARSER_NAME = /^(parse|decode|read)(?![a-z])/;
const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);

/** Returns a function's own name, or the name of the constant, method or property that holds it. */
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
 * A cast claims what the compiler cannot check. So it is allowed only where code has just checked the claim: in a
 * function named `parse…`, `decode…` or `read…`, in a function named after the type it makes (`objectId` makes an
 * `ObjectId`), or in a constant at the top of a module. `as const` claims nothing and is always allowed.
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

/** `as unknown as T` casts between unrelated types, which is not allowed even in a parser. */
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

/** The parts of the shared context that use cases read: apps/front-door/handler-context.ts. */
const READ_BY_USE_CASES = new Set(['entities', 'objects', 'readModels']);

/** The name of a member or of a key in a pattern; undefined for one that is computed. */
function memberName(name: SyntaxNode | undefined, computed: boolean | undefined): unknown {
  return computed === true || name?.type === 'Literal' ? name?.value : name?.name;
}

/**
 * A handler of the REST API or of a page only translates between HTTP and use cases. It passes its context on, and
 * reads no entity, read model or Git object itself.
 */
const handlersOnlyTranslate = {
  create(context: RuleContext) {
    const check = (node: SyntaxNode, name: unknown): void => {
      if (typeof name !== 'string' || !READ_BY_USE_CASES.has(name)) return;
      context.report({ node, message: `A handler only translates: read ${name} in core/use-cases/` });
    };
    return {
      MemberExpression: (node: SyntaxNode) => check(node, memberName(node.property, node.computed)),
      Property(node: SyntaxNode) {
        if (node.parent?.type === 'ObjectPattern') check(node, memberName(node.key, node.computed));
      },
    };
  },
};

export default {
  meta: { name: 'strata' },
  rules: {
    'comments-fit-in-lines': fitCommentsInLines,
    'handlers-only-translate': handlersOnlyTranslate,
    'no-cast-of-cast': noCastOfCast,
    'no-cast-outside-parser': noCastOutsideParser,
    'no-current-date': noCurrentDate,
    'object-id-length-in-one-place': keepObjectIdLengthInOnePlace,
    'plain-words-in-comments': usePlainWordsInComments,
    'plain-words-in-texts': usePlainWordsInTexts,
    'promises-handled-at-once': handlePromisesAtOnce,
    'refs-resolved-in-one-place': resolveRefsInOnePlace,
    'templates-place-values-safely': placeValuesSafely,
  },
};
