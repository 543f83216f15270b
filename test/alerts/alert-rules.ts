/** The alerts of deploy/alerts.yaml, and the metrics that they and the dashboard name. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { ROOT } from '../architecture/source-tree.ts';

export const ALERTS_FILE = join(ROOT, 'deploy/alerts.yaml');
const DASHBOARD_FILE = join(ROOT, 'deploy/grafana-dashboard.json');

const text = z.string().min(1);
const alertsFile = z.object({
  groups: z.array(
    z.object({
      rules: z.array(
        z.object({
          alert: text,
          expr: text,
          labels: z.object({ severity: z.enum(['critical', 'warning']) }),
          annotations: z.object({ summary: text, action: text, chapter: text }),
        }),
      ),
    }),
  ),
});
const dashboardFile = z.object({
  panels: z.array(z.object({ title: text, targets: z.array(z.object({ expr: text })) })),
});

export type AlertRule = z.infer<typeof alertsFile>['groups'][number]['rules'][number];

export function alertRules(): readonly AlertRule[] {
  return alertsFile.parse(parse(readFileSync(ALERTS_FILE, 'utf8'))).groups.flatMap(({ rules }) => rules);
}

/** The expressions of all panels of the dashboard. */
export function dashboardExpressions(): readonly string[] {
  const { panels } = dashboardFile.parse(JSON.parse(readFileSync(DASHBOARD_FILE, 'utf8')));
  return panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
}

/** The series of Strata that an expression names. */
export function seriesIn(expression: string): readonly string[] {
  return [...new Set(expression.match(/\bstrata_\w+/g) ?? [])];
}
