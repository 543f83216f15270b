/** One guard taken out of the code, and the test that must notice. */
export interface Mutation {
  /** What the code no longer does. */
  readonly without: string;
  /** Below the root. */
  readonly file: string;
  /** Stands there exactly once. */
  readonly text: string;
  readonly by: string;
  /** The test file, and words of the names of tests in it of which one must fail. */
  readonly test: string;
  readonly red: string;
}
