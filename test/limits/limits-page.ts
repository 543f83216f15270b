/** docs/limits.md, made from the limits of the sources and from what judges them. */
import type { JudgedLimit } from './judging.ts';

const TIMES = [
  [24 * 60 * 60_000, 'days'],
  [60 * 60_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const;
const SIZES = [
  [1024 ** 3, 'GiB'],
  [1024 ** 2, 'MiB'],
  [1024, 'KiB'],
] as const;

function inUnits(figure: number, units: typeof TIMES | typeof SIZES, least: string): string {
  const [size, unit] = units.find(([size]) => figure >= size && figure % size === 0) ?? [1, least];
  return `${(figure / size).toLocaleString('en')} ${unit}`;
}

/** Returns a figure in the unit that its name ends with. */
export function humanFigure(name: string, figure: number): string {
  if (/_MS(_|$)/.test(name)) return inUnits(figure, TIMES, 'ms');
  if (/_SECONDS(_|$)/.test(name) && !/_PER_SECOND/.test(name)) return inUnits(figure * 1_000, TIMES, 'ms');
  if (/BYTES(_|$)/.test(name)) return inUnits(figure, SIZES, 'bytes');
  return figure.toLocaleString('en', { maximumFractionDigits: 20 });
}

/** The first sentence of a comment: the others stand in the source. */
function firstSentence(why: string): string {
  return /^.*?[.](?= [A-Z`]|$)/.exec(why)?.[0] ?? why;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function cells({ limit, verdict }: JudgedLimit): string[] {
  const figure = limit.figure === null ? `\`${limit.expression}\`` : humanFigure(limit.name, limit.figure);
  const common = [`\`${limit.name}\``, figure, firstSentence(limit.why), `\`${limit.path}\``];
  if (verdict.kind === 'internal') return [...common, verdict.reason];
  return [...common, verdict.files.map((file) => `\`${file}\``).join(', ')];
}

const HEAD = ['name', 'value', 'why', 'where'];

/** Returns the text of docs/limits.md. Its tables are not aligned, so that a changed limit changes one line. */
export function limitsPage(judged: readonly JudgedLimit[]): string {
  const rows = (kind: JudgedLimit['verdict']['kind']) =>
    judged.filter(({ verdict }) => verdict.kind === kind).map(cells);
  return `# Limits

\`npm run limits\` makes this page from the sources, and \`test/limits\` checks that it is current. A limit stands beside
its one user, in the \`limits.ts\` of its room, or in \`core/kernel/limits.ts\`. Its comment there says more.

## Tested limits

Somebody outside can bring the service to most of these limits: by a request, a push, a form, a bucket, an issuer or a
receiver of webhooks. The named file has a test that goes to the limit and a test that goes one past it; often one test
does both.

${table([...HEAD, 'test'], rows('tested'))}

## Internal limits

No caller can tell where such a limit lies.

${table([...HEAD, 'reason'], rows('internal'))}
`;
}
