/** Asks promtool, which evaluates the rules as Prometheus does, whether an alert fires. */
import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findTool } from '../support/tools.ts';
import { ALERTS_FILE, alertRules, seriesIn } from './alert-rules.ts';
import { inputSeries, type Moment, stepOf } from './scraped-history.ts';

const run = promisify(execFile);

export async function promtool(...args: readonly string[]): Promise<void> {
  await run(findTool('promtool') ?? 'promtool', [...args]);
}

/** Throws unless the alert, with these labels if any are named, fires at the end of the moments, or does not. */
export async function expectAlert(
  alert: string,
  fires: boolean,
  moments: readonly Moment[],
  labels: Readonly<Record<string, string>> = {},
): Promise<void> {
  const wanted = Object.entries({ alertname: alert, alertstate: 'firing', ...labels });
  const selector = wanted.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(',');
  const names = new Set(alertRules().flatMap(({ expr }) => seriesIn(expr)));
  const seconds = moments.reduce((sum, { heldSeconds }) => sum + heldSeconds, 0);
  const step = stepOf(moments);
  const test = {
    rule_files: [ALERTS_FILE],
    evaluation_interval: `${step}s`,
    tests: [
      {
        interval: `${step}s`,
        input_series: inputSeries(moments, names),
        promql_expr_test: [
          {
            expr: `(count(ALERTS{${selector}}) > bool 0) or vector(0)`,
            eval_time: `${seconds - step}s`,
            exp_samples: [{ labels: '{}', value: fires ? 1 : 0 }],
          },
        ],
      },
    ],
  };
  const file = join(tmpdir(), `strata-alert-${process.pid}-${alert}.yaml`);
  // JSON is YAML.
  await writeFile(file, JSON.stringify(test));
  try {
    await promtool('test', 'rules', file);
  } finally {
    await rm(file);
  }
}
