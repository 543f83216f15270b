/**
 * Reads the modules that a source names: import and export-from declarations, `import()`, `require()`, import types,
 * and the two ways to name a module without loading it (`import.meta.resolve`, `new URL(…, import.meta.url)`).
 *
 * Invariants: the reader never takes text inside comments, strings and regular expressions for code, nor code for
 * text. It throws on a source that it cannot read, and never misses an import silently.
 */

export interface ModuleImport {
  /** The text between the quotes; null for a computed specifier. */
  readonly specifier: string | null;
  readonly line: number;
}

export interface ModuleText {
  readonly imports: readonly ModuleImport[];
  /** The lines of `export * from`. */
  readonly starExports: readonly number[];
  /** Whether the module holds only imports and re-exports. */
  readonly onlyReExports: boolean;
}

interface Token {
  readonly kind: 'word' | 'text' | 'mark';
  /** The word, the mark, or the contents of the string. */
  readonly value: string;
  readonly line: number;
}

/** A slash after these words starts a regular expression, as it does after most punctuation. */
const BEFORE_EXPRESSION = new Set(
  'return typeof case in of delete void throw new else do await yield instanceof'.split(' '),
);
const WORD = /[\p{ID_Start}$_#][\p{ID_Continue}$]*/uy;
const NUMBER = /\d[\w.]*/y;
const SPACE = /\s+/y;
const LINE_COMMENT = /\/\/[^\n]*/y;
const BLOCK_COMMENT = /\/\*[^]*?\*\//y;
const STRING = /'(?:[^'\\\n]|\\[^])*'|"(?:[^"\\\n]|\\[^])*"/y;
const REGULAR_EXPRESSION = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
const TEMPLATE_CHUNK = /(?:[^`\\$]|\\[^]|\$(?!\{))*(?:`|\$\{)/y;

function startsExpression(last: Token | undefined): boolean {
  if (last === undefined) return true;
  if (last.kind === 'mark') return !/[)\]}]/.test(last.value);
  return last.kind === 'word' && BEFORE_EXPRESSION.has(last.value);
}

function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  /** For each open brace, whether its closing brace continues a template. */
  const braces: boolean[] = [];
  let at = source.startsWith('#!') ? source.indexOf('\n') : 0;
  let line = 1;
  const take = (pattern: RegExp): string | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(source);
    if (found === null) return null;
    at += found[0].length;
    line += found[0].split('\n').length - 1;
    return found[0];
  };
  const push = (kind: Token['kind'], value: string): void => void tokens.push({ kind, value, line });
  const template = (): void => {
    const chunk = take(TEMPLATE_CHUNK);
    if (chunk === null) throw new SyntaxError(`line ${line}: a template without end`);
    if (chunk.endsWith('${')) {
      braces.push(true);
      push('mark', '${');
    } else push('text', chunk.slice(0, -1));
  };
  while (at < source.length) {
    if (take(SPACE) !== null || take(LINE_COMMENT) !== null || take(BLOCK_COMMENT) !== null) continue;
    const string = take(STRING);
    if (string !== null) {
      push('text', string.slice(1, -1));
      continue;
    }
    if (source[at] === '/' && startsExpression(tokens.at(-1)) && take(REGULAR_EXPRESSION) !== null) {
      push('text', '/');
      continue;
    }
    const word = take(WORD) ?? take(NUMBER);
    if (word !== null) {
      push('word', word);
      continue;
    }
    const mark = source[at] ?? '';
    if (mark === "'" || mark === '"') throw new SyntaxError(`line ${line}: a string without end`);
    at += 1;
    if (mark === '`') template();
    else if (mark === '}' && braces.pop() === true) template();
    else {
      if (mark === '{') braces.push(false);
      push('mark', mark);
    }
  }
  return tokens;
}

/** Returns the index after the bracket that closes the one at `open`. */
function afterGroup(tokens: readonly Token[], open: number): number {
  let depth = 0;
  for (let at = open; at < tokens.length; at += 1) {
    const token = tokens[at];
    if (token?.kind !== 'mark') continue;
    if (/[([{]/.test(token.value)) depth += 1;
    if (/[)\]}]/.test(token.value)) depth -= 1;
    if (depth === 0) return at + 1;
  }
  return tokens.length;
}

/**
 * Reads one module. Throws SyntaxError if a string or a template does not end.
 */
export function readModule(source: string): ModuleText {
  const tokens = tokenize(source);
  const imports: ModuleImport[] = [];
  const starExports: number[] = [];
  let exportsSeen = false;
  let otherCode = false;
  const isMark = (at: number, value: string) => tokens[at]?.kind === 'mark' && tokens[at].value === value;
  const isWord = (at: number, value: string) => tokens[at]?.kind === 'word' && tokens[at].value === value;
  const textAt = (at: number) => (tokens[at]?.kind === 'text' ? tokens[at].value : null);
  const add = (specifier: string | null, line: number) => imports.push({ specifier, line });

  /** Reads `import x, { y } from 'z'` or `import 'z'` from the token after `import`; returns the index after it. */
  const declaration = (start: number): number => {
    let at = start;
    while (at < tokens.length && textAt(at) === null) at = isMark(at, '{') ? afterGroup(tokens, at) : at + 1;
    add(textAt(at), tokens[start]?.line ?? 0);
    at += 1;
    return isWord(at, 'with') ? afterGroup(tokens, at + 1) : at;
  };
  /**
   * Reads `export { a } from 'z'`, `export * as b from 'z'` or `export { a }`; returns null for an exported
   * declaration.
   */
  const reExport = (start: number): number | null => {
    const at = isWord(start, 'type') ? start + 1 : start;
    if (isMark(at, '*')) {
      starExports.push(tokens[at]?.line ?? 0);
      return declaration(at);
    }
    if (!isMark(at, '{')) return null;
    const end = afterGroup(tokens, at);
    return isWord(end, 'from') ? declaration(end) : end;
  };
  /**
   * Reads a module named in an expression or a type. The caller continues at the next token, so nested ones are read.
   */
  const expression = (at: number): void => {
    const line = tokens[at]?.line ?? 0;
    const word = tokens[at]?.value;
    const called = isMark(at + 1, '(') && !isMark(at - 1, '.');
    if ((word === 'import' || word === 'require') && called) add(textAt(at + 2), line);
    // `import.meta.resolve` does not load the module, so a computed name is no unknown import.
    const resolved = word === 'resolve' && isMark(at - 1, '.') && isWord(at - 2, 'meta') ? textAt(at + 2) : null;
    if (resolved !== null) add(resolved, line);
    const ofThisModule = ['import', '.', 'meta', '.', 'url'].every((part, i) => tokens[at + 4 + i]?.value === part);
    if (word === 'URL' && called && ofThisModule) add(textAt(at + 2), line);
  };

  for (let at = 0; at < tokens.length; ) {
    const atDeclaration = !isMark(at - 1, '.') && !isMark(at + 1, ':') && tokens[at]?.kind === 'word';
    if (atDeclaration && isWord(at, 'import') && !isMark(at + 1, '(') && !isMark(at + 1, '.')) {
      at = declaration(at + 1);
      continue;
    }
    const end = atDeclaration && isWord(at, 'export') ? reExport(at + 1) : null;
    if (end !== null) {
      exportsSeen = true;
      at = end;
      continue;
    }
    otherCode ||= !isMark(at, ';');
    if (tokens[at]?.kind === 'word') expression(at);
    at += 1;
  }
  return { imports, starExports, onlyReExports: exportsSeen && !otherCode };
}
