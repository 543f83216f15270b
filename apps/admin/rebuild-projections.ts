/** `strata-admin projections rebuild [--verify]`: rebuilds every read model from the log. */
import type { RowDifference } from '../../projections/runner/verify.ts';
import type { WithProjections } from './command-projections.ts';

export interface ProjectionReport {
  readonly model: string;
  /** The number of rows rebuilt from the log; null if they were not compared. */
  readonly rows: number | null;
  readonly differences: number;
  /** The first differences. */
  readonly examples: readonly RowDifference[];
}

export function rebuildProjections(
  withProjections: WithProjections,
  options: { readonly verify: boolean },
): Promise<readonly ProjectionReport[]> {
  return withProjections(async ({ runner, models }) => {
    if (options.verify) {
      const verified = await runner.verify(null);
      return verified.map(({ projection, rows, differences, examples }) => ({
        model: projection,
        rows,
        differences,
        examples,
      }));
    }
    await runner.rebuild(null);
    return models.map((model) => ({ model, rows: null, differences: 0, examples: [] }));
  });
}
