/**
 * The lint rules that comments and sentences use words which any engineer reads once, and that comments fit the line.
 *
 * Invariants: each mark has a sample that the rule refuses. Names are no sentences, so
 * a text without a space is never looked at.
 */

interface Comment {
  readonly type: string;
  readonly value: string;
  readonly loc: { readonly start: { readonly column: number } };
}

interface TextNode {
  readonly type: string;
  readonly value?: unknown;
}

interface Context {
  readonly sourceCode: { getAllComments(): readonly Comment[] };
  report(problem: { readonly node: Comment | TextNode; readonly message: string }): void;
}

interface Mark {
  readonly mark: RegExp;
  readonly instead: string;
}

/** What the words mean, in those that a reader expects. */
const WORDS: readonly Mark[] = [
  { mark: /\bat once\b/i, instead: '"immediately" or "at the same time"' },
  { mark: /\bmeanwhile\b/i, instead: 'what happens first: "before that", "since", "until then"' },
  { mark: /(?<!\bthere )\b(?:is|are) none\b/i, instead: '"is not …", or "if there is none"' },
  { mark: /\bfor ever\b/i, instead: '"permanently", "never changes"' },
  { mark: /\bso many\b/i, instead: '"this many", or the number' },
  { mark: /\banew\b/i, instead: '"again"' },
  { mark: /\bof then\b/i, instead: '"of that time"' },
  { mark: /\bof now\b/i, instead: '"current"' },
];

/** How a comment begins that is no sentence. */
const BEGINNINGS: readonly Mark[] = [
  { mark: /^[ *]*Must stay true\b/m, instead: '"Invariants"' },
  { mark: /^\*?\s*Of (?!course)/, instead: 'a sentence, or the noun that the comment leaves out' },
  { mark: /^\*?\s*The same of\b/, instead: 'a sentence: "The same for …"' },
  { mark: /^\*?\s*As [a-z`]/, instead: 'a sentence: "Does what `x` does, …"' },
];

const LINE_LENGTH_MAX = 120;

function reportMarks(context: Context, node: Comment | TextNode, text: string, marks: readonly Mark[]): void {
  for (const { mark, instead } of marks) {
    const found = mark.exec(text)?.[0];
    if (found !== undefined) context.report({ node, message: `"${found.replace(/^\*?\s*/, '')}": write ${instead}` });
  }
}

export const usePlainWordsInComments = {
  create(context: Context) {
    return {
      Program() {
        for (const comment of context.sourceCode.getAllComments())
          reportMarks(context, comment, comment.value, [...WORDS, ...BEGINNINGS]);
      },
    };
  },
};

/** A text with a space is taken for a sentence. */
export const usePlainWordsInTexts = {
  create(context: Context) {
    const check = (node: TextNode, text: unknown): void => {
      if (typeof text === 'string' && /\S \S/.test(text)) reportMarks(context, node, text, WORDS);
    };
    return {
      Literal: (node: TextNode) => check(node, node.value),
      TemplateElement(node: TextNode & { readonly value?: { readonly cooked?: string | null } }) {
        check(node, node.value?.cooked);
      },
    };
  },
};

/** The formatter breaks code, and leaves comments as they are. */
export const fitCommentsInLines = {
  create(context: Context) {
    return {
      Program() {
        for (const comment of context.sourceCode.getAllComments()) {
          const [first = '', ...others] = comment.value.split('\n');
          const lengths = [comment.loc.start.column + 2 + first.length, ...others.map((line) => line.length)];
          // A block comment ends with two characters that its value does not hold.
          const last = lengths.length - 1;
          if (comment.type === 'Block') lengths[last] = (lengths[last] ?? 0) + 2;
          const longest = Math.max(...lengths);
          if (longest > LINE_LENGTH_MAX)
            context.report({
              node: comment,
              message: `A comment of ${longest} columns: break it at ${LINE_LENGTH_MAX}`,
            });
        }
      },
    };
  },
};
