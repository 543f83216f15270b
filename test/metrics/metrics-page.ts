/** docs/metrics.md, made from the metrics of the sources. */
import type { FoundMetric } from './found-metrics.ts';

function row({ name, kind, labels, help }: FoundMetric): string {
  const shown = labels.map((label) => `\`${label}\``).join(', ');
  const cells = [`\`${name}\``, kind, shown, help];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

/** Returns the text of docs/metrics.md. Its table is not aligned, so that a changed metric changes one line. */
export function metricsPage(metrics: readonly FoundMetric[]): string {
  return `# Metrics

\`npm run metrics\` makes this page from the sources, and \`test/metrics\` checks that it is current. \`/metrics\` of each
node shows its own figures; [operating.md](operating.md), Metrics, says who may read them.

- A histogram has the series \`_bucket\`, \`_sum\` and \`_count\`. Times are in seconds, and a time of day is in seconds
  since 1970 (\`_timestamp_seconds\`).
- A gauge that cannot be read, as while the database is away, is \`NaN\`.
- A metric of something that a node does not have is not shown: \`strata_tls_certificate_expiry_timestamp_seconds\`
  without TLS, or the last success of a sweep on a node without the role \`worker\`.
- Beside these each node has the metrics of its process and of Node that
  [prom-client](https://github.com/siimon/prom-client) makes, with \`strata_\` before their names.

| name | kind | labels | what |
| --- | --- | --- | --- |
${metrics.map(row).join('\n')}
`;
}
