/**
 * The base of errors whose callers decide by a code: the errors of ports, and others of that form.
 *
 * Invariants: a code is stable, and the message is for operators. Each class sets `name` to a literal, so that the
 * compiler tells apart two classes that have the same codes.
 */
export abstract class CodedError<Code extends string> extends Error {
  abstract override readonly name: string;
  readonly code: Code;
  constructor(code: Code, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}
