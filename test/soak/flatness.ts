/**
 * Decides whether a figure of a soak is flat, and shows all figures as a table.
 *
 * Invariants: nothing here measures or waits. The first third of the samples is warm-up and decides nothing. A figure
 * is flat if the mean of the last third is at most the mean of the middle third and its slack; one that has a bound may
 * grow up to it; one that grows by design is shown for each operation, and never judged.
 */

/** What a figure may reach, however long it takes to. */
export interface Bound {
  readonly most: number;
}

/** How much the mean of the last third may be above that of the middle third: the share of it, and at least `least`. */
export interface Slack {
  readonly share: number;
  readonly least: number;
}

export interface Figure {
  readonly name: string;
  readonly unit: 'bytes' | 'count';
  /** Null: it grows by design, with the operations. */
  readonly slack: Slack | Bound | null;
}

/** The values of one sample, by the names of the figures; a figure without a value was 0. */
export interface Sample {
  /** Operations that clients had ended. */
  readonly operations: number;
  readonly values: ReadonlyMap<string, number>;
}

export interface Judged extends Figure {
  readonly start: number;
  /** The means of the middle and the last third. */
  readonly warm: number;
  readonly end: number;
  /** Between the first sample and the last. */
  readonly perOperation: number;
  readonly verdict: 'flat' | 'within its bound' | 'grows by design' | 'GROWS';
}

/** With fewer samples no third has two. */
export const SAMPLES_MIN = 6;

export function judge(figure: Figure, samples: readonly Sample[]): Judged {
  if (samples.length < SAMPLES_MIN) throw new RangeError(`${samples.length} samples say nothing`);
  const { name, slack } = figure;
  const values = samples.map((sample) => sample.values.get(name) ?? 0);
  const third = Math.floor(values.length / 3);
  const warm = mean(values.slice(third, values.length - third));
  const end = mean(values.slice(-third));
  const operations = Math.max(1, (samples.at(-1)?.operations ?? 0) - (samples[0]?.operations ?? 0));
  const perOperation = ((values.at(-1) ?? 0) - (values[0] ?? 0)) / operations;
  const verdict = verdictOf(slack, { warm, end, most: Math.max(...values) });
  return { ...figure, start: values[0] ?? 0, warm, end, perOperation, verdict };
}

function verdictOf(
  slack: Figure['slack'],
  { warm, end, most }: { readonly warm: number; readonly end: number; readonly most: number },
): Judged['verdict'] {
  if (slack === null) return 'grows by design';
  if ('most' in slack) return most <= slack.most ? 'within its bound' : 'GROWS';
  return end <= warm + Math.max(slack.least, warm * slack.share) ? 'flat' : 'GROWS';
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

const HEAD = ['figure', 'start', 'after warm-up', 'end', 'per operation', 'slack', ''];

/** Whether the figure says anything: one that grows by design and did not change does not. */
export function isTelling({ slack, start, warm, end }: Judged): boolean {
  return slack !== null || start !== warm || warm !== end;
}

/** A table of Markdown: a line for each figure. */
export function renderFigures(judged: readonly Judged[]): string {
  const rows = judged.map((figure) => [
    figure.name,
    amountText(figure.start, figure.unit),
    amountText(figure.warm, figure.unit),
    amountText(figure.end, figure.unit),
    figure.slack === null ? amountText(figure.perOperation, figure.unit) : '',
    figure.slack === null ? '' : slackText(figure.slack, figure.unit),
    figure.verdict,
  ]);
  const lines = [HEAD, ...rows];
  const widths = HEAD.map((_, column) => Math.max(3, ...lines.map((line) => line[column]?.length ?? 0)));
  const lineOf = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => pad(cell, widths[column] ?? 0, column)).join(' | ')} |`;
  const rule = widths.map((width, column) => (isNumeric(column) ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width)));
  return [lineOf(HEAD), `| ${rule.join(' | ')} |`, ...rows.map(lineOf)].join('\n');
}

function isNumeric(column: number): boolean {
  return column > 0 && column < 5;
}

function pad(text: string, width: number, column: number): string {
  return isNumeric(column) ? text.padStart(width) : text.padEnd(width);
}

export function amountText(amount: number, unit: Figure['unit']): string {
  if (unit === 'count') return Math.abs(amount) < 10 ? trimmed(amount, 2) : trimmed(amount, 0);
  const size = Math.abs(amount);
  if (size < 1024) return `${trimmed(amount, 0)} B`;
  if (size < 1024 * 1024) return `${trimmed(amount / 1024, 1)} KiB`;
  return `${trimmed(amount / 1024 / 1024, 1)} MiB`;
}

function trimmed(amount: number, digits: number): string {
  return String(Number(amount.toFixed(digits)));
}

function slackText(slack: Slack | Bound, unit: Figure['unit']): string {
  if ('most' in slack) return `at most ${amountText(slack.most, unit)}`;
  const { share, least } = slack;
  return `${Math.round(share * 100)} %, at least ${amountText(least, unit)}`;
}
