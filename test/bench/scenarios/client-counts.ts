/**
 * The scenarios at other numbers of clients than their own, for `--clients`.
 *
 * Invariants: a target is shown only at the number of clients that it names. A line is measured once, whichever of
 * the scenarios that do its work were chosen. What makes one operation a round stays with one client.
 */
import type { Scenario } from './scenario.ts';

/**
 * Returns what to measure, in the order of the scenarios.
 * @param all every scenario there is, chosen or not: they know the targets.
 * @param counts null: each scenario has its own number.
 */
export function atClientCounts(
  chosen: readonly Scenario[],
  all: readonly Scenario[],
  counts: readonly number[] | null,
): readonly Scenario[] {
  if (counts === null) return chosen;
  const measured = new Set<string>();
  return chosen.flatMap((scenario) =>
    (scenario.roundFactor === undefined ? counts : [scenario.clients]).flatMap((clients) => {
      const line = `${workOf(scenario)} (${clients})`;
      if (measured.has(line)) return [];
      measured.add(line);
      const named = all.find((other) => workOf(other) === workOf(scenario) && other.clients === clients);
      return [named ?? { ...scenario, title: workOf(scenario), clients, target: {} }];
    }),
  );
}

function workOf({ work, title }: Scenario): string {
  return work ?? title;
}
