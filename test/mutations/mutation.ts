/** One guard that is taken out of the code, and the test that must fail then. */
export interface Mutation {
  /** What the code no longer does without the guard. */
  readonly without: string;
  /** The file that holds the guard, relative to the root. */
  readonly file: string;
  /** The text to replace; the file must hold it exactly once. */
  readonly text: string;
  /** The text that replaces it. */
  readonly by: string;
  /** The test file. */
  readonly test: string;
  /** A part of the names of tests in that file, of which at least one must fail. */
  readonly red: string;
}
