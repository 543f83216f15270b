/**
 * Figures that a test measured.
 *
 * Invariants: the reporter lists them at the end of the run, also of a test that passed; vitest hides what such a
 * test logs.
 */
declare module 'vitest' {
  interface TaskMeta {
    figures?: readonly string[];
  }
}

/** Notes a figure of the running test, as a line for people. */
export function noteFigure(
  { task }: { readonly task: { readonly meta: { figures?: readonly string[] } } },
  line: string,
): void {
  task.meta.figures = [...(task.meta.figures ?? []), line];
}
