/**
 * What a Prometheus would have after it scraped a server, as the input of `promtool test rules`.
 *
 * Invariants: each moment is the text of `/metrics` as the server gave it, held until the next one: only time goes on.
 * promtool's clock begins at 0, so times of day move with it; a time of 0 means "never" and stays.
 */

const STEP_SECONDS = 15;
const LONG_STEP_SECONDS = 15 * 60;
const LONG_SECONDS = 24 * 60 * 60;

/** How far apart Prometheus looks: promtool would take minutes for a history of days. No moment of one is shorter. */
export function stepOf(moments: readonly Moment[]): number {
  const seconds = moments.reduce((sum, { heldSeconds }) => sum + heldSeconds, 0);
  return seconds > LONG_SECONDS ? LONG_STEP_SECONDS : STEP_SECONDS;
}

export interface Moment {
  /** The text of `/metrics`; null if the scrape failed. */
  readonly text: string | null;
  /** When it was scraped, in seconds since 1970. */
  readonly atSeconds: number;
  /** For how long nothing changes. */
  readonly heldSeconds: number;
}

export interface InputSeries {
  readonly series: string;
  readonly values: string;
}

const SERIES = /^(strata_\w+)(?:\{(.*)\})? (\S+)$/gm;
const TIME_OF_DAY = /_timestamp_seconds$|^strata_process_start_time_seconds$/;

/** Returns the series of these names, with the labels that a scrape adds. */
export function inputSeries(moments: readonly Moment[], names: ReadonlySet<string>): readonly InputSeries[] {
  const stepSeconds = stepOf(moments);
  let startSeconds = 0;
  const seen = moments.map((moment) => {
    const figures = figuresOf(moment, names, startSeconds);
    startSeconds += moment.heldSeconds;
    return { figures, steps: moment.heldSeconds / stepSeconds };
  });
  const all = new Set(seen.flatMap(({ figures }) => [...figures.keys()]));
  return [...all].map((series) => ({
    series,
    values: seen.map(({ figures, steps }) => held(figures.get(series), steps)).join(' '),
  }));
}

function figuresOf(
  { text, atSeconds }: Moment,
  names: ReadonlySet<string>,
  startSeconds: number,
): ReadonlyMap<string, number> {
  const scrape = 'instance="node",job="strata"';
  const found = new Map([[`up{${scrape}}`, text === null ? 0 : 1]]);
  for (const [, name = '', labels = '', value = ''] of (text ?? '').matchAll(SERIES)) {
    const figure = Number(value);
    if (!names.has(name) || Number.isNaN(figure)) continue;
    const isTime = TIME_OF_DAY.test(name) && figure > 0;
    const shown = isTime ? figure - atSeconds + startSeconds : figure;
    found.set(`${name}{${labels === '' ? '' : `${labels},`}${scrape}}`, shown);
  }
  return found;
}

/** promtool writes a value and how often it follows; `stale` is a series that the scrape no longer shows. */
function held(figure: number | undefined, steps: number): string {
  if (figure !== undefined) return `${figure}+0x${steps - 1}`;
  return steps > 1 ? `stale _x${steps - 1}` : 'stale';
}
