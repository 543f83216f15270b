/**
 * Renders the result as Markdown tables, so that the output of a run can be put into docs/benchmarks.md unchanged.
 *
 * Invariants: every line names its side, its clients and its durability; a missed target is marked.
 */
import type { BenchResult, ChangeResult, ClientResult, MemoryResult, ScenarioResult, SideResult } from './results.ts';

const MIB = 1024 * 1024;
/** The kernel's own work, such as writing back, counts as use by others. */
const OTHERS_CORES_MAX = 0.3;

type Row = readonly string[];

export function renderResult(result: BenchResult): string {
  const parts = [
    `${result.date}, ${result.machine}; ${result.versions}`,
    `Repository: ${result.repository}. CPU by ${result.accounting}. ${result.rounds} rounds of ${result.secondsPerRound} s a side, in turn.`,
  ];
  if (result.scenarios.length > 0)
    parts.push(renderTable(SCENARIO_HEAD, result.scenarios.flatMap(scenarioRows)), LEGEND);
  if (result.changes.length > 0) parts.push(renderTable(CHANGE_HEAD, changeRows(result.changes)), CHANGE_LEGEND);
  if (result.clients.length > 0) parts.push(renderTable(CLIENT_HEAD, result.clients.map(clientRow)), CLIENT_LEGEND);
  if (result.memory.length > 0) parts.push(renderTable(MEMORY_HEAD, result.memory.map(memoryRow)), MEMORY_LEGEND);
  const others = Math.max(0, ...result.scenarios.flatMap(({ sides }) => sides.map(({ othersCores }) => othersCores)));
  if (others > OTHERS_CORES_MAX) {
    parts.push(`Not to be published: other programs used up to ${formatFigure(others)} cores in between.`);
  }
  for (const { name, message } of result.faults) parts.push(`Failed: ${name}: ${message}`);
  return `${parts.join('\n\n')}\n`;
}

const SCENARIO_HEAD: Row = [
  'operation (clients)',
  'side',
  'per second',
  'ratio',
  'p50 ms',
  'p99 ms',
  'CPU ms',
  'CPU ratio',
  'memory MiB',
  'durability',
];

const LEGEND = [
  'Requests recorded from a real git and replayed over keep-alive connections; an operation is all requests of one',
  'command. Ratio: the rate of the first side over this one, CPU ratio the reverse, medians over the rounds. CPU: all',
  'of the server’s processes, for one operation, with work put off until after the answer. Memory: peak, PostgreSQL’s',
  'apart after +. * the load generator used more than 0.8 of a core: the server may do more.',
].join('\n');

function scenarioRows(scenario: ScenarioResult): readonly Row[] {
  return scenario.sides.map((side, index) => [
    index === 0 ? `${scenario.title} (${scenario.clients})` : '',
    side.side,
    `${formatFigure(side.perSecond)}${side.generatorCores > 0.8 ? '*' : ''}${perSecondVerdict(scenario, index)}`,
    ratioText(side),
    formatFigure(side.p50Ms),
    formatFigure(side.p99Ms),
    formatFigure(side.cpuMsPerOperation),
    side.comparison === null ? '' : `${formatFigure(side.comparison.cpuRatio)}x`,
    memoryText(side.memoryPeakBytes, side.databaseMemoryPeakBytes),
    side.durability ?? '',
  ]);
}

function perSecondVerdict(scenario: ScenarioResult, index: number): string {
  const side = scenario.sides[index];
  if (scenario.targetPerSecond === null || side === undefined) return '';
  const missed = side.perSecond < scenario.targetPerSecond ? ', missed' : '';
  return ` (>= ${formatFigure(scenario.targetPerSecond)}${missed})`;
}

function ratioText(side: SideResult): string {
  const { comparison } = side;
  if (comparison === null) return '';
  const ratio = `${formatFigure(comparison.rateRatio)}x`;
  if (comparison.targetRatio === null) return ratio;
  const missed = comparison.rateRatio < comparison.targetRatio ? ', missed' : '';
  return `${ratio} (>= ${formatFigure(comparison.targetRatio)}${missed})`;
}

const CHANGE_HEAD: Row = ['one change, alone', 'by', 'side', 'requests', 'wall ms', 'over the first', 'runs'];

const CHANGE_LEGEND = [
  'The whole change by one client: over REST by a request on a new connection; from a clone that is up to date by the',
  'real git, with the commit; and with a clone of the last commit before it. Requests: counted by a proxy. Wall: medians.',
].join('\n');

function changeRows(changes: readonly ChangeResult[]): readonly Row[] {
  return changes.map(({ tree, way, side, requests, medianMs, runs }, index) => {
    const first = changes.find((other) => other.tree === tree);
    const ratio = first === undefined || first === changes[index] ? '' : `${formatFigure(medianMs / first.medianMs)}x`;
    const title = changes[index - 1]?.tree === tree ? '' : tree;
    return [title, way, side, String(requests), formatFigure(medianMs), ratio, String(runs)];
  });
}

const CLIENT_HEAD: Row = ['real client', 'runs', 'wall ms, medians', 'floor ms', 'gap closed'];

const CLIENT_LEGEND =
  'Floor: the same client against a server of canned answers. Gap closed: how much of the way from http-backend to the floor.';

function clientRow(client: ClientResult): Row {
  const share = client.share === null ? '' : `${Math.round(client.share * 100)} %`;
  const missed = client.share !== null && client.share < client.targetShare ? ', missed' : '';
  return [
    client.title,
    String(client.runs),
    client.sides.map(({ side, medianMs }) => `${side} ${formatFigure(medianMs)}`).join(', '),
    formatFigure(client.floorMs),
    share === '' ? '' : `${share} (>= ${Math.round(client.targetShare * 100)} %${missed})`,
  ];
}

const MEMORY_HEAD: Row = [
  'side',
  'under',
  'seconds',
  'idle MiB',
  'peak MiB',
  'not file-backed',
  'after MiB',
  'PostgreSQL peak',
  'at the peak',
];

const MEMORY_LEGEND =
  'Proportional set size of all processes but PostgreSQL’s. Mapped packs count in the peak, not in "not file-backed". Target: below 400 MB.';

function memoryRow(memory: MemoryResult): Row {
  return [
    memory.side,
    `push of ${mib(memory.pushBytes)} MiB and ${memory.clones} clones`,
    formatFigure(memory.seconds),
    mib(memory.idleBytes),
    mib(memory.peakBytes),
    mib(memory.peakAnonymousBytes),
    mib(memory.afterBytes),
    memory.databasePeakBytes === 0 ? '' : mib(memory.databasePeakBytes),
    programsText(memory.peakProgramBytes),
  ];
}

/** Lists the programs, the largest first: `node 420, git 130`. */
function programsText(programBytes: Readonly<Record<string, number>>): string {
  const largest = Object.entries(programBytes).toSorted(([, a], [, b]) => b - a);
  return largest.map(([program, bytes]) => `${program} ${mib(bytes)}`).join(', ');
}

function memoryText(serverBytes: number, databaseBytes: number): string {
  return databaseBytes === 0 ? mib(serverBytes) : `${mib(serverBytes)} + ${mib(databaseBytes)}`;
}

function mib(bytes: number): string {
  return String(Math.round(bytes / MIB));
}

/** Formats three significant digits, with thousands separators: 25,390; 225; 16.8; 0.031. */
export function formatFigure(value: number): string {
  if (!Number.isFinite(value)) return '?';
  if (value >= 1000) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(3)));
}

/** Renders a Markdown table with aligned columns; the head sets the number of columns. */
export function renderTable(head: Row, rows: readonly Row[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: Row): string =>
    `| ${widths.map((width, column) => (row[column] ?? '').padEnd(width)).join(' | ')} |`;
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}
