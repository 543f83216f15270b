/**
 * `npm run bench -- scale`: what operations cost as repositories, accounts and services grow.
 *
 * Invariants: each part has a service of its own, which ends with the part. What a line costs over the first line
 * of its table is shown beside it.
 */
import os from 'node:os';
import { describeMachine, describeVersions } from '../environment.ts';
import { onGround } from '../scene.ts';
import { formatFigure, renderTable } from '../table.ts';
import { type Figure, type Measured, measureLines } from './measure.ts';
import { SCALE_PARTS, type ScaleSizes } from './parts.ts';

interface PartResult {
  readonly title: string;
  readonly lines: readonly Measured[];
}

export interface ScaleBench {
  readonly date: string;
  readonly machine: string;
  readonly versions: string;
  readonly load: number;
  readonly parts: readonly PartResult[];
}

interface Options extends ScaleSizes {
  /** Names; null: all. */
  readonly parts: readonly string[] | null;
  readonly seconds: number;
  readonly rounds: number;
  readonly say: (text: string) => void;
}

export async function benchScale({ parts, seconds, rounds, say, ...sizes }: Options): Promise<ScaleBench> {
  const load = os.loadavg()[0] ?? 0;
  const results: PartResult[] = [];
  for (const { name, title, prepare } of SCALE_PARTS) {
    if (parts?.includes(name) === false) continue;
    results.push(
      await onGround(async (ground) => {
        const lines = await prepare(ground, sizes, say);
        say(`Measuring: ${title}`);
        return { title, lines: await measureLines(lines, { seconds, rounds }) };
      }),
    );
  }
  const date = new Date().toISOString().slice(0, 10);
  return { date, machine: describeMachine(), versions: await describeVersions(null), load, parts: results };
}

const LEGEND = [
  'p50 ms, and in parentheses CPU ms of one operation: of all nodes + of PostgreSQL, with work behind the answer and',
  'without what they use while idle; the median of the rounds, lines in turn. After it, the CPU over that of the first',
  'column. Requests as git sends them, over kept connections, one client. A push brings three objects and moves one ref.',
].join('\n');

export function renderScaleBench({ date, machine, versions, load, parts }: ScaleBench): string {
  const tables = parts.map(({ title, lines }) => {
    const rows = (lines[0]?.figures ?? []).map((first, row) => [
      first.operation,
      ...lines.map(({ figures }) => cell(figures[row], first)),
    ]);
    const idle = lines.map(({ idle: { nodes, database } }) => `${formatFigure(nodes)} + ${formatFigure(database)}`);
    rows.push(['cores while idle', ...idle]);
    return `${title}\n\n${renderTable(['', ...lines.map(({ label }) => label)], rows)}`;
  });
  const about = `${date}, ${machine}; ${versions}; load ${load.toFixed(2)} before the run`;
  return `${[about, ...tables, LEGEND].join('\n\n')}\n`;
}

function cell(figure: Figure | undefined, first: Figure): string {
  if (figure === undefined) return '';
  const { p50Ms, cpuMs, databaseCpuMs } = figure;
  if (cpuMs === null || databaseCpuMs === null) return formatFigure(p50Ms);
  const over = figure === first ? '' : ` ${formatFigure((cpuMs + databaseCpuMs) / sumOf(first))}x`;
  return `${formatFigure(p50Ms)} (${formatFigure(cpuMs)} + ${formatFigure(databaseCpuMs)})${over}`;
}

function sumOf({ cpuMs, databaseCpuMs }: Figure): number {
  return (cpuMs ?? Number.NaN) + (databaseCpuMs ?? Number.NaN);
}
