/** Values as people read them: times, sizes, lists. Programs get the exact value. */

const UNITS: readonly (readonly [unit: string, seconds: number])[] = [
  ['year', 365 * 86_400],
  ['month', 30 * 86_400],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];

/** Returns `3 days ago` or `in 2 hours`; `-` for null. */
export function relativeTime(time: string | null, nowMs: number = Date.now()): string {
  if (time === null) return '-';
  const at = Date.parse(time);
  if (Number.isNaN(at)) return time;
  const seconds = Math.round(Math.abs(nowMs - at) / 1000);
  const found = UNITS.find(([, span]) => seconds >= span);
  if (found === undefined) return at > nowMs ? 'in less than a minute' : 'just now';
  const [unit, span] = found;
  const count = Math.floor(seconds / span);
  const text = `${count} ${unit}${count === 1 ? '' : 's'}`;
  return at > nowMs ? `in ${text}` : `${text} ago`;
}

/** Returns a time for a cell of a table: as it is for programs, relative for people. */
export function timeCell(time: string | null, exact: boolean): string {
  return exact ? (time ?? '') : relativeTime(time);
}

const SIZES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** Returns a size such as `1.4 MiB`. */
export function sizeText(bytes: number): string {
  let value = bytes;
  let index = 0;
  for (; value >= 1024 && index < SIZES.length - 1; index += 1) value /= 1024;
  return `${index === 0 ? value : value.toFixed(1)} ${SIZES[index]}`;
}
