/**
 * Finds the numbers in a text of JSON that JavaScript does not hold as they are written: 9007199254740993 becomes its
 * neighbour, 1e400 Infinity, and -0 is written as 0.
 *
 * Invariants: the time is linear in the text, whatever its digits are.
 */

/**
 * Returns the names of the members of an object whose number is another one than the text says. `text` must be the JSON
 * text of an object.
 */
export function inexactMembers(text: string): ReadonlySet<string> {
  const found = new Map<unknown, Set<string>>();
  // JSON.parse gives a reviver the text of each number (ECMAScript 2026); without it no number counts as exact.
  const note = function (this: unknown, name: string, value: unknown, context?: { readonly source?: string }): unknown {
    if (typeof value === 'number' && !isExact(context?.source ?? '', value)) {
      found.set(this, (found.get(this) ?? new Set()).add(name));
    }
    return value;
  };
  const parsed: unknown = JSON.parse(text, note);
  return found.get(parsed) ?? new Set();
}

function isExact(source: string, value: number): boolean {
  const written = decimalOf(source);
  return written !== null && written === decimalOf(String(value));
}

/**
 * Returns a number's sign, its digits without zeros at either end, and its power of ten. Null for a text that is not a
 * number.
 */
function decimalOf(text: string): string | null {
  const [match, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  if (match === undefined) return null;
  const digits = whole + fraction;
  let start = 0;
  while (digits[start] === '0') start += 1;
  if (start === digits.length) return `${sign}0`;
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return `${sign}${digits.slice(start, end)}e${Number(power) - fraction.length + digits.length - end}`;
}
